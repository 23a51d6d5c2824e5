package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// loader is one rank of a solver that is about to load, with a clock, a counter
// and conditions of its own: one that prepares and one that doesn't.
type loader struct {
	*part
	solver   Solver
	clock    testClock
	results  int64
	plain    *fakeBoundary
	prepared *preparedBoundary
}

const (
	loadIncrement = 6 // of the bundle

	savedPlain, savedPrepared = `{"n":1}`, `[2.5]`
	ownPlain, ownPrepared     = `{"n":0}`, `[0]`
)

var ownClock = testClock{41, -0.125}

func newLoader(c *comm.Comm, spaces ...space) (*loader, error) {
	dec, err := grid.Decompose(testDomain, c.Size())
	if err != nil {
		return nil, err
	}
	l := &loader{
		clock: ownClock, results: 77,
		plain:    &fakeBoundary{config: `"plain"`, state: ownPlain, collectiveInState: true},
		prepared: &preparedBoundary{fakeBoundary{config: `"prepared"`, state: ownPrepared}},
	}
	if l.part, err = newPart(testDomain, dec.Box(c.Rank()), [3]int{1, 0, 2}, spaces...); err != nil {
		return nil, err
	}
	l.solver = Solver{
		Fields: l.named(), Clock: &l.clock, Results: &l.results, Method: "euler",
		Boundaries: []Boundary{l.prepared, l.plain},
	}
	return l, nil
}

// untouched reports whether nothing at all has changed.
func (l *loader) untouched() error {
	if l.clock != ownClock || l.results != 77 {
		return fmt.Errorf("test: clock %+v, results %d", l.clock, l.results)
	}
	if l.plain.state != ownPlain || l.prepared.state != ownPrepared {
		return fmt.Errorf("test: the conditions have the states %s and %s", l.plain.state, l.prepared.state)
	}
	return l.part.untouched()
}

// wrap puts another field in the place of each destination.
func (l *loader) wrap(f func(field.Any) field.Any) {
	for i := range l.solver.Fields {
		l.solver.Fields[i].Field = f(l.solver.Fields[i].Field)
	}
}

