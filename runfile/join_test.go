package runfile

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
)

// part makes a segment with a state of one number, which is the time, at each of the
// given times, and an attempt that aimed at each of the others.
func part(t *testing.T, file string, settings func(b *record.Builder), times, attempts []float64) *Solution {
	t.Helper()
	b := record.NewBuilder()
	settings(b)
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	s := &Solution{
		Files: []string{file}, Version: "0.0.5", Settings: r, Times: times,
		Layout:  Layout{Unknowns: []Unknown{{Name: "n", Kind: Scalar, Unit: "m^-3"}}},
		Updates: []UpdateStates{{Name: "interval"}},
		units:   map[string]string{"n": "m^-3"},
	}
	for i, time := range times {
		s.States = append(s.States, []float64{time})
		s.Updates[0].States = append(s.Updates[0].States, []float64{-time, 1})
		s.origins = append(s.origins, origin{file: file, index: i})
	}
	for i, time := range attempts {
		s.Statistics.Time = append(s.Statistics.Time, time)
		s.Statistics.Accepted = append(s.Statistics.Accepted, true)
		for k := range 2 {
			s.Statistics.IterationAttempt = append(s.Statistics.IterationAttempt, int64(i+1))
			s.Statistics.IterationResidual = append(s.Statistics.IterationResidual, time/float64(k+1))
		}
	}
	return s
}

// numbered is the settings of a segment that starts at a time after some attempts.
func numbered(index int64, start float64, before int64) func(b *record.Builder) {
	return func(b *record.Builder) {
		b.Text("setup_hash", "abc")
		b.Section("segment", func(b *record.Builder) {
			b.Int("index", index).Float("start_time", start)
			if before >= 0 {
				b.Int("attempts_before", before)
			}
			if index > 1 {
				b.Int("resumed_from_segment", index-1).Text("previous_setup_hash", "abc")
			}
		})
	}
}

func twoParts(t *testing.T) []*Solution {
	return []*Solution{
		part(t, "a.h5", numbered(1, 0, 0), []float64{0, 1, 2}, []float64{1, 2, 3}),
		part(t, "b.h5", numbered(2, 2, 2), []float64{3, 4}, []float64{3, 4}),
	}
}

func quiet(t *testing.T) func(string) {
	return func(text string) { t.Errorf("warning: %s", text) }
}

func TestSegmentsJoin(t *testing.T) {
	parts := twoParts(t)
	got, err := join(parts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 1, 2, 3, 4}; !slices.Equal(got.Times, want) {
		t.Errorf("times are %v, want %v", got.Times, want)
	}
	for i, time := range got.Times {
		if got.States[i][0] != time || got.Updates[0].States[i][0] != -time {
			t.Errorf("state %d is %v with update %v, its time is %v", i, got.States[i], got.Updates[0].States[i], time)
		}
	}
	want := []origin{{"a.h5", 0, ""}, {"a.h5", 1, ""}, {"a.h5", 2, ""}, {"b.h5", 0, ""}, {"b.h5", 1, ""}}
	if !slices.Equal(got.origins, want) {
		t.Errorf("origins are %v, want %v", got.origins, want)
	}
	if want := []string{"a.h5", "b.h5"}; !slices.Equal(got.Files, want) {
		t.Errorf("files are %v, want %v", got.Files, want)
	}
	if !got.Settings.Equal(parts[1].Settings) {
		t.Error("the settings are not those of the last segment")
	}
}

