package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// fakeBoundary has any JSON as configuration and state. The hooks fail with the
// errors, if they are set; the state that it refuses can't be restored, and the
// one that it chokes on is in place when the restore panics.
type fakeBoundary struct {
	config, state        string
	configErr, stateErr  error
	panics               string
	saved, restored      int
	collectiveInState    bool
	refuses, chokes      string
	restoreErrAfterFirst error
	badConfig            string // what Config panics with
}

func (b *fakeBoundary) Config() (json.RawMessage, error) {
	if b.badConfig != "" {
		panic(b.badConfig)
	}
	return json.RawMessage(b.config), b.configErr
}

func (b *fakeBoundary) CheckpointState(ctx context.Context, c *comm.Comm) (json.RawMessage, error) {
	b.saved++
	if b.panics != "" {
		panic(b.panics)
	}
	if b.stateErr != nil {
		return nil, b.stateErr
	}
	if b.collectiveInState {
		if err := c.Meet(ctx); err != nil {
			return nil, err
		}
	}
	if b.state == "" {
		return nil, nil
	}
	return json.RawMessage(b.state), nil
}

func (b *fakeBoundary) RestoreCheckpointState(state json.RawMessage) error {
	if b.refuses != "" && string(state) == b.refuses {
		return errors.New("state is refused")
	}
	if b.restored > 0 && b.restoreErrAfterFirst != nil {
		return b.restoreErrAfterFirst
	}
	b.restored++
	b.state = string(state)
	if b.chokes != "" && b.state == b.chokes {
		panic("half-way")
	}
	return nil
}

// preparedBoundary is a fakeBoundary with a PrepareRestore, whose commit panics
// with a state that it chokes on.
type preparedBoundary struct{ fakeBoundary }

func (b *preparedBoundary) PrepareRestore(state json.RawMessage) (func(), error) {
	if b.refuses != "" && string(state) == b.refuses {
		return nil, errors.New("state is refused")
	}
	return func() {
		if b.chokes != "" && string(state) == b.chokes {
			panic("no commit")
		}
		b.state = string(state)
	}, nil
}

// emptyHanded prepares nothing.
type emptyHanded struct{ fakeBoundary }

func (b *emptyHanded) PrepareRestore(json.RawMessage) (func(), error) { return nil, nil }

