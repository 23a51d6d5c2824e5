package record_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

// The path of an entry has a limit, wherever in the record it is too long, and the error
// is short.
func TestLongPaths(t *testing.T) {
	half := strings.Repeat("h", record.MaxPath/2)
	least := mustOf(t, half[1:], 1) // half and it are as long as a path can be
	for name, build := range map[string]func(b *record.Builder, fits bool){
		"a section": func(b *record.Builder, fits bool) {
			b.Section(half, func(b *record.Builder) {
				b.Int(half[1:], 1)
				if !fits {
					b.Int(half, 2)
				}
			})
		},
		"a record": func(b *record.Builder, fits bool) {
			if fits {
				b.Record(half, least)
			} else {
				b.Record(half+"h", least)
			}
		},
		"a list of records": func(b *record.Builder, fits bool) {
			name := half[len("/name")+1:]
			if !fits {
				name = half
			}
			b.Entry(half, name, nil)
		},
		"a list of arrays": func(b *record.Builder, fits bool) {
			key := half + half
			if fits {
				key = key[len("/1"):]
			}
			b.Arrays(key, []record.Array{mustArray(t, []float64{1})})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, anyKeys := range []bool{false, true} {
				var options []record.Option
				if anyKeys {
					options = append(options, record.AnyKeys())
				}
				b := record.NewBuilder(options...)
				build(b, true)
				if _, err := b.Build(); err != nil {
					t.Errorf("a path of %d bytes at most: %v", record.MaxPath, err)
				}
				b = record.NewBuilder(options...)
				build(b, false)
				_, err := b.Build()
				if !errors.Is(err, record.ErrKey) || len(err.Error()) > 1000 || !strings.Contains(err.Error(), strconv.Itoa(record.MaxPath)) {
					t.Errorf("a longer one: %.1000v", err)
				}
			}
		})
	}
}

func TestKeys(t *testing.T) {
	for _, key := range []string{
		"a", "grid_1", "1a", "-1", "1.5", "..", "Order", "orders", "with space", "φ", "٣", "\n", "a.b", strings.Repeat("x", 10000),
		strings.Repeat("x", record.MaxPath-len("list/"+"/name")),
	} {
		if err := record.CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		mustOf(t, key, 1)
		mustOf(t, "list", []record.Record{mustOf(t, "name", key)})
	}
	for _, c := range []struct {
		name, key string
		read      bool // allowed in records that were read
	}{
		{"empty", "", false},
		{"a slash", "a/b", false},
		{"too long", strings.Repeat("k", record.MaxPath+1), false},
		{"NUL", "a\x00", false},
		{"not UTF-8", "a\xff", false},
		{"the group itself", ".", false},
		{"the names of a list", "order", true},
		{"a member of a list", "1", true},
		{"digits", "007", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			isKeyError := func(what string, err error) {
				t.Helper()
				var b *record.BuildError
				if !errors.Is(err, record.ErrKey) || !errors.As(err, &b) {
					t.Errorf("%s: %v", what, err)
				}
			}
			isKeyError("CheckKey", record.CheckKey(c.key))
			_, err := record.Of(c.key, 1)
			isKeyError("as a key", err)
			_, err = record.NewBuilder().Section("s", func(b *record.Builder) { b.Int(c.key, 1) }).Build()
			isKeyError("as a key within", err)
			_, err = record.NewBuilder().Entry("list", c.key, nil).Build()
			isKeyError("as a name", err)
			_, err = record.Record{}.With(c.key, 1)
			isKeyError("With", err)
			_, err = mustOf(t, "a", 1).With(c.key, 1)
			isKeyError("With of more", err)

			read, err := record.NewBuilder(record.AnyKeys()).
				Section("s", func(b *record.Builder) { b.Int(c.key, 1) }).
				Build()
			if !c.read {
				isKeyError("with AnyKeys", err)
				return
			}
			if err != nil {
				t.Fatalf("with AnyKeys: %v", err)
			}
			if err := read.Writable(); !errors.Is(err, record.ErrKey) || !strings.Contains(err.Error(), "s/"+c.key) {
				t.Errorf("Writable: %v", err)
			}
			if _, err := record.Of("part", read); !errors.Is(err, record.ErrKey) || !strings.Contains(err.Error(), "part/s/"+c.key) {
				t.Errorf("as a part: %v", err)
			}
			if err := read.Without("s").Writable(); err != nil {
				t.Errorf("without it: %v", err)
			}
			if more, err := read.With("more", 1); err != nil || more.Writable() == nil {
				t.Errorf("with more: %v, %v", more, err)
			}

			names, err := record.NewBuilder(record.AnyKeys()).Entry("list", c.key, nil).Build()
			if err != nil {
				t.Fatalf("as a name with AnyKeys: %v", err)
			}
			if err := names.Writable(); !errors.Is(err, record.ErrKey) || !strings.Contains(err.Error(), "list/"+c.key) {
				t.Errorf("Writable with a name: %v", err)
			}
		})
	}
}