// saveForLoad publishes the bundle /data/b of two float64 fields, a and b, with
// conditions and a sidecar. set, when given, has the bits of field b.
func saveForLoad(t testing.TB, fsys vfs.FS, set func(cell [3]int) uint64) {
	t.Helper()
	err := onRanks(t, 2, func(c *comm.Comm) error {
		l, err := newLoader(c, host64, host64)
		if err == nil {
			err = l.set(loadIncrement)
		}
		if err == nil && set != nil {
			err = l.fields[1].fill(func(cell [3]int, _ bool, _ int) uint64 { return set(cell) })
		}
		if err := c.Agree(context.Background(), err); err != nil {
			return err
		}
		l.plain.state, l.prepared.state = savedPlain, savedPrepared
		s := l.state(loadIncrement)
		s.Boundaries, s.Sidecar = l.solver.Boundaries, map[string]int{"answer": 42}
		return SaveBundle(context.Background(), c, "/data/b", s, Filesystem(fsys))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// loadWanted is what a load is expected to do.
type loadWanted struct {
	spaces []space // of the destinations; nil: float64, one of them on a device
	opts   []Option
	change func(c *comm.Comm, l *loader) // nil: the request fits
	// keep: nothing has changed. Otherwise the fields are undefined.
	keep bool
	kind error
}

// failToLoad loads /data/b, which has to fail with the same error on all ranks.
func failToLoad(t testing.TB, fsys vfs.FS, ranks int, want loadWanted) error {
	t.Helper()
	if want.spaces == nil {
		want.spaces = []space{host64, device64}
	}
	return onRanks(t, ranks, func(c *comm.Comm) error {
		l, err := newLoader(c, want.spaces...)
		if err == nil && want.change != nil {
			want.change(c, l)
		}
		if err := c.Agree(context.Background(), err); err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			return err
		}
		service, err := NewService(context.Background(), c, Config{}, append([]Option{Filesystem(fsys)}, want.opts...)...)
		if err != nil {
			t.Errorf("rank %d: %v", c.Rank(), err)
			return err
		}
		defer service.Close()
		loaded, err := service.Load(context.Background(), "/data/b", l.solver)
		if loaded != nil || want.kind != nil && !errors.Is(err, want.kind) {
			t.Errorf("rank %d: got %v, %v, want %v", c.Rank(), loaded, err, want.kind)
		}
		if errors.Is(err, ErrFieldsUndefined) == want.keep || errors.Is(err, comm.ErrDead) {
			t.Errorf("rank %d: %v: is %q or not", c.Rank(), err, ErrFieldsUndefined)
		}
		if want.keep {
			if err := l.untouched(); err != nil {
				t.Errorf("rank %d: %v", c.Rank(), err)
			}
		}
		if err := l.close(); err != nil {
			t.Error(err)
		}
		return err
	})
}

// openedFields returns the operations on open files of fields.
func openedFields(in *vfs.Inject) []string {
	var list []string
	for _, op := range in.Ops() {
		if strings.HasSuffix(op.Name, fieldSuffix) && op.Kind != vfs.OpLstat && op.Kind != vfs.OpStat {
			list = append(list, op.String())
		}
	}
	return list
}

// elsewhere claims another domain and box than it has.
type elsewhere struct {
	field.Any
	domain func(d *grid.Domain)
	box    func(b *grid.Box)
}

func (f elsewhere) Domain() grid.Domain {
	d := f.Any.Domain()
	if f.domain != nil {
		f.domain(&d)
	}
	return d
}

func (f elsewhere) Box() grid.Box {
	b := f.Any.Box()
	if f.box != nil {
		f.box(&b)
	}
	return b
}

// shiftedClock derives another time than the one that was saved.
type shiftedClock struct{ *testClock }

func (shiftedClock) TimeAt(n int64) float64 { return testTime(n) + 1e-8 }

func wantDomain(change func(d *grid.Domain)) func(l *loader) {
	return func(l *loader) {
		l.wrap(func(f field.Any) field.Any { return elsewhere{f, change, nil} })
	}
}

func wantBox(change func(b *grid.Box)) func(l *loader) {
	return func(l *loader) {
		l.wrap(func(f field.Any) field.Any { return elsewhere{f, nil, change} })
	}
}

// TestAMismatchOnOneRankRejectsTheLoadOnAll: before a file of a field is opened,
// with everything as it was on all ranks.
func TestAMismatchOnOneRankRejectsTheLoadOnAll(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	for _, tc := range []struct {
		name   string
		change func(l *loader)
		kind   error
		text   string
	}{
		{"more cells along x", wantDomain(func(d *grid.Domain) { d.Size[0]++ }), ErrMismatch, "size along x: the bundle has 5, the solver has 6"},
		{"fewer cells along z", wantDomain(func(d *grid.Domain) { d.Size[2]-- }), ErrMismatch, "size"},
		{"another origin along y", wantDomain(func(d *grid.Domain) { d.Origin[1] = 1e-6 }), ErrMismatch, "origin"},
		{"another spacing along z", wantDomain(func(d *grid.Domain) { d.Spacing[2] *= 1 + 1e-11 }), ErrMismatch, "spacing"},
		{"periodic along y too", wantDomain(func(d *grid.Domain) { d.Periodic[1] = true }), ErrMismatch, "periodicity along y: the bundle has false, the solver has true"},
		{"not periodic along x", wantDomain(func(d *grid.Domain) { d.Periodic[0] = false }), ErrMismatch, "periodic"},
		{"another method", func(l *loader) { l.solver.Method = "rk4" }, ErrMismatch, `the method of the bundle is "euler", the solver's "rk4"`},
		{"another id of a field", func(l *loader) { l.solver.Fields[1].ID = "c" }, ErrInput, `"c"`},
		{"a field less", func(l *loader) { l.solver.Fields = l.solver.Fields[:1] }, ErrInput, "inputs"},
		{"no field", func(l *loader) { l.solver.Fields = nil }, ErrInput, "no field"},
		{"a nil field", func(l *loader) { l.solver.Fields[1].Field = nil }, ErrInput, `"b" is nil`},
		{"a box that leaves a gap", wantBox(func(b *grid.Box) { b.Size[1]-- }), brick.ErrLayout, "gap"},
		{"a box beyond the domain", wantBox(func(b *grid.Box) { b.Low[2] += 2 }), brick.ErrLayout, "outside"},
		{"a box that overlaps others", wantBox(func(b *grid.Box) { *b = testDomain.Box() }), brick.ErrLayout, "overlap"},
		{"another configuration of a condition", func(l *loader) { l.plain.config = `"simple"` }, ErrBoundary, `the solver's "simple"`},
		{"a condition less", func(l *loader) { l.solver.Boundaries = l.solver.Boundaries[:1] }, ErrBoundary, "from 1 to 2"},
		{"conditions in another order", func(l *loader) { slices.Reverse(l.solver.Boundaries) }, ErrBoundary, `"prepared"`},
		{"a condition that prepares no restore", func(l *loader) { l.prepared.refuses = savedPrepared }, ErrBoundary, "refused"},
		{"another derived time", func(l *loader) { l.solver.Clock = shiftedClock{&l.clock} }, ErrMismatch, "accepted_time of the bundle is 2, but the solver's clock has"},
	} {
		for rank := range 3 {
			for _, opts := range [][]Option{nil, {InPlace()}} {
				t.Run(fmt.Sprintf("%s on rank %d, %d options", tc.name, rank, len(opts)), func(t *testing.T) {
					inject := vfs.NewInject(fsys)
					err := failToLoad(t, inject, 3, loadWanted{opts: opts, keep: true, kind: tc.kind, change: func(c *comm.Comm, l *loader) {
						if c.Rank() == rank {
							tc.change(l)
						}
					}})
					wantError(t, err, tc.kind, "/data/b", tc.text)
					if ops := openedFields(inject); ops != nil {
						t.Errorf("fields were opened:\n\t%s", strings.Join(ops, "\n\t"))
					}
				})
			}
		}
	}
	t.Run("a field that the bundle lacks, on all ranks", func(t *testing.T) {
		inject := vfs.NewInject(fsys)
		err := failToLoad(t, inject, 3, loadWanted{keep: true, kind: ErrMismatch, change: func(_ *comm.Comm, l *loader) { l.solver.Fields[0].ID = "c" }})
		wantError(t, err, ErrNoField, `the solver wants "c", the bundle has ["a" "b"]`)
		if ops := openedFields(inject); ops != nil {
			t.Errorf("fields were opened:\n\t%s", strings.Join(ops, "\n\t"))
		}
	})
}

// TestALoadThatFits restores everything, and the trace of the tests above would
// show it.
func TestALoadThatFits(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	for _, opts := range [][]Option{nil, {InPlace()}} {
		for ranks := 1; ranks <= 3; ranks++ {
			t.Run(fmt.Sprintf("%d ranks, %d options", ranks, len(opts)), func(t *testing.T) {
				inject := vfs.NewInject(fsys)
				err := onRanks(t, ranks, func(c *comm.Comm) error {
					ctx := context.Background()
					l, err := newLoader(c, host64, device64)
					if err := c.Agree(ctx, err); err != nil {
						return err
					}
					if c.Rank() == ranks-1 { // within the tolerance
						wantDomain(func(d *grid.Domain) { d.Origin[0] *= 1 + 1e-13; d.Spacing[1] *= 1 - 1e-13 })(l)
					}
					service, err := NewService(ctx, c, Config{}, append([]Option{Filesystem(inject)}, opts...)...)
					if err != nil {
						return err
					}
					defer service.Close()
					loaded, err := service.Load(ctx, "/data/b", l.solver)
					if err != nil {
						return err
					}
					err = l.check(loadIncrement)
					if !loaded.Verified || !bytes.Contains(loaded.Sidecar, []byte("42")) {
						err = errors.Join(err, fmt.Errorf("loaded %+v", loaded))
					}
					if l.clock != (testClock{loadIncrement, testTime(loadIncrement)}) || l.results != 2*loadIncrement {
						err = errors.Join(err, fmt.Errorf("clock %+v, results %d", l.clock, l.results))
					}
					if l.plain.state != savedPlain || l.prepared.state != savedPrepared {
						err = errors.Join(err, fmt.Errorf("states %s, %s", l.plain.state, l.prepared.state))
					}
					return c.Agree(ctx, errors.Join(err, l.close()))
				})
				if err != nil {
					t.Error(err)
				}
				if openedFields(inject) == nil {
					t.Error("the trace shows no field that was opened")
				}
			})
		}
	}
}

// TestDamageLeavesTheCellsOfAllRanksAsTheyWere: the default load changes no cell
// before everything has been read and verified. InPlace says when it has.
func TestDamageLeavesTheCellsOfAllRanksAsTheyWere(t *testing.T) {
	spoil := func(file string, change func(data []byte) []byte) func(t testing.TB, in *vfs.Inject) {
		return func(t testing.TB, in *vfs.Inject) { damage(t, in, "/data/b/"+file, change) }
	}
	fail := func(r vfs.Rule) func(t testing.TB, in *vfs.Inject) {
		return func(t testing.TB, in *vfs.Inject) {
			r.Kinds = []vfs.Kind{vfs.OpRead, vfs.OpReadAt}
			if err := in.Fail(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	fieldBytes := testDomain.Cells() * 8
	for _, tc := range []struct {
		name  string
		spoil func(t testing.TB, in *vfs.Inject)
		kind  error
		text  string
		read  bool // only reading the fields shows it
	}{
		{"a field too short", spoil("fields/b.bin", func(d []byte) []byte { return d[:len(d)-1] }), ErrDamaged, "b.bin", false},
		{"a field too long", spoil("fields/b.bin", func(d []byte) []byte { return append(d, 0) }), ErrDamaged, "b.bin", false},
		{"a field missing", spoil("fields/b.bin", remove), ErrDamaged, "b.bin", false},
		{"two fields exchanged", func(t testing.TB, in *vfs.Inject) {
			for _, names := range [][2]string{{"a", "c"}, {"b", "a"}, {"c", "b"}} {
				if err := in.Rename("/data/b/fields/"+names[0]+fieldSuffix, "/data/b/fields/"+names[1]+fieldSuffix); err != nil {
					t.Fatal(err)
				}
			}
		}, ErrChecksum, "a.bin", true},
		{"the sidecar changed", spoil("sidecar.json", instead("42", "43")), ErrChecksum, "sidecar.json", false},
		{"a sidecar that is no JSON, its checksum right", func(t testing.TB, in *vfs.Inject) {
			const text = `{"answer": 42`
			damage(t, in, "/data/b/sidecar.json", func([]byte) []byte { return []byte(text) })
			damage(t, in, "/data/b/checksums.txt", func(d []byte) []byte {
				sums, err := parseChecksums(d)
				if err != nil {
					t.Fatal(err)
				}
				for i, s := range sums {
					if s.Path == sidecarFile {
						sums[i].CRC = pack.Sum([]byte(text))
					}
				}
				return formatChecksums(sums)
			})
		}, ErrDamaged, "sidecar.json: not JSON", false},
		{"a sidecar that is no JSON, of another writer without checksums", func(t testing.TB, in *vfs.Inject) {
			damage(t, in, "/data/b/sidecar.json", func([]byte) []byte { return []byte("forty-two") })
			damage(t, in, "/data/b/metadata.json", instead(`"fieldstone"`, `"of another"`))
			damage(t, in, "/data/b/checksums.txt", remove)
		}, ErrDamaged, "sidecar.json: not JSON", false},
		{"the checksums missing", spoil("checksums.txt", remove), ErrDamaged, "checksums.txt: the file is missing: Fieldstone published this bundle with it, so the copy is incomplete", false},
		{"a digit of the time changed", spoil("metadata.json", instead(`"accepted_time": 2`, `"accepted_time": 3`)), ErrChecksum, "metadata.json", false},
		{"the checksum of a field changed", spoil("checksums.txt", func(d []byte) []byte {
			lines := bytes.Split(d, []byte("\n"))
			line := lines[len(lines)-2] // of the last field
			line[15] = "10"[line[15]&1]
			return bytes.Join(lines, []byte("\n"))
		}), ErrChecksum, "b.bin", true},
		{"a read error in the first field", fail(vfs.Rule{Pattern: "a.bin", Err: syscall.EIO}), syscall.EIO, `field "a"`, true},
		{"a read error in the second field", fail(vfs.Rule{Pattern: "b.bin", Err: syscall.EIO}), syscall.EIO, `field "b"`, true},
		{"a read error in the last cell", fail(vfs.Rule{Pattern: "b.bin", Err: syscall.EIO, Match: func(op vfs.Op) bool {
			return op.Offset+op.Size == fieldBytes
		}}), syscall.EIO, `field "b"`, true},
		{"a read error in the metadata", fail(vfs.Rule{Pattern: "metadata.json", Err: syscall.EIO}), syscall.EIO, "metadata.json", false},
		{"a field that can't be opened", func(t testing.TB, in *vfs.Inject) {
			if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpOpen}, Pattern: "b.bin", Err: syscall.EACCES}); err != nil {
				t.Fatal(err)
			}
		}, syscall.EACCES, `field "b"`, true},
	} {
		for ranks := 1; ranks <= 3; ranks++ {
			for _, opts := range [][]Option{nil, {InPlace()}} {
				t.Run(fmt.Sprintf("%s, %d ranks, %d options", tc.name, ranks, len(opts)), func(t *testing.T) {
					fsys := vfs.NewInject(newFS(t))
					saveForLoad(t, fsys, nil)
					tc.spoil(t, fsys)
					err := failToLoad(t, fsys, ranks, loadWanted{opts: opts, kind: tc.kind, keep: opts == nil || !tc.read})
					wantError(t, err, tc.kind, "/data/b", tc.text)
				})
			}
		}
	}
}

// TestAFlippedBitAnywhereLeavesTheCellsOfAllRanksAsTheyWere flips a bit of every
// eighth cell, the first and the last one among them.
func TestAFlippedBitAnywhereLeavesTheCellsOfAllRanksAsTheyWere(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	cells := int(testDomain.Cells())
	for _, file := range []string{"a.bin", "b.bin"} {
		for cell := 0; cell < cells; cell += 8 { // and so the last one
			at, bit := cell*8+cell/8%8, byte(1)<<(cell%7)
			flipBit := func(d []byte) []byte { d[at] ^= bit; return d }
			damage(t, fsys, "/data/b/fields/"+file, flipBit)
			for ranks := 1; ranks <= 3; ranks++ {
				wantError(t, failToLoad(t, fsys, ranks, loadWanted{kind: ErrChecksum, keep: true}), ErrDamaged, file)
				wantError(t, failToLoad(t, fsys, ranks, loadWanted{kind: ErrChecksum, opts: []Option{InPlace()}}), ErrDamaged, file)
			}
			damage(t, fsys, "/data/b/fields/"+file, flipBit)
		}
	}
}

// TestAValueThatIsNotAFloat32LeavesTheCellsOfAllRanksAsTheyWere: the bundle is
// good, but one cell of its second field doesn't fit into the destination.
func TestAValueThatIsNotAFloat32LeavesTheCellsOfAllRanksAsTheyWere(t *testing.T) {
	for _, odd := range [][3]int{{0, 0, 0}, {2, 3, 1}, {4, 6, 2}} {
		fsys := newFS(t)
		saveForLoad(t, fsys, func(cell [3]int) uint64 {
			if cell == odd {
				return math.Float64bits(0.1)
			}
			return cellBits("b", true, loadIncrement, cell)
		})
		for ranks := 1; ranks <= 3; ranks++ {
			for _, single := range []space{host32, device32} {
				for _, opts := range [][]Option{nil, {InPlace()}} {
					t.Run(fmt.Sprintf("cell %v, %d ranks, %v, %d options", odd, ranks, single, len(opts)), func(t *testing.T) {
						err := failToLoad(t, fsys, ranks, loadWanted{spaces: []space{host64, single}, opts: opts, keep: opts == nil})
						wantError(t, err, nil, `field "b"`, "0.1 is not exactly a float32")
					})
				}
			}
		}
	}
}

// faultyField has a sink or an upload that fails.
type faultyField struct {
	field.Any
	sink, upload error
}

func (f faultyField) Sink() (pack.Sink, error) {
	if f.sink != nil {
		return nil, f.sink
	}
	return f.Any.Sink()
}

func (f faultyField) Upload() error {
	if f.upload != nil {
		return f.upload
	}
	return f.Any.Upload()
}

func TestADestinationThatFailsOnOneRank(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	for _, opts := range [][]Option{nil, {InPlace()}} {
		for rank := range 3 {
			faulty := func(f faultyField) func(c *comm.Comm, l *loader) {
				return func(c *comm.Comm, l *loader) {
					if c.Rank() == rank {
						f.Any = l.solver.Fields[1].Field
						l.solver.Fields[1].Field = f
					}
				}
			}
			t.Run(fmt.Sprintf("rank %d can't begin, %d options", rank, len(opts)), func(t *testing.T) {
				err := failToLoad(t, fsys, 3, loadWanted{opts: opts, keep: true, change: faulty(faultyField{sink: errors.New("no mirror")})})
				wantError(t, err, nil, fmt.Sprintf(`rank %d: field "b": no mirror`, rank))
			})
			t.Run(fmt.Sprintf("rank %d can't upload, %d options", rank, len(opts)), func(t *testing.T) {
				loaders := make([]*loader, 3)
				err := failToLoad(t, fsys, 3, loadWanted{opts: opts, change: func(c *comm.Comm, l *loader) {
					faulty(faultyField{upload: errors.New("no stream")})(c, l)
					loaders[c.Rank()] = l
				}})
				wantError(t, err, ErrFieldsUndefined, fmt.Sprintf(`rank %d: field "b": upload: no stream`, rank))
				// The states come before the cells, or after them in place.
				want := [2]string{savedPlain, savedPrepared}
				if opts != nil {
					want = [2]string{ownPlain, ownPrepared}
				}
				for r, l := range loaders {
					if got := [2]string{l.plain.state, l.prepared.state}; got != want {
						t.Errorf("rank %d: the conditions have the states %s, want %s", r, got, want)
					}
					if l.clock != ownClock || l.results != 77 {
						t.Errorf("rank %d: clock %+v, results %d", r, l.clock, l.results)
					}
				}
			})
		}
	}
}

// TestAConditionThatFailsToRestoreLeavesTheCells: everything has been read and
// verified, but one rank refuses a state.
func TestAConditionThatFailsToRestoreLeavesTheCells(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	for rank := range 3 {
		refuse := func(c *comm.Comm, l *loader) {
			if c.Rank() == rank {
				l.plain.refuses = savedPlain
			}
		}
		err := failToLoad(t, fsys, 3, loadWanted{change: refuse, keep: true, kind: ErrBoundary})
		wantError(t, err, ErrBoundary, fmt.Sprintf("rank %d: ", rank), "state is refused")
		err = failToLoad(t, fsys, 3, loadWanted{change: refuse, opts: []Option{InPlace()}, kind: ErrBoundary})
		wantError(t, err, ErrBoundary, fmt.Sprintf("rank %d: ", rank), "state is refused")
	}
}

// TestAcceptRejectsOnAllRanks: Accept sees the metadata before the conditions are
// looked at, and its error is everybody's.
func TestAcceptRejectsOnAllRanks(t *testing.T) {
	fsys := newFS(t)
	saveForLoad(t, fsys, nil)
	for _, tc := range []struct {
		name   string
		accept func() error
		text   string
	}{
		{"an error", func() error { return fmt.Errorf("not this one: %w", fs.ErrPermission) }, "not this one"},
		{"a panic", func() error { panic("no opinion") }, "panic: no opinion"},
	} {
		for rank := range 3 {
			t.Run(fmt.Sprintf("%s on rank %d", tc.name, rank), func(t *testing.T) {
				inject := vfs.NewInject(fsys)
				err := onRanks(t, 3, func(c *comm.Comm) error {
					l, err := newLoader(c, host64, host64)
					if err := c.Agree(context.Background(), err); err != nil {
						return err
					}
					calls := 0
					_, err = LoadBundle(context.Background(), c, "/data/b", Request{
						Fields: l.solver.Fields, Boundaries: l.solver.Boundaries,
						Accept: func(m Metadata) error {
							calls++
							if m.AcceptedIncrement != loadIncrement || !slices.Equal(m.Fields, []string{"a", "b"}) {
								t.Errorf("accept was asked about %+v", m)
							}
							if c.Rank() == rank {
								return tc.accept()
							}
							return nil
						},
					}, Filesystem(inject))
					if l.plain.saved != 0 || calls != 1 {
						t.Errorf("rank %d: %d calls of a hook, %d of accept", c.Rank(), l.plain.saved, calls)
					}
					if err := l.untouched(); err != nil {
						t.Errorf("rank %d: %v", c.Rank(), err)
					}
					return err
				})
				wantError(t, err, nil, fmt.Sprintf("rank %d: %s", rank, tc.text))
				if ops := openedFields(inject); ops != nil {
					t.Errorf("fields were opened:\n\t%s", strings.Join(ops, "\n\t"))
				}
			})
		}
	}
}

// TestOpeningAndLoadingJudgeASidecarAlike: what one refuses the other does too.
func TestOpeningAndLoadingJudgeASidecarAlike(t *testing.T) {
	for _, text := range []string{`{"a": 1}`, `7`, ``, `{`, `{} {}`, "\xff"} {
		t.Run(fmt.Sprintf("%q", text), func(t *testing.T) {
			fsys := newFS(t)
			saveForLoad(t, fsys, nil)
			damage(t, fsys, "/data/b/sidecar.json", func([]byte) []byte { return []byte(text) })
			damage(t, fsys, "/data/b/checksums.txt", remove)
			b, opened := openBundle(fsys, "/data/b")
			if opened == nil {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
			}
			loaded := onRanks(t, 2, func(c *comm.Comm) error {
				l, err := newLoader(c, host64, host64)
				if err := c.Agree(context.Background(), err); err != nil {
					return err
				}
				_, err = LoadBundle(context.Background(), c, "/data/b", Request{Fields: l.solver.Fields, Boundaries: l.solver.Boundaries}, Filesystem(fsys))
				return err
			})
			if (opened == nil) != (loaded == nil) || opened != nil && !strings.Contains(loaded.Error(), opened.Error()) {
				t.Errorf("opening: %v\nloading: %v", opened, loaded)
			}
		})
	}
}