func TestRepeatedStatesAreDropped(t *testing.T) {
	parts := []*Solution{
		part(t, "a.h5", numbered(1, 0, 0), []float64{0, 1, 2, 3, 4}, []float64{1, 2, 3, 4}),
		part(t, "b.h5", numbered(2, 2.5, 2), []float64{3.5, 4}, []float64{3.5, 4}),
		part(t, "c.h5", numbered(3, 1.5, 1), []float64{9}, nil),
	}
	got, err := join(parts[:2], quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 1, 2, 3.5, 4}; !slices.Equal(got.Times, want) {
		t.Errorf("times are %v, want %v", got.Times, want)
	}
	if n := len(got.Updates[0].States); n != 5 {
		t.Errorf("%d states of the update, want 5", n)
	}
	if n := len(parts[0].Times) + len(parts[0].Updates[0].States); n != 10 {
		t.Errorf("joining changed a part: %d", n)
	}
	// A later segment may go back behind one that saved nothing.
	parts[1] = part(t, "b.h5", numbered(2, 1, 1), nil, []float64{1.5, 2.5})
	got, err = join(parts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{0, 1, 9}; !slices.Equal(got.Times, want) {
		t.Errorf("times are %v, want %v", got.Times, want)
	}
}

func TestStatisticsAreCutWhereTheNextSegmentBegins(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		name       string
		a, b       func(*record.Builder)
		attempts   []float64 // of a
		times      []float64 // joined
		iterations []int64
	}{
		// The third attempt was rejected, and aimed beyond the checkpoint.
		{"at the count", numbered(1, 0, 0), numbered(2, 2, 3), []float64{1, 2, 3.5, 3}, []float64{1, 2, 3.5, 7, 8},
			[]int64{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}},
		{"at the difference of the counts", numbered(1, 0, 10), numbered(2, 2, 12), []float64{1, 2, 3}, []float64{1, 2, 7, 8},
			[]int64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"at the start time without the first count", numbered(1, 0, -1), numbered(2, 2, 3), []float64{1, 3.5, 2, 3}, []float64{1, 2, 7, 8},
			[]int64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"at the start time without the second count", numbered(1, 0, 0), numbered(2, 2, -1), []float64{1, 2, 3}, []float64{1, 2, 7, 8},
			[]int64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"after all that there are", numbered(1, 0, 0), numbered(2, 2, 2), []float64{1, 2}, []float64{1, 2, 7, 8},
			[]int64{1, 1, 2, 2, 3, 3, 4, 4}},
		{"no more than there are", numbered(1, 0, 5), numbered(2, 2, 3), []float64{1, 2}, []float64{7, 8},
			[]int64{1, 1, 2, 2}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			parts := []*Solution{part(t, "a.h5", tc.a, []float64{0}, tc.attempts), part(t, "b.h5", tc.b, []float64{7}, []float64{7, 8})}
			parts[0].Statistics.WallTime = nil // as in an older file
			parts[1].Statistics.WallTime = []float64{70, 80}
			got, err := join(parts, quiet(t))
			if err != nil {
				t.Fatal(err)
			}
			s := got.Statistics
			if !slices.Equal(s.Time, tc.times) {
				t.Errorf("times are %v, want %v", s.Time, tc.times)
			}
			if !slices.Equal(s.IterationAttempt, tc.iterations) {
				t.Errorf("iterations are of the attempts %v, want %v", s.IterationAttempt, tc.iterations)
			}
			for i, attempt := range s.IterationAttempt {
				if want := s.Time[attempt-1] / float64(i%2+1); s.IterationResidual[i] != want {
					t.Errorf("iteration %d has the residual %v, want %v", i, s.IterationResidual[i], want)
				}
			}
			want := append(slices.Repeat([]float64{nan}, len(tc.times)-2), 70, 80)
			if !cmp.Equal(s.WallTime, want, cmpopts.EquateNaNs()) {
				t.Errorf("wall times are %v, want %v", s.WallTime, want)
			}
			if n := len(s.Outcome); n != len(tc.times) || s.Outcome[0] != "unknown" {
				t.Errorf("outcomes are %v", s.Outcome)
			}
		})
	}
}