// sameOnRanks runs fn and demands the same error text on all ranks, which it returns.
func sameOnRanks(t *testing.T, ranks int, fn func(c *comm.Comm) error) error {
	t.Helper()
	errs := make([]error, ranks)
	if err := comm.Run(ranks, func(c *comm.Comm) error {
		errs[c.Rank()] = fn(c)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for r, err := range errs {
		if fmt.Sprint(err) != fmt.Sprint(errs[0]) {
			t.Errorf("rank 0: %v\nrank %d: %v", errs[0], r, err)
		}
		for _, s := range []error{ErrBoundary, ErrMismatch} {
			if errors.Is(err, s) != errors.Is(errs[0], s) {
				t.Errorf("rank %d: errors.Is %v is %t, not so on rank 0", r, s, errors.Is(err, s))
			}
		}
		if errors.Is(err, comm.ErrDead) {
			t.Errorf("rank %d: the ranks fell out of step: %v", r, err)
		}
	}
	return errs[0]
}

func TestBoundaryRecords(t *testing.T) {
	for _, c := range []struct {
		name       string
		boundaries func(rank int) []Boundary
		want       []BoundaryRecord
		err        string
	}{
		{"nil is nothing to say", func(int) []Boundary { return nil }, nil, ""},
		{"none are none", func(int) []Boundary { return []Boundary{} }, []BoundaryRecord{}, ""},
		{"configuration and state without white space", func(int) []Boundary {
			return []Boundary{
				&fakeBoundary{config: ` {"a": 1.0, "b": "x y"} `},
				&fakeBoundary{config: `2`, state: "[1,\n 2]"},
				&preparedBoundary{fakeBoundary{config: `3`, state: ` null `}},
			}
		}, []BoundaryRecord{
			{Config: json.RawMessage(`{"a":1.0,"b":"x y"}`)},
			{Config: json.RawMessage(`2`), State: json.RawMessage(`[1,2]`)},
			{Config: json.RawMessage(`3`)},
		}, ""},
		{"the spelling of rank 0", func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{
				config: []string{`{"a":1,"b":"<"}`, `{"b":"\u003c","a":1.0}`, `{"a":10e-1,"b":"<"}`}[rank],
				state:  []string{`1e3`, `1000`, `1000.0`}[rank],
			}}
		}, []BoundaryRecord{{Config: json.RawMessage(`{"a":1,"b":"<"}`), State: json.RawMessage(`1e3`)}}, ""},
		{"another state on two ranks", func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`}, &fakeBoundary{config: `2`, state: []string{`1`, `1.0000000000000000000001`, `2`}[rank]}}
		}, nil, "boundary condition 1: the ranks have not the same state: ranks [1 2] differ from rank 0"},
		{"a state on one rank only", func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: []string{``, ``, `2`}[rank]}}
		}, nil, "boundary condition 0: the ranks have not the same state: ranks [2] differ from rank 0"},
		{"another configuration on one rank", func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: []string{`{"a":1}`, `{"a":2}`, `{"a":1}`}[rank]}}
		}, nil, "boundary condition 0: the ranks have not the same configuration: ranks [1] differ from rank 0"},
		{"another number on one rank", func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`}, &fakeBoundary{config: `1`}, &fakeBoundary{config: `1`}}[:rank+1]
		}, nil, "boundary conditions don't fit: the ranks have from 1 to 3 boundary conditions"},
		{"a configuration fails on one rank, before a collective one", func(rank int) []Boundary {
			b := &fakeBoundary{config: `1`}
			if rank == 1 {
				b.configErr = errors.New("no file")
			}
			return []Boundary{b, &fakeBoundary{config: `1`, collectiveInState: true}}
		}, nil, "rank 1: boundary conditions don't fit: boundary condition 0: configuration: no file"},
		{"a state fails on one rank, before a collective one", func(rank int) []Boundary {
			b := &fakeBoundary{config: `1`}
			if rank == 2 {
				b.stateErr = errors.New("no memory")
			}
			return []Boundary{b, &fakeBoundary{config: `1`, collectiveInState: true}}
		}, nil, "rank 2: boundary conditions don't fit: boundary condition 0: state: no memory"},
		{"a hook panics on one rank", func(rank int) []Boundary {
			b := &fakeBoundary{config: `1`}
			if rank == 1 {
				b.panics = "index out of range"
			}
			return []Boundary{b, &fakeBoundary{config: `1`, collectiveInState: true}}
		}, nil, "rank 1: boundary conditions don't fit: boundary condition 0: panic: index out of range"},
		{"a condition that is nil", func(int) []Boundary { return []Boundary{nil} }, nil, "boundary condition 0: panic: "},
		{"a configuration that is not JSON", func(int) []Boundary { return []Boundary{&fakeBoundary{config: `{`}} },
			nil, "boundary condition 0: configuration: line 1, column 2: the text ends"},
		{"no configuration", func(int) []Boundary { return []Boundary{&fakeBoundary{}} }, nil, "boundary condition 0: configuration: line 1"},
		{"a state that is not JSON", func(int) []Boundary { return []Boundary{&fakeBoundary{config: `1`, state: `NaN`}} },
			nil, "boundary condition 0: state: line 1, column 1: want a JSON value, got 'N'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var all [][]BoundaryRecord
			err := sameOnRanks(t, 3, func(cm *comm.Comm) error {
				records, err := BoundaryRecords(context.Background(), cm, c.boundaries(cm.Rank()))
				mu.Lock()
				defer mu.Unlock()
				all = append(all, records)
				return err
			})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) || !errors.Is(err, ErrBoundary) {
					t.Errorf("got %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, records := range all {
				if fmt.Sprintf("%q", records) != fmt.Sprintf("%q", c.want) || (records == nil) != (c.want == nil) {
					t.Errorf("got %q, want %q", records, c.want)
				}
			}
		})
	}
}

