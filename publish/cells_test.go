package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// foreign is a field of another implementation, which knows nothing of rows, and
// fails where it is told to.
type foreign struct {
	field.Any
	check, write func() error
}

type foreignSource struct{ pack.Source }

type foreignSink struct {
	pack.Sink
	f *foreign
}

func (f *foreign) Source() (pack.Source, error) {
	s, err := f.Any.Source()
	return foreignSource{s}, err
}

func (f *foreign) Sink() (pack.Sink, error) {
	s, err := f.Any.Sink()
	return foreignSink{s, f}, err
}

func (s foreignSink) CheckCells(src []byte, first int64) error {
	if s.f.check != nil {
		return s.f.check()
	}
	return s.Sink.CheckCells(src, first)
}

func (s foreignSink) WriteCells(src []byte, first int64) error {
	if s.f.write != nil {
		if err := s.f.write(); err != nil {
			return err
		}
	}
	return s.Sink.WriteCells(src, first)
}

// numberedField has the cell's number in each cell.
func numberedField[T float64 | complex128](t *testing.T, size [3]int) *field.Field[T] {
	t.Helper()
	domain := grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}
	f, err := field.New[T](domain, domain.Box(), field.Halo(2))
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.MutableView()
	if err != nil {
		t.Fatal(err)
	}
	number := T(0)
	for c := range f.Owned().Cells() {
		number += 1
		data[f.Index(c[0], c[1], c[2])] = number
	}
	return f
}

// TestASourceGivesRowsAndSums, whether the field's own source can or not.
func TestASourceGivesRowsAndSums(t *testing.T) {
	size := [3]int{5, 3, 4}
	for name, f := range map[string]field.Any{
		"float64":                        numberedField[float64](t, size),
		"float64 of another kind":        &foreign{Any: numberedField[float64](t, size)},
		"complex128 of another kind":     &foreign{Any: numberedField[complex128](t, size)},
		"complex128 that knows its rows": numberedField[complex128](t, size),
	} {
		t.Run(name, func(t *testing.T) {
			cell := f.Kind().DiskSize()
			for _, r := range []struct{ first, n, rows, apart int }{{0, 5, 12, 9}, {5, 5, 7, 5}, {10, 5, 1, 0}, {3, 1, 1, 1}} {
				step := r.apart * cell
				s := &fieldSource{f: field.Named{ID: "f", Field: f}, step: func(Step, string) {}}
				got := bytes.Repeat([]byte{0xee}, 12*9*cell)
				if err := s.ReadRows(got, int64(r.first), r.n, r.rows, step); err != nil {
					t.Fatal(err)
				}
				want := bytes.Repeat([]byte{0xee}, len(got))
				for i := range r.rows {
					if err := s.ReadCells(want[i*step:i*step+r.n*cell], int64(r.first+i*r.n)); err != nil {
						t.Fatal(err)
					}
				}
				if !bytes.Equal(got, want) {
					t.Errorf("rows %+v differ from cells", r)
				}
				if r.rows > 1 {
					continue
				}
				for i := range got {
					got[i] = 0xee
				}
				sum, wantSum := pack.NewChecksum(1000), pack.NewChecksum(1000)
				if err := s.ReadSum(got[:r.n*cell], int64(r.first), sum, 24); err != nil {
					t.Fatal(err)
				}
				wantSum.Add(24, want[:r.n*cell])
				if !bytes.Equal(got, want) || sum.Part() != wantSum.Part() {
					t.Errorf("summed cells %+v differ", r)
				}
			}
		})
	}
}

// TestCopiesTakeCellsAndRows in any mixture, and give them to the fields.
func TestCopiesTakeCellsAndRows(t *testing.T) {
	size := [3]int{6, 5, 4}
	from := numberedField[float64](t, size)
	source, err := from.Source()
	if err != nil {
		t.Fatal(err)
	}
	cells := int64(6 * 5 * 4)
	packed := make([]byte, 8*cells)
	if err := source.ReadCells(packed, 0); err != nil {
		t.Fatal(err)
	}
	var list []field.Named
	for i := range 3 {
		f, err := field.New[float64](from.Domain(), from.Box(), field.Halo(i))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, field.Named{ID: fmt.Sprintf("f%d", i), Field: f})
	}
	for _, stream := range []bool{false, true} {
		copiesOf(t, list, from.Box(), packed, stream)
	}
}

