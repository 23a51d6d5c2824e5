// Package repeats finds fields that no longer change from one saved state of a run to the
// next, by the checksums that saves compute anyway.
package repeats

// A Tracker knows the last saved state of a run. The zero value knows none.
type Tracker struct {
	// Name is what the last state is called.
	Name string

	number int64             // of its step
	sums   map[string]uint64 // of its fields; nil: there is no state, or nobody knows
	moved  map[string]bool   // fields that have changed between two states
	said   map[string]bool   // fields that were named
}

// Begin is for the state that a run starts from. Sums are nil if they aren't known.
func (t *Tracker) Begin(name string, number int64, sums map[string]uint64) {
	t.Name, t.number, t.sums = name, number, sums
}

// Next is for the next state. It returns the fields, in the order of ids, that equal those
// of the state before, though they have changed earlier in this run: each of them once. A
// state that is saved a second time, of the same number, is no other one.
func (t *Tracker) Next(name string, number int64, ids []string, sums map[string]uint64) (equal []string) {
	if t.moved == nil {
		t.moved, t.said = map[string]bool{}, map[string]bool{}
	}
	for _, id := range ids {
		was, known := t.sums[id]
		is, knownNow := sums[id]
		switch {
		case !known || !knownNow || number == t.number:
		case was != is:
			t.moved[id] = true
		case t.moved[id] && !t.said[id]:
			t.said[id] = true
			equal = append(equal, id)
		}
	}
	t.Begin(name, number, sums)
	return equal
}
