package repeats

import (
	"reflect"
	"testing"
)

func TestTracker(t *testing.T) {
	type state struct {
		number int64
		a, b   uint64
		want   []string
	}
	for name, states := range map[string][]state{
		"fields that change":       {{1, 1, 1, nil}, {2, 2, 2, nil}, {3, 1, 1, nil}},
		"fields that never change": {{1, 1, 1, nil}, {2, 1, 1, nil}, {3, 1, 1, nil}},
		"one that stops":           {{1, 1, 1, nil}, {2, 2, 2, nil}, {3, 2, 3, []string{"a"}}, {4, 2, 4, nil}, {5, 3, 5, nil}, {6, 3, 6, nil}},
		"both, in their order":     {{1, 1, 1, nil}, {2, 2, 2, nil}, {3, 2, 2, []string{"b", "a"}}},
		"one that begins late":     {{1, 1, 1, nil}, {2, 1, 2, nil}, {3, 2, 3, nil}, {4, 2, 4, []string{"a"}}},
		"the same state again":     {{1, 1, 1, nil}, {2, 2, 2, nil}, {2, 2, 2, nil}, {3, 2, 3, []string{"a"}}},
	} {
		var tracker Tracker
		for _, s := range states {
			got := tracker.Next(name, s.number, []string{"b", "a"}, map[string]uint64{"a": s.a, "b": s.b})
			if !reflect.DeepEqual(got, s.want) {
				t.Errorf("%s: state %d: %q, want %q", name, s.number, got, s.want)
			}
		}
	}
}

// A state whose checksums nobody knows, or which has other fields, says nothing.
func TestTrackerOfUnknownStates(t *testing.T) {
	var tracker Tracker
	for i, sums := range []map[string]uint64{{"a": 1}, nil, {"a": 1}, {"a": 1}, {"a": 2}, nil, {"a": 2}, {"b": 2}, {"a": 2}} {
		if got := tracker.Next("", int64(i), []string{"a"}, sums); got != nil {
			t.Errorf("state %d: %q", i, got)
		}
	}
	if got := tracker.Next("", 9, []string{"a"}, map[string]uint64{"a": 2}); len(got) != 1 {
		t.Errorf("%q, want one", got)
	}
}