func copiesOf(t *testing.T, list []field.Named, box grid.Box, packed []byte, stream bool) {
	const ghost = -7
	for _, named := range list {
		f := named.Field.(*field.Field[float64])
		data, err := f.MutableView()
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] = ghost
		}
	}
	cells := box.Cells()
	c, err := newCopies(list, box)
	if err != nil {
		t.Fatal(err)
	}
	c.stream = stream
	for i, s := range c.sinks {
		for first := int64(0); first < cells; {
			n, rows, apart := 6, min(i+1, int(cells-first)/6), 6+i
			if first%12 == 0 {
				piece, err := packed[8*first:8*(first+6)], error(nil)
				if first%24 == 0 {
					sum, want := pack.NewChecksum(8*cells), pack.NewChecksum(8*cells)
					want.Add(8*first, piece)
					if err = s.WriteSum(piece, first, sum, 8*first); sum.Part() != want.Part() {
						t.Errorf("cells from %d on: sum %x, want %x", first, sum.Part(), want.Part())
					}
				} else {
					err = s.WriteCells(piece, first)
				}
				if err != nil {
					t.Fatal(err)
				}
				first += 6
				continue
			}
			src := make([]byte, 8*apart*rows)
			for r := range rows {
				copy(src[8*apart*r:], packed[8*(first+int64(n*r)):8*(first+int64(n*(r+1)))])
			}
			if err := s.WriteRows(src, first, n, rows, 8*apart); err != nil {
				t.Fatal(err)
			}
			first += int64(n * rows)
		}
	}
	if err := errors.Join(c.checked(), c.commit(), c.free(), c.free()); err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		got := make([]byte, len(packed))
		s, err := f.Field.Source()
		if err == nil {
			err = s.ReadCells(got, 0)
		}
		if err != nil || !bytes.Equal(got, packed) {
			t.Errorf("field %q has other cells (%v)", f.ID, err)
		}
		of := f.Field.(*field.Field[float64])
		data, err := of.View()
		if err != nil {
			t.Fatal(err)
		}
		for at := range of.Padded().Cells() {
			owned := box.ContainsCell(of.Global(at[0], at[1], at[2]))
			if v := data[of.Index(at[0], at[1], at[2])]; (v == ghost) == owned {
				t.Fatalf("field %q: cell %v is %v", f.ID, at, v)
			}
		}
	}
	if err := (*copies)(nil).free(); err != nil {
		t.Error(err)
	}
}

// The product of sizes and fields may be more than an int, or even wrap to 0.
func TestCopiesThatNoSystemHolds(t *testing.T) {
	box := grid.Box{Size: [3]int{1 << 29, 1 << 29, 1}} // 2^61 bytes
	c, err := newCopies(make([]field.Named, 8), box)
	if !errors.Is(err, syscall.ENOMEM) || c != nil || !strings.Contains(fmt.Sprint(err), "8 fields of 2305843009213693952 bytes") {
		t.Errorf("error %v", err)
	}
}

// TestTheFirstFieldThatFailsIsNamed, whichever fails first in time, and after all
// of them were tried.
func TestTheFirstFieldThatFailsIsNamed(t *testing.T) {
	box := grid.Box{Size: [3]int{4, 4, 4}}
	for _, tc := range []struct {
		name  string
		spoil func(f *foreign, err error)
		end   func(c *copies) error
	}{
		{"checks", func(f *foreign, err error) { f.check = func() error { return err } }, (*copies).checked},
		{"stores", func(f *foreign, err error) { f.write = func() error { return err } }, (*copies).commit},
		{"stores with a panic", func(f *foreign, err error) { f.write = func() error { panic(err) } }, (*copies).commit},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list []field.Named
			for i := range 8 {
				f := &foreign{Any: numberedField[float64](t, box.Size)}
				if i == 3 || i == 6 {
					tc.spoil(f, fmt.Errorf("%w, says %d", syscall.EIO, i))
				}
				list = append(list, field.Named{ID: fmt.Sprintf("f%d", i), Field: f})
			}
			c, err := newCopies(list, box)
			if err != nil {
				t.Fatal(err)
			}
			defer c.free()
			for _, s := range c.sinks {
				if err := s.WriteCells(make([]byte, 8*64), 0); err != nil {
					t.Fatal(err)
				}
			}
			err = tc.end(c)
			wantError(t, err, syscall.EIO, `field "f3": `, "says 3")
			if tc.name == "checks" {
				return
			}
			for i, f := range list {
				of := f.Field.(*foreign).Any.(*field.Field[float64])
				data, err := of.View()
				if err != nil {
					t.Fatal(err)
				}
				if stored := data[of.Index(1, 2, 3)] == 0; stored == (i == 3 || i == 6) {
					t.Errorf("field %q stored: %t", f.ID, stored)
				}
			}
		})
	}
}