func TestAnyKeysHoldsWithinSectionsAndEntries(t *testing.T) {
	r, err := record.NewBuilder(record.AnyKeys()).
		Section("s", func(b *record.Builder) {
			b.Entry("l", "e", func(b *record.Builder) { b.Int("1", 1) })
		}).
		Build()
	if err != nil || !r.Has("s/l/e/1") {
		t.Fatalf("%v, %v", r, err)
	}
	if err := r.Writable(); !errors.Is(err, record.ErrKey) || !strings.Contains(err.Error(), "s/l/e/1") {
		t.Errorf("Writable: %v", err)
	}
}

func TestBuilderWithAnyKeysMakesWritableRecords(t *testing.T) {
	r, err := record.NewBuilder(record.AnyKeys()).Int("a", 1).Entry("l", "b", nil).Build()
	if err != nil || r.Writable() != nil {
		t.Fatalf("%v, %v", err, r.Writable())
	}
	mustOf(t, "part", r)
}

// nested returns n records within each other.
func nested(t *testing.T, n int) record.Record {
	t.Helper()
	r := record.Record{}
	for range n - 1 {
		r = mustOf(t, "k", r)
	}
	return r
}

func TestWhatARecordCannotHold(t *testing.T) {
	entry := func(kv ...any) []record.Record { return []record.Record{mustOf(t, kv...)} }
	for _, c := range []struct {
		name  string
		build func(b *record.Builder)
		err   error
		text  string // of the error
	}{
		{"a key twice", func(b *record.Builder) { b.Int("k", 1).Float("k", 2) },
			record.ErrDuplicate, "entry s/k = 2.0: duplicate: the record has the key already"},
		{"a key twice, a section", func(b *record.Builder) { b.Int("k", 1).Section("k", func(*record.Builder) {}) },
			record.ErrDuplicate, "entry s/k = record of 0 keys: duplicate"},
		{"a text that is not UTF-8", func(b *record.Builder) { b.Text("k", "a\xff") },
			record.ErrValue, `entry s/k = "a\xff": invalid value: the string is not UTF-8`},
		{"a text with NUL", func(b *record.Builder) { b.Text("k", "a\x00b") },
			record.ErrValue, `the string contains NUL`},
		{"a list with a text with NUL", func(b *record.Builder) { b.Texts("k", []string{"", "\x00"}) },
			record.ErrValue, `entry s/k = "\x00": invalid value: string 2 of the list: the string contains NUL`},
		{"too few values", func(b *record.Builder) { b.Floats("k", []float64{1, 2, 3}, 2, 2) },
			record.ErrValue, "3 values don't fill the dimensions [2 2]"},
		{"too many values", func(b *record.Builder) { b.Ints("k", []int64{1}, 0, 4) },
			record.ErrValue, "1 values don't fill the dimensions [0 4]"},
		{"a negative dimension", func(b *record.Builder) { record.PutArray(b, "k", []int8{1}, -1, -1) },
			record.ErrValue, "one is negative"},
		{"dimensions that overflow", func(b *record.Builder) {
			record.PutArray(b, "k", []int8{}, 1<<(strconv.IntSize/2), 1<<(strconv.IntSize/2), 1)
		},
			record.ErrValue, "0 values don't fill"},
		{"rank 33", func(b *record.Builder) { record.PutArray(b, "k", []int8{1}, slices.Repeat([]int{1}, 33)...) },
			record.ErrValue, "rank 33, the largest is 32"},
		{"an entry of a list without a name", func(b *record.Builder) { b.Records("k", entry("v", 1)) },
			record.ErrValue, `record 1 of the list has no text "name"`},
		{"an entry whose name is no text", func(b *record.Builder) { b.Records("k", entry("name", 1)) },
			record.ErrValue, `record 1 of the list has no text "name"`},
		{"an entry with a bad name", func(b *record.Builder) { b.Records("k", entry("name", "order")) },
			record.ErrKey, `the name "order" of record 1 of the list: "order" is reserved`},
		{"two entries of one name", func(b *record.Builder) { b.Records("k", append(entry("name", "a"), entry("name", "a")...)) },
			record.ErrDuplicate, `records 1 and 2 of the list are both named "a"`},
		{"two entries of one name, added", func(b *record.Builder) { b.Entry("k", "a", nil).Entry("k", "a", nil) },
			record.ErrDuplicate, `entry s/k = "a": duplicate: the list has two entries of this name`},
		{"an entry with another name", func(b *record.Builder) {
			b.Entry("k", "a", func(b *record.Builder) { b.Text("name", "b") })
		}, record.ErrDuplicate, `entry s/k/a/name = "b"`},
		{"an entry added to something else", func(b *record.Builder) { b.Int("k", 1).Entry("k", "a", nil) },
			record.ErrDuplicate, `entry s/k = 0 records: duplicate`},
		{"too many records within each other", func(b *record.Builder) { b.Record("k", nested(t, record.MaxDepth-1)) },
			record.ErrValue, "entry s: invalid value: more than 64 records within each other"},
		{"a Go type that is none", func(b *record.Builder) { b.Set("k", 1i) },
			record.ErrValue, "entry s/k: invalid value: a record can't hold a complex128"},
		{"nil", func(b *record.Builder) { b.Set("k", nil) },
			record.ErrValue, "a record can't hold a <nil>"},
		{"the zero Value", func(b *record.Builder) { b.Set("k", record.Value{}) },
			record.ErrValue, "the zero Value"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := record.NewBuilder().Int("before", 1)
			b.Section("s", c.build)
			b.Int("after", 1)
			r, err := b.Build()
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			for _, other := range []error{record.ErrKey, record.ErrDuplicate, record.ErrValue} {
				if other != c.err && errors.Is(err, other) {
					t.Errorf("%v is %v too", err, other)
				}
			}
			if !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %q lacks %q", err, c.text)
			}
			if r.Len() != 0 {
				t.Errorf("a refused record has the keys %q", r.Keys())
			}
		})
	}
}

