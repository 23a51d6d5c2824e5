package record

import (
	"fmt"
	"slices"
	"strconv"
)

// A Change says how two records differ at a path.
type Change uint8

// The changes.
const (
	OnlyA        Change = iota + 1 // only the first record has the entry
	OnlyB                          // only the second record has it
	TypeChanged                    // another kind, or another element type of an array
	ShapeChanged                   // other dimensions of an array, another length of a list of strings
	ValueChanged                   // other values
	OrderChanged                   // a list of records has the common names in another order
)

var changeNames = [...]string{
	OnlyA: "only in A", OnlyB: "only in B", TypeChanged: "type", ShapeChanged: "shape",
	ValueChanged: "value", OrderChanged: "order",
}

// String returns "only in A", "only in B", "type", "shape", "value" or "order".
func (c Change) String() string {
	if c < OnlyA || c > OrderChanged {
		return "Change(" + strconv.Itoa(int(c)) + ")"
	}
	return changeNames[c]
}

// MarshalText returns what String does.
func (c Change) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// A Difference is one entry in which two records differ.
type Difference struct {
	Path   string `json:"path"` // as for [Record.Get]
	Change Change `json:"change"`
	A      string `json:"a,omitempty"` // what the first record has, shortened
	B      string `json:"b,omitempty"` // what the second one has
	// Of arrays and lists of strings with other values: how many elements differ,
	// and the indices of the first that does, from 0. A and B are its values.
	Count int   `json:"count,omitempty"`
	Index []int `json:"index,omitempty"`
}

// String returns the difference as a line, such as
// "solver/tolerance: value: 1e-06 -> 1e-08".
func (d Difference) String() string {
	path := quoteKey(d.Path)
	switch d.Change {
	case OnlyA:
		return fmt.Sprintf("%s: %v: %s", path, d.Change, d.A)
	case OnlyB:
		return fmt.Sprintf("%s: %v: %s", path, d.Change, d.B)
	}
	if d.Index != nil {
		return fmt.Sprintf("%s: %v: %s -> %s at %v, the first of %d", path, d.Change, d.A, d.B, d.Index, d.Count)
	}
	return fmt.Sprintf("%s: %v: %s -> %s", path, d.Change, d.A, d.B)
}

// Diff returns the entries in which two records differ: in the order of a, each
// record followed by what only b has in it. Of an entry that only one has, nothing
// below it is listed. The order of keys is no difference; entries of lists of records
// are compared by name, members of lists of arrays by number. Diff returns nothing
// exactly if the records are equal.
func Diff(a, b Record) []Difference {
	return diffRecords(nil, "", a, b)
}

func diffRecords(diffs []Difference, prefix string, a, b Record) []Difference {
	for key, v := range a.All() {
		w, ok := b.at(key)
		if !ok {
			diffs = append(diffs, Difference{Path: prefix + key, Change: OnlyA, A: v.short()})
			continue
		}
		diffs = diffValues(diffs, prefix+key, v, w)
	}
	for key, w := range b.All() {
		if _, ok := a.at(key); !ok {
			diffs = append(diffs, Difference{Path: prefix + key, Change: OnlyB, B: w.short()})
		}
	}
	return diffs
}

func diffValues(diffs []Difference, path string, v, w Value) []Difference {
	if v.kind != w.kind {
		return append(diffs, Difference{Path: path, Change: TypeChanged, A: v.describe(), B: w.describe()})
	}
	switch v.kind {
	case Group:
		return diffRecords(diffs, path+"/", v.record(), w.record())
	case Records:
		return diffLists(diffs, path, v.list(), w.list())
	case Arrays:
		for i := range max(len(v.arrays()), len(w.arrays())) {
			member := path + "/" + strconv.Itoa(i+1)
			switch {
			case i >= len(w.arrays()):
				diffs = append(diffs, Difference{Path: member, Change: OnlyA, A: v.arrays()[i].text(4)})
			case i >= len(v.arrays()):
				diffs = append(diffs, Difference{Path: member, Change: OnlyB, B: w.arrays()[i].text(4)})
			default:
				diffs = diffArrays(diffs, member, v.arrays()[i], w.arrays()[i])
			}
		}
		return diffs
	case Numbers:
		return diffArrays(diffs, path, v.array(), w.array())
	case Texts:
		return diffTexts(diffs, path, v, w)
	}
	if !v.Equal(w) {
		diffs = append(diffs, Difference{Path: path, Change: ValueChanged, A: v.short(), B: w.short()})
	}
	return diffs
}

func diffArrays(diffs []Difference, path string, a, b Array) []Difference {
	d := Difference{Path: path}
	switch {
	case a.Type() != b.Type():
		d.Change, d.A, d.B = TypeChanged, a.text(4), b.text(4)
	case !slices.Equal(a.shape(), b.shape()):
		d.Change, d.A, d.B = ShapeChanged, a.text(4), b.text(4)
	default:
		first := 0
		if d.Count = a.store().differ(b.store(), &first); d.Count == 0 {
			return diffs
		}
		d.Change, d.Index = ValueChanged, a.index(first)
		d.A = string(a.store().appendNumber(nil, first))
		d.B = string(b.store().appendNumber(nil, first))
	}
	return append(diffs, d)
}

func diffTexts(diffs []Difference, path string, v, w Value) []Difference {
	a, b := v.texts(), w.texts()
	if len(a) != len(b) {
		return append(diffs, Difference{Path: path, Change: ShapeChanged, A: v.short(), B: w.short()})
	}
	d := Difference{Path: path, Change: ValueChanged}
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if d.Count++; d.Count == 1 {
			d.Index = []int{i}
			d.A, d.B = strconv.Quote(shorten(a[i])), strconv.Quote(shorten(b[i]))
		}
	}
	if d.Count == 0 {
		return diffs
	}
	return append(diffs, d)
}

func diffLists(diffs []Difference, path string, a, b *list) []Difference {
	var namesA, namesB []string // that both have
	for name, i := range a.inOrder() {
		j, ok := b.names[name]
		if !ok {
			diffs = append(diffs, Difference{Path: path + "/" + name, Change: OnlyA, A: Value{kind: Group, ref: a.entries[i]}.short()})
			continue
		}
		namesA = append(namesA, name)
		diffs = diffRecords(diffs, path+"/"+name+"/", a.entries[i], b.entries[j])
	}
	for name, j := range b.inOrder() {
		if _, ok := a.names[name]; ok {
			namesB = append(namesB, name)
		} else {
			diffs = append(diffs, Difference{Path: path + "/" + name, Change: OnlyB, B: Value{kind: Group, ref: b.entries[j]}.short()})
		}
	}
	if !slices.Equal(namesA, namesB) {
		diffs = append(diffs, Difference{
			Path: path, Change: OrderChanged,
			A: Value{kind: Texts, ref: namesA}.short(), B: Value{kind: Texts, ref: namesB}.short(),
		})
	}
	return diffs
}