func TestBoundaryRanksErrorNamesTheRanks(t *testing.T) {
	err := sameOnRanks(t, 12, func(c *comm.Comm) error {
		_, err := BoundaryRecords(context.Background(), c, []Boundary{&fakeBoundary{config: `1`, state: fmt.Sprint(c.Rank() % 6)}})
		var e *BoundaryRanksError
		if !errors.As(err, &e) || e.Index != 0 || e.What != "state" || !slices.Equal(e.Ranks, []int{1, 2, 3, 4, 5, 7, 8, 9, 10, 11}) {
			t.Errorf("got %+v", e)
		}
		return err
	})
	if !strings.HasSuffix(err.Error(), "ranks [1 2 3 4 5 7 8 9] and 2 more differ from rank 0") {
		t.Error(err)
	}
}

func TestRestoreBoundaries(t *testing.T) {
	record := func(config, state string) BoundaryRecord {
		r := BoundaryRecord{Config: json.RawMessage(config)}
		if state != "" {
			r.State = json.RawMessage(state)
		}
		return r
	}
	for _, c := range []struct {
		name       string
		records    []BoundaryRecord
		boundaries func(rank int) []Boundary
		want       []string // states afterwards
		err        string
		mismatch   bool
	}{
		{"states are put in place in order", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`), record(`3`, ``)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`}, &preparedBoundary{fakeBoundary{config: `2`}}, &fakeBoundary{config: `3`, state: `0`}}
		}, []string{`"a"`, `"b"`, ``}, "", false},
		{"configurations are equal as values",
			[]BoundaryRecord{record(`{"a":1,"b":[1.0,2e1],"c":"<\u00e9","d":{"x":0,"y":null}}`, `"new"`)},
			func(int) []Boundary {
				return []Boundary{&fakeBoundary{config: ` { "d":{"y":null, "x":-0.0e7}, "c":"\u003cé", "b":[1,20], "a":10e-1 }`}}
			}, []string{`"new"`}, "", false},
		{"a string is not a number", []BoundaryRecord{record(`{"a":"1"}`, `2`)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `{"a":1}`, state: `0`}}
		}, []string{`0`}, `boundary condition 0: the configuration of the bundle is {"a":"1"}, the solver's {"a":1}`, true},
		{"null is not absence", []BoundaryRecord{record(`{"a":null}`, `2`)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `{}`, state: `0`}}
		}, []string{`0`}, `the configuration of the bundle is {"a":null}, the solver's {}`, true},
		{"the order of elements counts", []BoundaryRecord{record(`[1,2]`, `2`)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `[2,1]`, state: `0`}}
		}, []string{`0`}, "the configuration of the bundle is", true},
		{"numbers are compared beyond float64", []BoundaryRecord{record(`9007199254740993`, `2`)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `9007199254740992`, state: `0`}}
		}, []string{`0`}, "the configuration of the bundle is", true},
		{"the second condition is compared before the first is changed",
			[]BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`)}, func(int) []Boundary {
				return []Boundary{&fakeBoundary{config: `1`, state: `0`}, &fakeBoundary{config: `3`, state: `0`}}
			}, []string{`0`, `0`}, "boundary condition 1: the configuration of the bundle is 2, the solver's 3", true},
		{"another configuration on one rank", []BoundaryRecord{record(`1`, `"a"`)}, func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: fmt.Sprint(1 + rank/2), state: `0`}}
		}, []string{`0`}, "rank 2: ", true},
		{"fewer conditions than saved", []BoundaryRecord{record(`1`, ``), record(`1`, ``)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}}
		}, []string{`0`}, "the bundle has 2 boundary conditions, the solver 1", true},
		{"none where some are saved", []BoundaryRecord{record(`1`, ``)}, func(int) []Boundary { return nil },
			nil, "the bundle has 1 boundary conditions, the solver 0", true},
		{"some where none are saved", []BoundaryRecord{}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}}
		}, []string{`0`}, "the bundle has 0 boundary conditions, the solver 1", true},
		{"another number on one rank", []BoundaryRecord{record(`1`, ``)}, func(rank int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}, &fakeBoundary{config: `1`, state: `0`}}[:1+rank/2]
		}, []string{`0`, `0`}, "the ranks have from 1 to 2 boundary conditions", false},
		{"a bundle without records restores conditions without state", nil, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}}
		}, []string{``}, "", false},
		{"a refusal after others were restored puts them back", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`), record(`3`, `"c"`)}, func(int) []Boundary {
			return []Boundary{
				&fakeBoundary{config: `1`, state: `0`, collectiveInState: true}, &preparedBoundary{fakeBoundary{config: `2`, state: `0`}},
				&fakeBoundary{config: `3`, state: `0`, refuses: `"c"`},
			}
		}, []string{`0`, `0`, `0`}, "rank 0: boundary conditions don't fit: boundary condition 2: state is refused", false},
		{"a refusal on one rank puts them back on all", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`)}, func(rank int) []Boundary {
			b := &fakeBoundary{config: `2`, state: `0`}
			if rank == 1 {
				b.refuses = `"b"`
			}
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}, b}
		}, []string{`0`, `0`}, "rank 1: boundary conditions don't fit: boundary condition 1: state is refused", false},
		{"a prepared refusal on one rank changes nothing", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`)}, func(rank int) []Boundary {
			b := &preparedBoundary{fakeBoundary{config: `2`, state: `0`}}
			if rank == 1 {
				b.refuses = `"b"`
			}
			return []Boundary{&preparedBoundary{fakeBoundary{config: `1`, state: `0`}}, b}
		}, []string{`0`, `0`}, "rank 1: boundary conditions don't fit: boundary condition 1: state is refused", false},
		{"a state that can't be put back is said", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`)}, func(int) []Boundary {
			return []Boundary{
				&fakeBoundary{config: `1`, state: `0`, restoreErrAfterFirst: errors.New("no memory")},
				&fakeBoundary{config: `2`, state: `0`, refuses: `"b"`},
			}
		}, []string{`"a"`, `0`}, "state is refused (and old states can't be put back: rank 0: boundary condition 0: no memory)", false},
		{"a restore that panics half-way on one rank is put back on all", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`), record(`3`, `"c"`)}, func(rank int) []Boundary {
			b := &fakeBoundary{config: `2`, state: `0`}
			if rank == 2 {
				b.chokes = `"b"`
			}
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}, b, &fakeBoundary{config: `3`, state: `0`}}
		}, []string{`0`, `0`, `0`}, "rank 2: boundary conditions don't fit: boundary condition 1: panic: half-way", false},
		{"a prepared restore without a function", []BoundaryRecord{record(`1`, `"a"`)}, func(int) []Boundary {
			return []Boundary{&emptyHanded{fakeBoundary{config: `1`, state: `0`}}}
		}, []string{`0`}, "boundary condition 0: PrepareRestore returned no function", false},
		{"a recorded state that is not JSON", []BoundaryRecord{record(`1`, `"a`)}, func(int) []Boundary {
			return []Boundary{&fakeBoundary{config: `1`, state: `0`}}
		}, []string{`0`}, "boundary condition 0: saved state: line 1", false},
		{"an old state that can't be read stops before the change", []BoundaryRecord{record(`1`, `"a"`), record(`2`, `"b"`)}, func(rank int) []Boundary {
			b := &fakeBoundary{config: `1`, state: `0`}
			if rank == 2 {
				b.stateErr = errors.New("not yet")
			}
			return []Boundary{b, &fakeBoundary{config: `2`, state: `0`, collectiveInState: true}}
		}, []string{`0`, `0`}, "rank 2: boundary conditions don't fit: boundary condition 0: state: not yet", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sameOnRanks(t, 3, func(cm *comm.Comm) error {
				boundaries := c.boundaries(cm.Rank())
				err := RestoreBoundaries(context.Background(), cm, c.records, boundaries)
				for i, b := range boundaries {
					if f := fakeOf(b); f.state != c.want[i] {
						t.Errorf("rank %d: condition %d has state %s, want %s", cm.Rank(), i, f.state, c.want[i])
					}
				}
				return err
			})
			switch {
			case c.err == "" && err != nil:
				t.Error(err)
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || !errors.Is(err, ErrBoundary)):
				t.Errorf("got %v, want %q", err, c.err)
			}
			if errors.Is(err, ErrMismatch) != c.mismatch {
				t.Errorf("%v is ErrMismatch: %t", err, !c.mismatch)
			}
		})
	}
}

