package plan

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

func TestOrderIsFair(t *testing.T) {
	for n := 1; n <= 9; n++ {
		rounds := n
		if n%2 == 1 {
			rounds = 2 * n
		}
		places := make([][]int, n) // contestant, place
		follows := make([][]int, n)
		for i := range n {
			places[i], follows[i] = make([]int, n), make([]int, n)
		}
		for r := range rounds {
			order := Order(n, r)
			if s := slices.Sorted(slices.Values(order)); len(s) != n || s[0] != 0 || s[n-1] != n-1 || len(slices.Compact(s)) != n {
				t.Fatalf("%d contestants, repetition %d: order %v", n, r, order)
			}
			for place, who := range order {
				places[who][place]++
				if place > 0 {
					follows[who][order[place-1]]++
				}
			}
		}
		for i := range n {
			for k := range n {
				if places[i][k] != rounds/n {
					t.Errorf("%d contestants: number %d is %d times at place %d in %d repetitions", n, i, places[i][k], k, rounds)
				}
				if want := rounds / n; i != k && follows[i][k] != want {
					t.Errorf("%d contestants: number %d comes %d times after %d, not %d", n, i, follows[i][k], k, want)
				}
			}
		}
	}
}

// cases are all cases of a suite by name.
func cases(t *testing.T, s *Suite) map[string]Case {
	t.Helper()
	all := make(map[string]Case)
	for _, l := range s.Launches {
		for _, c := range l.Cases {
			k, ok := all[c.Name]
			if ok {
				c.Contestants = Union(k.Contestants, c.Contestants)
			}
			all[c.Name] = c
		}
	}
	return all
}

func TestSuites(t *testing.T) {
	for name, e := range map[string]Effort{"full": Full, "quick": Quick} {
		t.Run(name, func(t *testing.T) {
			s := NewSuite(e)
			all := cases(t, s)
			bundle := false
			for _, l := range s.Launches {
				names := make(map[string]bool)
				for _, c := range l.Cases {
					if c.Ranks() != l.Ranks {
						t.Errorf("%v has %q, for %d ranks", l, c.Name, c.Ranks())
					}
					if names[c.Name] {
						t.Errorf("%v has %q twice", l, c.Name)
					}
					names[c.Name] = true
					if memory := 2 * c.Bytes(); memory > 4<<30 {
						t.Errorf("%q takes more than 4 GiB: %d", c.Name, memory)
					}
					if c.Kind == Restart && !bundle {
						t.Errorf("%v reads a bundle that nobody has written", l)
					}
					bundle = bundle || c.Kind == Bundle
					if c.Kind == Memory || c.Kind == Bundle {
						continue
					}
					if c.Repeats < 3 || c.Seconds <= 0 || len(c.Contestants) < 2 {
						t.Errorf("%v, %q: %d repetitions, %v s, contestants %v", l, c.Name, c.Repeats, c.Seconds, c.Contestants)
					}
					if OfFieldstone(c.Contestants[0]) {
						t.Errorf("%q has %s as its yardstick", c.Name, c.Contestants[0])
					}
				}
			}
			for _, m := range s.Measures {
				if m.Must <= 0 || m.Name == "" || len(m.Cases) == 0 {
					t.Errorf("measure %+v is incomplete", m)
				}
				for _, n := range m.Cases {
					c, ok := all[n]
					if !ok {
						t.Errorf("measure %q: nobody measures %q", m.Name, n)
					}
					for _, who := range append([]string{m.Ours}, m.Theirs...) {
						if !slices.Contains(c.Contestants, who) {
							t.Errorf("measure %q: %s is not in %q", m.Name, who, n)
						}
					}
				}
			}
			for _, g := range s.Growth {
				if len(g.X) != len(g.Cases) {
					t.Errorf("growth with %s has %d points and %d cases", g.Name, len(g.X), len(g.Cases))
				}
				for _, n := range g.Cases {
					if _, ok := all[n]; !ok {
						t.Errorf("growth with %s: nobody measures %q", g.Name, n)
					}
				}
			}
		})
	}
}

func TestBothFormsHaveTheSameMeasures(t *testing.T) {
	full, quick := NewSuite(Full).Measures, NewSuite(Quick).Measures
	if len(full) != len(quick) {
		t.Fatalf("%d and %d measures", len(full), len(quick))
	}
	for i := range full {
		a, b := full[i], quick[i]
		if a.Must != b.Must || a.Aim != b.Aim || a.Best != b.Best || !slices.Equal(a.Theirs, b.Theirs) || len(a.Cases) != len(b.Cases) {
			t.Errorf("measures differ: %+v, %+v", a, b)
		}
	}
}

func TestTheFullFormAlternatesTheComponents(t *testing.T) {
	var order []string
	for _, l := range NewSuite(Full).Launches {
		if l.Ranks == 2 && len(l.Cases) > 0 && l.Component != H5py && len(order) < 9 {
			order = append(order, l.Component)
		}
	}
	want := strings.Repeat("ompio romio mpich ", 3)
	if got := strings.Join(order, " ") + " "; got != want {
		t.Errorf("the order is %s", got)
	}
}

func TestOneNameIsOneSituation(t *testing.T) {
	for _, e := range []Effort{Full, Quick} {
		seen := make(map[string]string)
		for _, l := range NewSuite(e).Launches {
			for _, c := range l.Cases {
				c.Contestants, c.Repeats, c.Seconds = nil, 0, 0
				data, err := json.Marshal(c)
				if err != nil {
					t.Fatal(err)
				}
				if had, ok := seen[c.Name]; ok && had != string(data) {
					t.Errorf("%q stands for %s and %s", c.Name, had, data)
				}
				seen[c.Name] = string(data)
			}
		}
	}
}
