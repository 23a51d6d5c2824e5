package record_test

import (
	"bytes"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/record"
)

// Few keys, so that two random records have some in common; some that sort
// differently by bytes, by code points and by UTF-16 units.
var (
	someKeys  = rapid.SampledFrom([]string{"a", "b", "B", "aa", "name", "φ", "\uffee", "\U0001d53d", " ", "..", "-1"})
	someTexts = rapid.OneOf(someKeys, rapid.SampledFrom([]string{"", "\"\\\n\x7f<", "1"}), rapid.StringMatching(`[^\x00]{0,5}`))
	someFloat = rapid.OneOf(
		rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, math.NaN(), math.Inf(1), math.Inf(-1), 5e-324, 1e16, 1e-4}),
		rapid.Map(rapid.Uint64(), math.Float64frombits))
	someFloat32 = rapid.OneOf(
		rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, 1e-45, 1e16}),
		rapid.Map(rapid.Uint32(), math.Float32frombits))
)

func drawArray(t *rapid.T) record.Array {
	dims := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 4).Draw(t, "dims")
	switch rapid.IntRange(0, 9).Draw(t, "element type") {
	case 0:
		return drawElements(t, dims, rapid.Int8())
	case 1:
		return drawElements(t, dims, rapid.Int16())
	case 2:
		return drawElements(t, dims, rapid.Int32())
	case 3:
		return drawElements(t, dims, rapid.Int64())
	case 4:
		return drawElements(t, dims, rapid.Uint8())
	case 5:
		return drawElements(t, dims, rapid.Uint16())
	case 6:
		return drawElements(t, dims, rapid.Uint32())
	case 7:
		return drawElements(t, dims, rapid.Uint64())
	case 8:
		return drawElements(t, dims, someFloat32)
	}
	return drawElements(t, dims, someFloat)
}

func drawElements[T record.Element](t *rapid.T, dims []int, element *rapid.Generator[T]) record.Array {
	n := 1
	for _, d := range dims {
		n *= d
	}
	a, err := record.NewArray(rapid.SliceOfN(element, n, n).Draw(t, "values"), dims...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func drawValue(t *rapid.T, depth int) any {
	kinds := 9
	if depth == 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds).Draw(t, "kind") {
	case 0:
		return rapid.Bool().Draw(t, "bool")
	case 1:
		return rapid.Int64().Draw(t, "int")
	case 2:
		return rapid.Uint64().Draw(t, "uint")
	case 3:
		return someFloat.Draw(t, "float")
	case 4:
		return someTexts.Draw(t, "text")
	case 5:
		return rapid.SliceOfN(someTexts, 0, 3).Draw(t, "texts")
	case 6:
		return drawArray(t)
	case 7:
		arrays := make([]record.Array, rapid.IntRange(0, 3).Draw(t, "arrays"))
		for i := range arrays {
			arrays[i] = drawArray(t)
		}
		return arrays
	case 8:
		return drawRecord(t, depth-1)
	}
	var list []record.Record
	for _, name := range rapid.SliceOfNDistinct(someKeys, 0, 3, rapid.ID[string]).Draw(t, "names") {
		entry, err := drawRecord(t, depth-1).With("name", name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, entry)
	}
	return list
}

func drawRecord(t *rapid.T, depth int) record.Record {
	b := record.NewBuilder()
	for _, key := range rapid.SliceOfNDistinct(someKeys, 0, 4, rapid.ID[string]).Draw(t, "keys") {
		b.Set(key, drawValue(t, depth))
	}
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shuffled returns the record with all keys in other orders, lists as they are.
func shuffled(t *rapid.T, r record.Record) record.Record {
	b := record.NewBuilder()
	for _, key := range rapid.Permutation(r.Keys()).Draw(t, "order") {
		v, err := r.Get(key)
		if err != nil {
			t.Fatal(err)
		}
		switch v := v.Any().(type) {
		case record.Record:
			b.Record(key, shuffled(t, v))
		case []record.Record:
			for i := range v {
				v[i] = shuffled(t, v[i])
			}
			b.Records(key, v)
		default:
			b.Set(key, v)
		}
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func canonical(t *rapid.T, r record.Record) []byte {
	var buf bytes.Buffer
	if err := r.WriteCanonical(&buf); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestOrderOfKeysNeverMatters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 2)
		s := shuffled(t, r)
		if !r.Equal(s) || r.Hash() != s.Hash() || len(record.Diff(r, s)) != 0 {
			t.Fatalf("\n%v\nand\n%v\ndiffer", r, s)
		}
	})
}

// Whatever two records hold, Equal, the encoding, the hash and Diff agree on whether
// they are the same, and what Diff says holds at its paths.
func TestEqualHashAndDiffAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 2)
		s := drawRecord(t, 2)
		if rapid.Bool().Draw(t, "alike") {
			s = changed(t, r, 2)
		}
		same := r.Equal(s)
		if got := bytes.Equal(canonical(t, r), canonical(t, s)); got != same {
			t.Fatalf("equal %v, same encoding %v", same, got)
		}
		if got := r.Hash() == s.Hash(); got != same {
			t.Fatalf("equal %v, same hash %v", same, got)
		}
		if s.Equal(r) != same {
			t.Fatalf("Equal depends on the order")
		}
		diff := record.Diff(r, s)
		if (len(diff) == 0) != same {
			t.Fatalf("equal %v, differences %v", same, diff)
		}
		if len(diff) != len(record.Diff(s, r)) {
			t.Fatalf("%d differences one way, %d the other", len(diff), len(record.Diff(s, r)))
		}
		for _, d := range diff {
			inR, inS := d.Change != record.OnlyB, d.Change != record.OnlyA
			if r.Has(d.Path) != inR || s.Has(d.Path) != inS {
				t.Fatalf("%v: the first has it: %v, the second: %v", d, r.Has(d.Path), s.Has(d.Path))
			}
		}
	})
}