func fakeOf(b Boundary) *fakeBoundary {
	switch b := b.(type) {
	case *preparedBoundary:
		return &b.fakeBoundary
	case *emptyHanded:
		return &b.fakeBoundary
	}
	return b.(*fakeBoundary)
}

// TestRanksThatDisagreeAboutConditionsStayInStep: whatever the ranks' lists of
// conditions, no hook that may be collective is called before they are known to
// be equal, and all ranks return the same error.
func TestRanksThatDisagreeAboutConditionsStayInStep(t *testing.T) {
	fixed := func() *fakeBoundary { return &fakeBoundary{config: `"fixed"`, state: `0`} }
	moving := func() *fakeBoundary { return &fakeBoundary{config: `"moving"`, state: `0`, collectiveInState: true} }
	records := []BoundaryRecord{
		{Config: json.RawMessage(`"moving"`), State: json.RawMessage(`1`)},
		{Config: json.RawMessage(`"fixed"`), State: json.RawMessage(`2`)},
	}
	cases := []struct {
		name       string
		boundaries func(odd bool) []Boundary
		save       string // the error
		restore    string // with records; empty: the same
	}{
		{"another order", func(odd bool) []Boundary {
			if odd {
				return []Boundary{fixed(), moving()}
			}
			return []Boundary{moving(), fixed()}
		}, "boundary condition 0: the ranks have not the same configuration: ranks %s differ from rank 0",
			`rank %d: the bundle does not match: boundary conditions don't fit: boundary condition 0: the configuration of the bundle is "moving", the solver's "fixed"`},
		{"one less", func(odd bool) []Boundary {
			if odd {
				return []Boundary{moving()}
			}
			return []Boundary{moving(), fixed()}
		}, "the ranks have from 1 to 2 boundary conditions", ""},
		{"nil among empty ones", func(odd bool) []Boundary {
			if odd {
				return nil
			}
			return []Boundary{}
		}, "some ranks have nil for boundary conditions, others a list of 0", ""},
		{"empty among nil ones", func(odd bool) []Boundary {
			if odd {
				return []Boundary{}
			}
			return nil
		}, "some ranks have nil for boundary conditions, others a list of 0", ""},
		{"nil among others", func(odd bool) []Boundary {
			if odd {
				return nil
			}
			return []Boundary{moving(), fixed()}
		}, "some ranks have nil for boundary conditions, others a list of 2", ""},
		{"a configuration that fails", func(odd bool) []Boundary {
			b := moving()
			if odd {
				b.configErr = errors.New("no file")
			}
			return []Boundary{b, fixed()}
		}, "rank %d: boundary conditions don't fit: boundary condition 0: configuration: no file", ""},
		{"a later configuration that fails", func(odd bool) []Boundary {
			b := fixed()
			if odd {
				b.configErr = errors.New("no file")
			}
			return []Boundary{moving(), b}
		}, "rank %d: boundary conditions don't fit: boundary condition 1: configuration: no file", ""},
		{"a configuration that panics", func(odd bool) []Boundary {
			b := moving()
			if odd {
				b.badConfig = "nil map"
			}
			return []Boundary{b, fixed()}
		}, "rank %d: boundary conditions don't fit: boundary condition 0: panic: nil map", ""},
		{"a condition that is nil", func(odd bool) []Boundary {
			if odd {
				return []Boundary{nil, fixed()}
			}
			return []Boundary{moving(), fixed()}
		}, "rank %d: boundary conditions don't fit: boundary condition 0: panic: ", ""},
	}
	for _, op := range []struct {
		name    string
		run     func(c *comm.Comm, b []Boundary) error
		records bool
	}{
		{"save", func(c *comm.Comm, b []Boundary) error {
			_, err := BoundaryRecords(context.Background(), c, b)
			return err
		}, false},
		{"restore", func(c *comm.Comm, b []Boundary) error {
			return RestoreBoundaries(context.Background(), c, records, b)
		}, true},
		{"restore without records", func(c *comm.Comm, b []Boundary) error {
			return RestoreBoundaries(context.Background(), c, nil, b)
		}, false},
	} {
		for _, c := range cases {
			for odd := range 3 {
				t.Run(fmt.Sprintf("%s, %s on rank %d", op.name, c.name, odd), func(t *testing.T) {
					want := c.save
					if op.records && c.restore != "" {
						want = c.restore
					}
					different := "[" + strconv.Itoa(odd) + "]" // from rank 0
					if odd == 0 {
						different = "[1 2]"
					}
					want = strings.NewReplacer("%d", strconv.Itoa(odd), "%s", different).Replace(want)
					err := sameOnRanks(t, 3, func(cm *comm.Comm) error {
						boundaries := c.boundaries(cm.Rank() == odd)
						err := op.run(cm, boundaries)
						for i, b := range boundaries {
							if b == nil {
								continue
							}
							if f := fakeOf(b); f.saved != 0 || f.restored != 0 || f.state != `0` {
								t.Errorf("rank %d: the hooks of condition %d were called: %+v", cm.Rank(), i, f)
							}
						}
						return err
					})
					if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, ErrBoundary) {
						t.Errorf("got %v, want %q", err, want)
					}
				})
			}
		}
	}
}