func TestThreeSegmentsKeepTheirStatisticsApart(t *testing.T) {
	parts := []*Solution{
		part(t, "a.h5", numbered(1, 0, 0), nil, []float64{1, 2, 3}),
		part(t, "b.h5", numbered(2, 2, 2), nil, []float64{3, 4, 5}),
		part(t, "c.h5", numbered(3, 3, 3), nil, []float64{4.5}),
	}
	got, err := join(parts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if want := []float64{1, 2, 3, 4.5}; !slices.Equal(got.Statistics.Time, want) {
		t.Errorf("attempts aimed at %v, want %v", got.Statistics.Time, want)
	}
	if want := []int64{1, 1, 2, 2, 3, 3, 4, 4}; !slices.Equal(got.Statistics.IterationAttempt, want) {
		t.Errorf("iterations are of the attempts %v, want %v", got.Statistics.IterationAttempt, want)
	}
}

func TestFilesThatAreNotOneRunAreRefused(t *testing.T) {
	cases := []struct {
		name   string
		change func(t *testing.T, parts []*Solution)
		want   []string
	}{
		{"a segment that starts before the one before it", func(t *testing.T, parts []*Solution) {
			parts[0] = part(t, "a.h5", numbered(1, 2.5, 0), []float64{3}, nil)
		}, []string{"a.h5", "b.h5", "2.5 s", "2 s"}},
		{"resumed from another segment", func(t *testing.T, parts []*Solution) {
			parts[0] = part(t, "a.h5", numbered(4, 0, 0), []float64{1}, nil)
			parts[0].Settings = without(t, parts[0].Settings, "resumed_from_segment")
		}, []string{"a.h5", "b.h5", "segment 1", "segment 4"}},
		{"another setup", func(t *testing.T, parts []*Solution) {
			b := record.NewBuilder().Text("setup_hash", "xyz")
			parts[0].Settings, _ = b.Build()
		}, []string{"a.h5", "b.h5", "abc", "xyz"}},
		{"other unknowns", func(_ *testing.T, parts []*Solution) {
			parts[1].Layout = Layout{Unknowns: []Unknown{{Name: "m", Kind: Scalar}}}
		}, []string{"a.h5", "b.h5", "unknowns are n and m"}},
		{"another length of the state", func(_ *testing.T, parts []*Solution) {
			parts[1].Layout = Layout{R: []float64{0, 1, 2}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: 3}}}
		}, []string{"a.h5", "b.h5", "1 and 6 numbers"}},
		{"other lengths that come to the same", func(_ *testing.T, parts []*Solution) {
			for i, p := range parts {
				p.Layout = Layout{R: []float64{0, 1}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: 1 + i}, {Name: "m", Kind: Radial, Components: 2 - i}}}
			}
		}, []string{"a.h5", "b.h5", `"n"`, "1 and 2 numbers"}},
		{"a field and none", func(_ *testing.T, parts []*Solution) {
			parts[0].Layout.Unknowns = append(parts[0].Layout.Unknowns, Unknown{Name: "phi", Kind: Field, Domain: cube})
			parts[1].Layout.Unknowns = append(parts[1].Layout.Unknowns, Unknown{Name: "phi", Kind: Scalar})
		}, []string{"a.h5", "b.h5", `"phi"`, "field and scalar"}},
		{"another size of a field", func(_ *testing.T, parts []*Solution) {
			for i, p := range parts {
				p.Layout = Layout{Unknowns: []Unknown{{Name: "n", Kind: Field}}}
				p.Layout.Unknowns[0].Domain.Size = [3]int{4, 4, 4 + i}
			}
		}, []string{"a.h5", "b.h5", `field "n"`, "[4 4 4]", "[4 4 5]"}},
		{"other updates", func(_ *testing.T, parts []*Solution) {
			parts[1].Updates[0].Name = "other"
		}, []string{"a.h5", "b.h5", "interval of 2", "other of 2"}},
		{"an update with another length", func(_ *testing.T, parts []*Solution) {
			for i := range parts[1].Updates[0].States {
				parts[1].Updates[0].States[i] = []float64{1}
			}
		}, []string{"interval of 2", "interval of 1"}},
		{"no updates", func(_ *testing.T, parts []*Solution) { parts[1].Updates = nil },
			[]string{"a.h5", "b.h5", "interval of 2 and none"}},
		{"times that go back", func(t *testing.T, parts []*Solution) {
			parts[1] = part(t, "b.h5", numbered(2, 2, 2), []float64{1.5, 4}, nil)
		}, []string{"a.h5", "b.h5", "2 s is followed by 1.5 s"}},
		{"a time twice", func(t *testing.T, parts []*Solution) {
			parts[1] = part(t, "b.h5", numbered(2, 2, 2), []float64{2, 4}, nil)
		}, []string{"a.h5", "b.h5", "2 s is followed by 2 s"}},
		{"times that go back in the first file", func(t *testing.T, parts []*Solution) {
			parts[0] = part(t, "a.h5", numbered(1, 0, 0), []float64{1, 0}, nil)
		}, []string{"a.h5", "1 s is followed by 0 s"}},
		{"times that go back in a later file", func(t *testing.T, parts []*Solution) {
			parts[1] = part(t, "b.h5", numbered(2, 2, 2), []float64{4, 3}, nil)
		}, []string{"b.h5", "4 s is followed by 3 s"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			parts := twoParts(t)
			tc.change(t, parts)
			_, err := join(parts, quiet(t))
			if !errors.Is(err, ErrNotOneRun) {
				t.Fatalf("error is %v, want one that is %q", err, ErrNotOneRun)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q doesn't say %q", err, want)
				}
			}
		})
	}
}