func TestOfPairs(t *testing.T) {
	if _, err := record.Of("a", 1, "b"); !errors.Is(err, record.ErrValue) {
		t.Errorf("a key without a value: %v", err)
	}
	if _, err := record.Of(1, "a"); !errors.Is(err, record.ErrKey) {
		t.Errorf("a key that is no string: %v", err)
	}
}

func TestEveryErrorIsReported(t *testing.T) {
	b := record.NewBuilder().Int("", 1).Text("t", "\x00").Int("t", 1).Int("t", 1)
	b.Section("s", func(b *record.Builder) { b.Int("order", 1) })
	b.Entry("l", "e", func(b *record.Builder) { b.Int("0", 1) })
	_, err := b.Build()
	lines := strings.Split(fmt.Sprint(err), "\n")
	for i, want := range []string{`entry ""`, "entry t =", "entry t = 1", "entry s/order", "entry l/e/0"} {
		if len(lines) != 5 || !strings.Contains(lines[i], want) {
			t.Fatalf("the errors are\n%v\nwant 5, with %q in number %d", err, want, i+1)
		}
	}
}

func TestDepth(t *testing.T) {
	deep := nested(t, record.MaxDepth)
	if _, err := record.Of("k", deep); !errors.Is(err, record.ErrValue) {
		t.Errorf("MaxDepth+1 records: %v", err)
	}
	list := nested(t, record.MaxDepth-2)
	list, err := list.With("name", "a")
	if err != nil {
		t.Fatal(err)
	}
	r := mustOf(t, "l", []record.Record{list}) // MaxDepth-1
	r = mustOf(t, "k", r)
	if _, err := record.Of("k", r); !errors.Is(err, record.ErrValue) {
		t.Errorf("MaxDepth+1 records with a list: %v", err)
	}
	_, err = record.NewBuilder().Entry("l", "e", func(b *record.Builder) { b.Record("k", nested(t, record.MaxDepth-1)) }).Build()
	if !errors.Is(err, record.ErrValue) || !strings.Contains(err.Error(), "l/e") {
		t.Errorf("MaxDepth+1 records in an entry: %v", err)
	}
}