// TestForeignFieldsLoadAndSave: rows and cells reach fields of any implementation,
// through every driver that ranks of one process have, in x-split bricks too.
func TestForeignFieldsLoadAndSave(t *testing.T) {
	domain := grid.Domain{Size: [3]int{12, 5, 4}, Spacing: [3]float64{1, 1, 1}}
	for _, driver := range []brick.Driver{brick.Node, brick.POSIX} {
		fsys := newFS(t)
		if err := onRanks(t, 3, func(c *comm.Comm) error {
			ctx := context.Background()
			dec, err := grid.Decompose(domain, c.Size(), grid.ProcessGrid(3, 1, 1))
			if err := c.Agree(ctx, err); err != nil {
				return err
			}
			opts := []Option{Filesystem(fsys), Bricks(brick.Using(driver))}
			value := func(cell [3]int) float64 { return float64(cell[0] + 100*cell[1] + 10000*cell[2]) }
			make1 := func(set bool) (*field.Field[float64], error) {
				f, err := field.New[float64](domain, dec.Box(c.Rank()), field.Halo(1))
				if err != nil || !set {
					return f, err
				}
				data, err := f.MutableView()
				if err != nil {
					return nil, err
				}
				for at := range f.Owned().Cells() {
					data[f.Index(at[0], at[1], at[2])] = value(f.Global(at[0], at[1], at[2]))
				}
				return f, nil
			}
			f, err := make1(true)
			if err := c.Agree(ctx, err); err != nil {
				return err
			}
			if err := SaveBundle(ctx, c, "/data/b", State{Fields: []field.Named{{ID: "f", Field: &foreign{Any: f}}}}, opts...); err != nil {
				return err
			}
			for _, how := range [][]Option{nil, {InPlace()}} {
				g, err := make1(false)
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				want := Request{Fields: []field.Named{{ID: "f", Field: &foreign{Any: g}}}}
				if _, err := LoadBundle(ctx, c, "/data/b", want, append(how, opts...)...); err != nil {
					return err
				}
				data, err := g.View()
				for at := range g.Owned().Cells() {
					cell := g.Global(at[0], at[1], at[2])
					if err == nil && data[g.Index(at[0], at[1], at[2])] != value(cell) {
						err = fmt.Errorf("cell %v is %v", cell, data[g.Index(at[0], at[1], at[2])])
					}
				}
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Errorf("%v: %v", driver, err)
		}
	}
}

// TestDamageComesBeforeWhatAFieldCantTake: a flipped bit makes a value that is no
// float32, but the bundle is to blame, and a restart may go on to an older one.
func TestDamageComesBeforeWhatAFieldCantTake(t *testing.T) {
	fsys := newFS(t)
	if err := saveStep(t, fsys, 2, "/data", 1); err != nil {
		t.Fatal(err)
	}
	flip := func(id string) {
		f, err := fsys.OpenFile(filepath.Join("/data/step_1", fieldPath(id)), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		var cell [8]byte
		binary.LittleEndian.PutUint64(cell[:], math.Float64bits(0.1))
		if _, err := f.WriteAt(cell[:], 8); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	flip("T")
	err := onRanks(t, 2, func(c *comm.Comm) error {
		dec, err := grid.Decompose(testDomain, c.Size())
		if err != nil {
			return err
		}
		f, err := field.New[float32](testDomain, dec.Box(c.Rank()), field.Halo(1))
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		_, err = LoadBundle(context.Background(), c, "/data/step_1", Request{Fields: []field.Named{{ID: "T", Field: f}}}, Filesystem(fsys))
		data, verr := f.View()
		if verr != nil {
			return verr
		}
		for _, v := range data {
			if v != 0 {
				t.Errorf("a cell of rank %d is %v", c.Rank(), v)
				break
			}
		}
		return err
	})
	wantError(t, err, ErrChecksum, fieldPath("T"))
	if strings.Contains(err.Error(), "float32") {
		t.Errorf("%v: speaks of float32", err)
	}
}

// TestStepsComeOneAtATime, and each field's once, though fields may be written by
// several goroutines.
func TestStepsComeOneAtATime(t *testing.T) {
	fsys := newFS(t)
	if err := onRanks(t, 2, func(c *comm.Comm) error {
		r := newPlanRank(c, fsys)
		defer r.plans.Close()
		list, err := r.fields(planDomain, 0, 20)
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		seen := make(map[string]int) // the race detector watches
		err = SaveBundle(context.Background(), c, "/data/b", State{Fields: list}, r.opts(OnStep(func(step Step, detail string) {
			if step == StepField {
				seen[detail]++
			}
		}))...)
		for _, f := range list {
			if seen[f.ID] != 1 {
				t.Errorf("rank %d: field %q was reported %d times", c.Rank(), f.ID, seen[f.ID])
			}
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