// TestTheExamplesInAnotherOrderOnOneRank: the hook of Moving is collective, that
// of Fixed isn't.
func TestTheExamplesInAnotherOrderOnOneRank(t *testing.T) {
	err := sameOnRanks(t, 2, func(c *comm.Comm) error {
		front, err := NewMoving(movingDomain, movingConfig)
		if err != nil {
			return err
		}
		wall, err := NewFixed(FixedConfig{Axis: "y", Side: "low", Value: 1})
		if err != nil {
			return err
		}
		list := []Boundary{front, wall}
		if c.Rank() == 1 {
			slices.Reverse(list)
		}
		_, err = BoundaryRecords(context.Background(), c, list)
		var e *BoundaryRanksError
		if !errors.As(err, &e) || e.Index != 0 || e.What != "configuration" || !slices.Equal(e.Ranks, []int{1}) {
			t.Errorf("rank %d: got %v", c.Rank(), err)
		}
		return err
	})
	if err == nil {
		t.Error("no error")
	}
}

func TestRanksThatDisagreeAboutRecordsRestoreNothing(t *testing.T) {
	good := func() []BoundaryRecord {
		return []BoundaryRecord{{Config: json.RawMessage(`1`), State: json.RawMessage(` {"a": 1} `)}, {Config: json.RawMessage(`2`)}}
	}
	for _, c := range []struct {
		name    string
		records []BoundaryRecord // of rank 1
		want    string
	}{
		{"the same in another spelling", []BoundaryRecord{{Config: json.RawMessage(`1.0`), State: json.RawMessage(`{"a":1e0}`)}, {Config: json.RawMessage(`2`), State: json.RawMessage(`null`)}}, ""},
		{"none", nil, "some ranks have nil for records of boundary conditions, others a list of 2"},
		{"one less", good()[:1], "the ranks have from 1 to 2 records of boundary conditions"},
		{"another configuration", []BoundaryRecord{{Config: json.RawMessage(`7`)}, good()[1]}, "rank 1: the bundle does not match: "},
		{"another state", []BoundaryRecord{{Config: json.RawMessage(`1`), State: json.RawMessage(`{"a":2}`)}, good()[1]},
			"boundary condition 0: the ranks have not the same recorded state: ranks [1] differ from rank 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sameOnRanks(t, 3, func(cm *comm.Comm) error {
				records := good()
				if cm.Rank() == 1 {
					records = c.records
				}
				list := []*fakeBoundary{{config: `1`, state: `0`, collectiveInState: true}, {config: `2`, state: `0`}}
				err := RestoreBoundaries(context.Background(), cm, records, []Boundary{list[0], list[1]})
				if c.want != "" && (list[0].saved != 0 || list[0].state != `0` || list[1].state != `0`) {
					t.Errorf("rank %d: the conditions are %+v and %+v", cm.Rank(), list[0], list[1])
				}
				return err
			})
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !errors.Is(err, ErrBoundary)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestWhatCannotBePutBackOnOneRankIsSaidOnAll: the failure of an undo, or of a
// commit, is one rank's; its text is everybody's.
func TestWhatCannotBePutBackOnOneRankIsSaidOnAll(t *testing.T) {
	records := []BoundaryRecord{
		{Config: json.RawMessage(`1`), State: json.RawMessage(`"a"`)},
		{Config: json.RawMessage(`2`), State: json.RawMessage(`"b"`)},
	}
	for _, c := range []struct {
		name       string
		boundaries func(odd bool) []Boundary
		want       string
		states     func(odd bool) []string
	}{
		{"an undo that fails", func(odd bool) []Boundary {
			first := &fakeBoundary{config: `1`, state: `0`}
			if odd {
				first.restoreErrAfterFirst = errors.New("no memory")
			}
			return []Boundary{first, &fakeBoundary{config: `2`, state: `0`, refuses: `"b"`}}
		}, "rank 0: boundary conditions don't fit: boundary condition 1: state is refused (and old states can't be put back: rank 2: boundary condition 0: no memory)",
			func(odd bool) []string {
				if odd {
					return []string{`"a"`, `0`}
				}
				return []string{`0`, `0`}
			}},
		{"a commit that panics", func(odd bool) []Boundary {
			first := &preparedBoundary{fakeBoundary{config: `1`, state: `0`}}
			if odd {
				first.chokes = `"a"`
			}
			return []Boundary{first, &preparedBoundary{fakeBoundary{config: `2`, state: `0`}}}
		}, "rank 2: boundary conditions don't fit: boundary condition 0: old and new states are in place now: panic: no commit",
			func(odd bool) []string {
				if odd {
					return []string{`0`, `"b"`}
				}
				return []string{`"a"`, `"b"`}
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := sameOnRanks(t, 3, func(cm *comm.Comm) error {
				odd := cm.Rank() == 2
				boundaries := c.boundaries(odd)
				err := RestoreBoundaries(context.Background(), cm, records, boundaries)
				for i, want := range c.states(odd) {
					if got := fakeOf(boundaries[i]).state; got != want {
						t.Errorf("rank %d: condition %d has state %s, want %s", cm.Rank(), i, got, want)
					}
				}
				return err
			})
			if err == nil || err.Error() != c.want || !errors.Is(err, ErrBoundary) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestRestoreBoundariesCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := sameOnRanks(t, 2, func(c *comm.Comm) error {
		b := &fakeBoundary{config: `1`, state: `0`}
		err := RestoreBoundaries(ctx, c, []BoundaryRecord{{Config: json.RawMessage(`1`), State: json.RawMessage(`2`)}}, []Boundary{b})
		if b.state != `0` {
			t.Errorf("state %s", b.state)
		}
		return err
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