func TestOneIntegerIsOneValue(t *testing.T) {
	one := mustValue(t, 1)
	for _, v := range []any{int8(1), int16(1), int32(1), int64(1), uint(1), uint8(1), uint16(1), uint32(1), uint64(1)} {
		if !mustValue(t, v).Equal(one) {
			t.Errorf("%T(1) is %v", v, mustValue(t, v))
		}
	}
	r, err := record.NewBuilder().Uint("a", 7).Uint("b", math.MaxInt64).Uint("c", math.MaxInt64+1).Build()
	if err != nil {
		t.Fatal(err)
	}
	if want := mustOf(t, "a", 7, "b", int64(math.MaxInt64), "c", uint64(math.MaxInt64)+1); !r.Equal(want) {
		t.Errorf("got\n%v, want\n%v", r, want)
	}
	if v, _ := r.Get("b"); v.Kind() != record.Int {
		t.Errorf("2⁶³-1 is %v", v.Kind())
	}
	if v, _ := r.Get("c"); v.Kind() != record.Uint {
		t.Errorf("2⁶³ is %v", v.Kind())
	}
}

func TestNothingSharesMemory(t *testing.T) {
	floats, dims, texts := []float64{1, 2}, []int{1, 2}, []string{"a"}
	arrays := []record.Array{mustArray(t, []int8{1})}
	records := []record.Record{mustOf(t, "name", "a")}
	b := record.NewBuilder().Floats("f", floats, dims...).Texts("t", texts).Arrays("a", arrays).Records("r", records)
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	hash := r.Hash()

	floats[0], dims[0], texts[0] = 9, 9, "changed"
	arrays[0], records[0] = record.Array{}, record.Record{}
	b.Int("more", 1)
	a, _ := r.Array("f")
	a.Dims()[0] = 9
	a.Data().([]float64)[0] = 9
	values, _ := record.Values[float64](a)
	values[0] = 9
	values, _ = a.Float64s()
	values[0] = 9
	gotTexts, _ := r.Texts("t")
	gotTexts[0] = "changed"
	gotArrays, _ := r.Arrays("a")
	gotArrays[0] = record.Array{}
	gotRecords, _ := r.Records("r")
	gotRecords[0] = record.Record{}
	r.Keys()[0] = "changed"
	for _, v := range r.All() {
		switch v := v.Any().(type) {
		case []string:
			v[0] = "changed"
		case []record.Array:
			v[0] = record.Array{}
		case []record.Record:
			v[0] = record.Record{}
		}
	}
	if r.Hash() != hash {
		t.Errorf("the record changed:\n%v", r)
	}
}

func TestBuilderGoesOn(t *testing.T) {
	b := record.NewBuilder().Entry("l", "a", nil)
	first, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	longer, err := b.Entry("l", "b", nil).Build()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := longer.Records("l"); err != nil || len(n) != 2 {
		t.Errorf("the list of the second is %v, %v", n, err)
	}
	second, err := b.Int("k", 1).Build()
	if err != nil {
		t.Fatal(err)
	}
	if !first.Equal(mustOf(t, "l", []record.Record{mustOf(t, "name", "a")})) {
		t.Errorf("the first is\n%v", first)
	}
	if !second.Equal(mustOf(t, "l", []record.Record{mustOf(t, "name", "a"), mustOf(t, "name", "b")}, "k", 1)) {
		t.Errorf("the second is\n%v", second)
	}
}

func TestWithAndWithout(t *testing.T) {
	r := mustOf(t, "a", 1, "b", 2, "c", 3)
	got, err := r.With("b", "two")
	if err != nil {
		t.Fatal(err)
	}
	got, err = got.With("d", 4)
	if err != nil {
		t.Fatal(err)
	}
	got = got.Without("a", "no such key")
	if want := mustOf(t, "b", "two", "c", 3, "d", 4); !got.Equal(want) || !slices.Equal(got.Keys(), want.Keys()) {
		t.Errorf("got\n%v, want\n%v", got, want)
	}
	if r.Len() != 3 {
		t.Errorf("the original became\n%v", r)
	}
	if got := r.Without("a", "b", "c"); !got.Equal(record.Record{}) {
		t.Errorf("without all keys:\n%v", got)
	}
}