// changed returns the record with one entry, somewhere, replaced, added or removed.
func changed(t *rapid.T, r record.Record, depth int) record.Record {
	key := someKeys.Draw(t, "changed key")
	if v, err := r.Get(key); err == nil {
		inner, isRecord := v.Any().(record.Record)
		switch {
		case isRecord && rapid.Bool().Draw(t, "within"):
			return with(t, r, key, changed(t, inner, depth-1))
		case rapid.Bool().Draw(t, "remove"):
			return r.Without(key)
		}
	}
	return with(t, r, key, drawValue(t, max(0, depth-1)))
}

func with(t *rapid.T, r record.Record, key string, v any) record.Record {
	out, err := r.With(key, v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryChangeChangesTheHash(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 2)
		s := changed(t, r, 2)
		if r.Equal(s) != (r.Hash() == s.Hash()) {
			t.Fatalf("\n%v\nand\n%v\nare equal: %v, hashes %s and %s", r, s, r.Equal(s), r.Hash(), s.Hash())
		}
	})
}

func TestJSONGivesTheRecordBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 3)
		text, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		back, err := record.ParseJSON(text)
		if err != nil {
			t.Fatalf("%v of %s", err, text)
		}
		if !back.Equal(r) || !slices.Equal(back.Keys(), r.Keys()) {
			t.Fatalf("differences %v after %s", record.Diff(r, back), text)
		}
		again, err := back.MarshalJSON()
		if err != nil || !bytes.Equal(again, text) {
			t.Fatalf("then %s, %v, at first %s", again, err, text)
		}
	})
}

func TestAnyGivesTheRecordBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRecord(t, 2)
		b := record.NewBuilder()
		for key, v := range r.All() {
			b.Set(key, v.Any())
		}
		back, err := b.Build()
		if err != nil || !back.Equal(r) {
			t.Fatalf("%v, differences %v", err, record.Diff(r, back))
		}
	})
}