// with gives entries of the segment's record other values.
func with(t *testing.T, s *Solution, entries map[string]any) *Solution {
	t.Helper()
	segment, err := s.Settings.Record("segment")
	for key, value := range entries {
		if err == nil {
			segment, err = segment.With(key, value)
		}
	}
	if err == nil {
		s.Settings, err = s.Settings.With("segment", segment)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var cube = grid.Domain{Size: [3]int{4, 4, 4}, Spacing: [3]float64{1, 1, 1}}

// heard collects warnings.
func heard() (warn func(string), warnings *[]string) {
	warnings = new([]string)
	return func(text string) { *warnings = append(*warnings, text) }, warnings
}

// saysAll checks that there is one text, which has all the words.
func saysAll(t *testing.T, texts []string, words []string) {
	t.Helper()
	if len(texts) != 1 {
		t.Errorf("there are %d warnings: %q", len(texts), texts)
		return
	}
	for _, word := range words {
		if !strings.Contains(texts[0], word) {
			t.Errorf("%q doesn't say %q", texts[0], word)
		}
	}
}

// Segments between which something is missing are joined all the same, with a warning, as
// far as their records tell.
func TestHolesBetweenSegmentsAreWarnings(t *testing.T) {
	type entries map[string]any
	for _, tc := range []struct {
		name string
		a, b entries
		want []string // empty: no warning
	}{
		{"the first ends before the second starts", entries{"end_time": 1.0}, entries{},
			[]string{"a.h5", "b.h5", "ends at 1 s", "starts at 2 s"}},
		{"states are missing", entries{"saved_before": int64(0)}, entries{"saved_before": int64(4)},
			[]string{"a.h5", "b.h5", "3 states are saved before", "counts 4"}},
		{"attempts are missing", entries{}, entries{"attempts_before": int64(42)},
			[]string{"a.h5", "b.h5", "3 steps are attempted before", "counts 42"}},
		{"the second goes on where the first ends", entries{"end_time": 2.0, "saved_before": int64(0)}, entries{"saved_before": int64(3)}, nil},
		{"the first went on", entries{"end_time": 2.5, "saved_before": int64(0)}, entries{"saved_before": int64(3)}, nil},
		{"a run of another segment before", entries{"saved_before": int64(2)}, entries{"saved_before": int64(5)}, nil},
		{"fewer were counted", entries{"saved_before": int64(0)}, entries{"saved_before": int64(1)}, nil},
		{"the first doesn't tell", entries{}, entries{"saved_before": int64(9)}, nil},
		{"the second doesn't tell", entries{"saved_before": int64(9)}, entries{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parts := []*Solution{
				with(t, part(t, "a.h5", numbered(1, 0, 0), []float64{0, 1, 2, 3}, []float64{1, 2, 3}), tc.a),
				with(t, part(t, "b.h5", numbered(2, 2, 2), []float64{4}, []float64{4}), tc.b),
			}
			warn, warnings := heard()
			got, err := join(parts, warn)
			if err != nil {
				t.Fatal(err)
			}
			if want := []float64{0, 1, 2, 4}; !slices.Equal(got.Times, want) {
				t.Errorf("times are %v, want %v", got.Times, want)
			}
			if tc.want == nil {
				if len(*warnings) > 0 {
					t.Errorf("warnings: %q", *warnings)
				}
				return
			}
			saysAll(t, *warnings, tc.want)
		})
	}
}

// A hole behind the second of three segments is noticed, also where the first two have been
// joined already, and where the join begins with a later segment.
func TestHolesBehindLaterSegments(t *testing.T) {
	parts := func(third int64) []*Solution {
		return []*Solution{
			with(t, part(t, "a.h5", numbered(1, 0, 0), []float64{0, 1, 2}, []float64{1, 2}), map[string]any{"saved_before": int64(0)}),
			with(t, part(t, "b.h5", numbered(2, 2, 2), []float64{3, 4}, []float64{3, 4}), map[string]any{"saved_before": int64(3)}),
			with(t, part(t, "c.h5", numbered(3, 4, 4), []float64{6}, []float64{6}), map[string]any{"saved_before": third}),
		}
	}
	for third, hole := range map[int64]bool{5: false, 6: true} {
		for name, joined := range map[string]func(p []*Solution) ([]*Solution, error){
			"three segments":  func(p []*Solution) ([]*Solution, error) { return p, nil },
			"from the second": func(p []*Solution) ([]*Solution, error) { return p[1:], nil },
			"two joined before": func(p []*Solution) ([]*Solution, error) {
				first, err := join(p[:2], quiet(t))
				return []*Solution{first, p[2]}, err
			},
		} {
			list, err := joined(parts(third))
			warn, warnings := heard()
			if err == nil {
				_, err = join(list, warn)
			}
			if err != nil || (len(*warnings) == 1) != hole {
				t.Errorf("%s, %d states saved before the third: %v, warnings %q", name, third, err, *warnings)
			}
		}
	}
}

// What isn't on the list of reasons is none to refuse a join.
func TestWhatIsNoReasonToRefuse(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, parts []*Solution)
		want   []string // of the warning, empty for none
	}{
		{"the first has no statistics", func(t *testing.T, parts []*Solution) { parts[0].Statistics = Statistics{} },
			[]string{"a.h5", "b.h5", "0 steps are attempted before", "counts 2"}},
		{"the setup of the first is not known", func(t *testing.T, parts []*Solution) {
			parts[0].Settings = withEntry(t, parts[0].Settings, "setup_hash", "unknown")
		}, nil},
		{"the setup before the second is not known", func(t *testing.T, parts []*Solution) {
			with(t, parts[1], map[string]any{"previous_setup_hash": "unknown"})
		}, nil},
		{"neither is known", func(t *testing.T, parts []*Solution) {
			parts[0].Settings = withEntry(t, parts[0].Settings, "setup_hash", "")
			with(t, parts[1], map[string]any{"previous_setup_hash": "unknown"})
		}, nil},
		{"another spacing of a field", func(t *testing.T, parts []*Solution) {
			for i, p := range parts {
				phi := Unknown{Name: "phi", Kind: Field, Domain: cube}
				phi.Domain.Spacing[1] += float64(i)
				p.Layout.Unknowns = append(p.Layout.Unknowns, phi)
			}
		}, []string{"a.h5", "b.h5", `"phi"`, "domains"}},
		{"another kind", func(t *testing.T, parts []*Solution) {
			parts[1].Layout = Layout{R: []float64{0, 1}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: 1, Unit: "m^-3"}}}
		}, []string{"a.h5", "b.h5", `"n"`, "kinds"}},
		{"another radial grid", func(t *testing.T, parts []*Solution) {
			for i, p := range parts {
				p.Layout = Layout{R: []float64{0, 1 + float64(i)}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: 1, Unit: "m^-3"}}}
			}
		}, []string{"a.h5", "b.h5", `"n"`, "radial grids"}},
		{"another momentum grid", func(t *testing.T, parts []*Solution) {
			for i, p := range parts {
				p.Layout = Layout{R: []float64{0, 1}, Grids: []MomentumGrid{{Name: "g", P: []float64{0, 1 + float64(i)}, Xi: []float64{-1, 1}}},
					Unknowns: []Unknown{{Name: "n", Kind: Kinetic, Grids: []string{"g"}, Unit: "m^-3"}}}
			}
		}, []string{"a.h5", "b.h5", `"n"`, "momentum grids"}},
		{"another name of a momentum grid", func(t *testing.T, parts []*Solution) {
			for i, p := range parts {
				name := []string{"g", "h"}[i]
				p.Layout = Layout{R: []float64{0, 1}, Grids: []MomentumGrid{{Name: name, P: []float64{0, 1}, Xi: []float64{-1, 1}}},
					Unknowns: []Unknown{{Name: "n", Kind: Kinetic, Grids: []string{name}, Unit: "m^-3"}}}
			}
		}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parts := twoParts(t)
			tc.change(t, parts)
			warn, warnings := heard()
			got, err := join(parts, warn)
			if err != nil {
				t.Fatal(err)
			}
			if want := []float64{0, 1, 2, 3, 4}; !slices.Equal(got.Times, want) {
				t.Errorf("times are %v, want %v", got.Times, want)
			}
			if tc.want == nil {
				if len(*warnings) > 0 {
					t.Errorf("warnings: %q", *warnings)
				}
				return
			}
			saysAll(t, *warnings, tc.want)
		})
	}
}

// withEntry returns a record with another value of a key.
func withEntry(t *testing.T, r record.Record, key string, value any) record.Record {
	t.Helper()
	r, err := r.With(key, value)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// without returns settings whose segment record lacks a key.
func without(t *testing.T, settings record.Record, key string) record.Record {
	t.Helper()
	seg, err := settings.Record("segment")
	if err != nil {
		t.Fatal(err)
	}
	b := record.NewBuilder().Text("setup_hash", "abc")
	b.Section("segment", func(b *record.Builder) {
		for k, v := range seg.All() {
			if k != key {
				b.Set(k, v)
			}
		}
	})
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestWhatSettingsDontSayIsNotCompared(t *testing.T) {
	parts := twoParts(t)
	for _, p := range parts {
		p.Settings = record.Record{}
	}
	got, err := join(parts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Times) != 5 || got.Statistics.Attempts() != 5 {
		t.Errorf("%d states and %d attempts, want 5 and 5", len(got.Times), got.Statistics.Attempts())
	}
}

func TestAWrongTypeInTheSettingsIsAnErrorOfTheFile(t *testing.T) {
	parts := twoParts(t)
	b := record.NewBuilder()
	b.Section("segment", func(b *record.Builder) { b.Text("index", "two") })
	parts[1].Settings, _ = b.Build()
	_, err := join(parts, quiet(t))
	if !errors.Is(err, record.ErrType) || !strings.Contains(err.Error(), "b.h5") {
		t.Errorf("error is %v, want one about the type in b.h5", err)
	}
}

func TestUnitsAreTheLatest(t *testing.T) {
	cases := []struct {
		name     string
		units    []string // "-": not stored
		want     string
		warnings int
	}{
		{"the same", []string{"m", "m", "m"}, "m", 0},
		{"an older format first", []string{"-", "m", "-"}, "m", 0},
		{"an empty one last", []string{"m", "", "-"}, "", 0},
		{"two units", []string{"m", "cm", "cm"}, "cm", 1},
		{"two units around none", []string{"m", "", "cm"}, "cm", 1},
		{"none at all", []string{"-", "-", "-"}, "default", 0},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var parts []*Solution
			for i, unit := range tc.units {
				p := part(t, fmt.Sprintf("%d.h5", i), func(*record.Builder) {}, []float64{float64(i)}, nil)
				p.Layout.Unknowns[0].Unit = "default"
				p.units = nil
				if unit != "-" {
					p.units = map[string]string{"n": unit}
					p.Layout.Unknowns[0].Unit = unit
				}
				parts = append(parts, p)
			}
			var warnings []string
			got, err := join(parts, func(text string) { warnings = append(warnings, text) })
			if err != nil {
				t.Fatal(err)
			}
			if unit := got.Layout.Unknowns[0].Unit; unit != tc.want {
				t.Errorf("unit is %q, want %q", unit, tc.want)
			}
			if len(warnings) != tc.warnings {
				t.Errorf("warnings are %q, want %d", warnings, tc.warnings)
			}
			for _, w := range warnings {
				for _, want := range []string{`"n"`, `"m"`, `"cm"`, "0.h5"} {
					if !strings.Contains(w, want) {
						t.Errorf("warning %q doesn't say %s", w, want)
					}
				}
			}
		})
	}
}

// The output of joined segments can be joined with the next one, as the segments
// themselves: the attempts are cut by time, because their number is not known.
func TestJoinedOutputsJoinWithTheNextSegment(t *testing.T) {
	parts := []*Solution{
		part(t, "a.h5", numbered(1, 0, 0), []float64{0, 1, 2}, []float64{1, 2, 3}),
		part(t, "b.h5", numbered(2, 2, 2), []float64{3, 4, 5}, []float64{3, 4, 5}),
		part(t, "c.h5", numbered(3, 4, 4), []float64{6}, []float64{5, 6}),
	}
	want, err := join(parts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	first, err := join(parts[:2], quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := join([]*Solution{first, parts[2]}, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Times, want.Times) || !slices.Equal(got.Statistics.Time, want.Statistics.Time) {
		t.Errorf("got %v with attempts at %v, want %v and %v", got.Times, got.Statistics.Time, want.Times, want.Statistics.Time)
	}
	if !slices.Equal(got.Statistics.IterationAttempt, want.Statistics.IterationAttempt) {
		t.Errorf("iterations are of attempts %v, want %v", got.Statistics.IterationAttempt, want.Statistics.IterationAttempt)
	}
}
