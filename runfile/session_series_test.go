//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

var seriesDomain = grid.Domain{Size: [3]int{7, 5, 6}, Spacing: [3]float64{1, 1, 1}}

// phiAt and heatAt are the cells of the fields at a time; those of heat are float32.
func phiAt(time float64, x, y, z int) float64 {
	return time + 0.1*float64(x) + 10.7*float64(y) + 100.3*float64(z)
}

func heatAt(time float64, x, y, z int) float64 {
	return 1024*time + float64(x+8*y+64*z)
}

// A cut tells which cells each of some ranks has.
type cut func(ranks int) []grid.Box

// cuts are ways to cut a domain, the ranks at the end having nothing in some of them.
var cuts = map[string]cut{
	"x":             func(ranks int) []grid.Box { return along(0, ranks, ranks) },
	"y, some empty": func(ranks int) []grid.Box { return along(1, max(1, ranks-1), ranks) },
	"z":             func(ranks int) []grid.Box { return along(2, ranks, ranks) },
	"as it is done": func(ranks int) []grid.Box {
		d, err := grid.Decompose(seriesDomain, ranks)
		if err != nil {
			panic(err)
		}
		list := make([]grid.Box, ranks)
		for r := range list {
			list[r] = d.Box(r)
		}
		return list
	},
}

// along cuts one axis into uneven parts.
func along(axis, parts, ranks int) []grid.Box {
	list := make([]grid.Box, ranks)
	low, n := 0, seriesDomain.Size[axis]
	for r := range parts {
		high := low + max(1, (n-low)/(parts-r)-r%2)
		if r == parts-1 {
			high = n
		}
		list[r] = seriesDomain.Box()
		list[r].Low[axis], list[r].Size[axis] = low, high-low
		low = high
	}
	return list
}

// cellSolver is the solver of a run with fields, whose cells are a function of the time.
type cellSolver struct {
	phi  *field.Field[float64]
	heat *field.Field[float32]
	on   *emulated.Device // of phi, if any
}

func newCellSolver(t testing.TB, box grid.Box, halo int, device bool) *cellSolver {
	t.Helper()
	s := &cellSolver{}
	opts := []field.Option{field.Halo(halo)}
	var err error
	if s.heat, err = field.New[float32](seriesDomain, box, opts...); err != nil {
		t.Fatal(err)
	}
	if device {
		if s.on, err = emulated.New(); err != nil {
			t.Fatal(err)
		}
		opts = append(opts, field.In(s.on))
	}
	if s.phi, err = field.New[float64](seriesDomain, box, opts...); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *cellSolver) free(t testing.TB) {
	t.Helper()
	if err := errors.Join(s.phi.Free(), s.heat.Free()); err != nil {
		t.Error(err)
	}
	if s.on != nil {
		if err := s.on.Close(); err != nil {
			t.Error(err)
		}
	}
}

// fill gives a field the cells of a time, and its ghost cells what nobody wants.
func fill[T float32 | float64](t testing.TB, f *field.Field[T], time float64, at func(time float64, x, y, z int) float64) {
	t.Helper()
	view, err := f.MutableView()
	if err != nil {
		t.Fatal(err)
	}
	for i := range view {
		view[i] = -7
	}
	for c := range f.Owned().Cells() {
		g := f.Global(c[0], c[1], c[2])
		view[f.Index(c[0], c[1], c[2])] = T(at(time, g[0], g[1], g[2]))
	}
	// The device has the cells now, and has them alone.
	if err := errors.Join(f.Upload(), f.NoteDeviceWrite()); err != nil {
		t.Fatal(err)
	}
}

func (s *cellSolver) set(t testing.TB, time float64) {
	t.Helper()
	fill(t, s.phi, time, phiAt)
	fill(t, s.heat, time, heatAt)
}

// check compares the cells that a rank owns.
func (s *cellSolver) check(t testing.TB, what string, time float64) {
	t.Helper()
	checkOwned(t, what+": phi", s.phi, time, phiAt)
	checkOwned(t, what+": heat", s.heat, time, heatAt)
}

func checkOwned[T float32 | float64](t testing.TB, what string, f *field.Field[T], time float64, at func(time float64, x, y, z int) float64) {
	t.Helper()
	view, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	for c := range f.Owned().Cells() {
		g := f.Global(c[0], c[1], c[2])
		if got, want := float64(view[f.Index(c[0], c[1], c[2])]), at(time, g[0], g[1], g[2]); got != want {
			t.Fatalf("%s: cell %v is %v, want %v", what, g, got, want)
		}
	}
}

func (s *cellSolver) config(dir string) Config {
	return Config{
		Directory: dir, Name: "run", Resume: true,
		Layout: Layout{Unknowns: []Unknown{
			{Name: "phi", Kind: Field, Unit: "1", Domain: seriesDomain}, {Name: "E", Kind: Scalar},
			{Name: "heat", Kind: Field, Domain: seriesDomain},
		}},
		Initial:    []float64{0},
		TimePoints: []float64{0, 1, 2, 3, 4, 5},
		Fields:     []field.Named{{ID: "phi", Field: s.phi}, {ID: "heat", Field: s.heat}},
		Checkpoint: CheckpointConfig{Steps: 2},
	}
}

// step makes one step and saves the state after it.
func (s *cellSolver) step(ctx context.Context, t testing.TB, run *Session) error {
	t.Helper()
	next := run.NextTime()
	run.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true, WallTime: 1})
	s.set(t, next)
	return run.SaveState(ctx, []float64{next})
}

// advance runs a segment to its end.
func (s *cellSolver) advance(ctx context.Context, t testing.TB, run *Session) (out Outcome) {
	t.Helper()
	if !run.Start().Resumed {
		s.set(t, run.time)
	}
	err := run.SaveState(ctx, []float64{run.time})
	for err == nil && !out.Done && !out.Stop {
		if err = s.step(ctx, t, run); err == nil {
			out, err = run.Checkpoint(ctx, []float64{run.time}, nil)
		}
	}
	if err = errors.Join(err, run.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	return out
}

// smallDisk is a disk on which a chunk of a field has one plane, so that some
// lie apart.
func smallDisk(cfg Config, fsys vfs.FS) *disk {
	d := diskWith(cfg, fsys)
	d.chunkBytes = seriesDomain.Size[0] * seriesDomain.Size[1] * 8
	return d
}

// checkCellsIn compares the fields of all states that a run has written, and of its
// last checkpoint, with what they were.
func checkCellsIn(t testing.TB, dir string, times ...float64) {
	t.Helper()
	out := joinedOnDisk(t, dir)
	if !slices.Equal(out.Times, times) {
		t.Fatalf("saved times are %v, want %v", out.Times, times)
	}
	k, err := ReadCheckpoint(t.Context(), dir, "run")
	if err != nil || k.Previous {
		t.Fatal(k, err)
	}
	cells := make([]float64, seriesDomain.Cells())
	for name, at := range map[string]func(time float64, x, y, z int) float64{"phi": phiAt, "heat": heatAt} {
		for i := -1; i < len(times); i++ {
			time := k.Time
			if i < 0 {
				err = k.ReadField(t.Context(), name, seriesDomain.Box(), cells)
			} else {
				time = times[i]
				err = out.ReadField(t.Context(), name, i, seriesDomain.Box(), cells)
			}
			if err != nil {
				t.Fatal(err)
			}
			for c, got := range cells {
				x, y, z := c%7, c/7%5, c/35
				if want := at(time, x, y, z); got != want {
					t.Fatalf("%s at %v s (%d): cell %d, %d, %d is %v, want %v", name, time, i, x, y, z, got, want)
				}
			}
		}
	}
}

// Segments of a run on different numbers of ranks, cut in different ways, in memory of
// the host and of a device, are one run.
func TestAllRanksWriteFields(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3, 4}, func(t *mpitest.T, c *comm.Comm) {
		names := []string{"x", "y, some empty", "z", "as it is done"}
		for i, name := range names {
			dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
			for segment := 1; ; segment++ {
				// All of them, then all but one, and so on.
				ranks := max(1, c.Size()-(segment-1)%c.Size())
				color := 0
				if c.Rank() >= ranks {
					color = -1
				}
				part, err := c.Split(color, c.Rank())
				if err != nil {
					t.Fatal(err)
				}
				done := []int64{0}
				if part != nil {
					box := cuts[names[(i+segment)%len(names)]](ranks)[part.Rank()]
					s := newCellSolver(t, box, (i+segment)%5, segment%2 == 0)
					cfg := s.config(dir)
					cfg.Stop.Steps = int64(1 + segment%2)
					run, err := open(t.Context(), part, cfg, smallDisk(cfg, vfs.OS), time.Now)
					if err != nil {
						t.Fatal(err)
					}
					if segment > 1 {
						s.check(t, fmt.Sprintf("cut along %s, segment %d", name, segment), run.Start().Time)
					}
					done[0] = boolFlag(s.advance(t.Context(), t, run).Done)
					s.free(t)
					if err := part.Free(); err != nil {
						t.Fatal(err)
					}
				}
				if err := c.AllReduceInt64(t.Context(), comm.Max, done); err != nil {
					t.Fatal(err)
				}
				if done[0] != 0 {
					break
				}
			}
			if c.Rank() == 0 {
				checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
				if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
					t.Errorf("%q is left", left)
				}
			}
		}
	})
}

// States of fields that were saved before a wrong call are in the segment when it is
// closed.
func TestAWrongCallLosesNoField(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		s := newCellSolver(t, cuts["as it is done"](c.Size())[c.Rank()], 1, false)
		cfg := s.config(dir)
		cfg.Checkpoint = CheckpointConfig{}
		run, err := open(ctx, c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		if err := errors.Join(run.SaveState(ctx, []float64{0}), s.step(ctx, t, run)); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == c.Size()-1 {
			run.Attempt(Attempt{Time: 1, Accepted: true})
		}
		if _, err := run.Checkpoint(ctx, []float64{1}, nil); !errors.Is(err, ErrInput) {
			t.Errorf("the checkpoint gives %v", err)
		}
		err = run.Close(ctx)
		if !errors.Is(err, ErrInput) || strings.Contains(err.Error(), "lost") {
			t.Errorf("close gives %v", err)
		}
		sameOnAllRanks(t, c, "close", err)
		s.free(t)
		if c.Rank() != 0 {
			return
		}
		out := joinedOnDisk(t, dir)
		if !slices.Equal(out.Times, []float64{0, 1}) {
			t.Fatalf("saved times are %v", out.Times)
		}
		cells := make([]float64, seriesDomain.Cells())
		for i, time := range out.Times {
			if err := out.ReadField(ctx, "phi", i, seriesDomain.Box(), cells); err != nil {
				t.Fatal(err)
			}
			for n, got := range cells {
				if want := phiAt(time, n%7, n/7%5, n/35); got != want {
					t.Fatalf("cell %d at %v s is %v, want %v", n, time, got, want)
				}
			}
		}
	})
}

// Chunks of a time that lie apart in the file are moved apart.
func TestPlanesThatLieApart(t *testing.T) {
	d := grid.Domain{Size: [3]int{2, 3, 5}, Spacing: [3]float64{1, 1, 1}}
	piece := func(z, n int, offset int64) h5.Piece {
		return h5.Piece{Start: []int{7, z, 0, 0}, Count: []int{1, n, 3, 2}, Offset: offset, Bytes: 2 * 48}
	}
	for name, tc := range map[string]struct {
		pieces []h5.Piece
		want   []planeRun
	}{
		"one":              {[]h5.Piece{piece(0, 5, 100)}, []planeRun{{0, 5, 100}}},
		"adjoining":        {[]h5.Piece{piece(0, 2, 100), piece(2, 2, 196), piece(4, 1, 292)}, []planeRun{{0, 5, 100}}},
		"a gap":            {[]h5.Piece{piece(0, 2, 100), piece(2, 2, 200), piece(4, 1, 296)}, []planeRun{{0, 2, 100}, {2, 5, 200}}},
		"in another order": {[]h5.Piece{piece(0, 2, 500), piece(2, 2, 404), piece(4, 1, 300)}, []planeRun{{0, 2, 500}, {2, 4, 404}, {4, 5, 300}}},
		"a piece missing":  {[]h5.Piece{piece(0, 2, 100), piece(4, 1, 292)}, nil},
		"the end missing":  {[]h5.Piece{piece(0, 2, 100), piece(2, 2, 196)}, nil},
		"parts of planes":  {[]h5.Piece{{Start: []int{0, 0, 0, 0}, Count: []int{1, 5, 3, 1}, Offset: 8}}, nil},
		"nothing":          {nil, nil},
	} {
		if got := planeRuns(tc.pieces, d); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	// The chunks of the test above are of that kind.
	closed(t)
	dir := t.TempDir()
	s := newCellSolver(t, seriesDomain.Box(), 0, false)
	cfg := s.config(dir)
	o, err := smallDisk(cfg, vfs.OS).options(Extendible())
	if err != nil {
		t.Fatal(err)
	}
	settings, err := cfg.settings(1)
	if err == nil {
		settings, err = settings.With("segment", mustRecord(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newSegmentWriter(dir, "run", 1, o)
	apart := 0
	for range 5 {
		p, err := w.reserve(t.Context(), &Solution{Settings: settings, Layout: cfg.Layout})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Fields {
			if len(f.Runs) > 1 {
				apart++
			}
		}
	}
	if apart == 0 {
		t.Error("all chunks adjoin: the tests of several ranks miss those that don't")
	}
}

// sameOnAllRanks compares the texts of an error.
func sameOnAllRanks(t *mpitest.T, c *comm.Comm, what string, err error) {
	t.Helper()
	texts, gather := c.AllGather(t.Context(), fmt.Append(nil, err))
	if gather != nil {
		t.Fatal(gather)
	}
	for rank, text := range texts {
		if string(text) != string(texts[0]) {
			t.Errorf("%s: rank 0 has %q, rank %d has %q", what, texts[0], rank, text)
		}
	}
}

// Fields that files can't hold are refused by all ranks, and nothing is written.
func TestFieldsThatAreRefused(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		last := c.Rank() == c.Size()-1
		other := seriesDomain
		other.Size[1]++
		for _, tc := range []struct { // in the same order on all ranks
			name   string
			change func(cfg *Config, s *cellSolver)
			want   []error
			text   string
		}{
			{"one that isn't given on the last rank", func(cfg *Config, s *cellSolver) {
				if last {
					cfg.Fields = cfg.Fields[:1]
				}
			}, nil, `field "heat" is not in Fields`},
			{"nil", func(cfg *Config, s *cellSolver) { cfg.Fields[1].Field = nil }, nil, `field "heat" is nil`},
			{"complex numbers", func(cfg *Config, s *cellSolver) {
				f, err := field.New[complex128](seriesDomain, s.phi.Box())
				if err != nil {
					t.Fatal(err)
				}
				cfg.Fields[0].Field = f
			}, []error{errors.ErrUnsupported}, "complex128"},
			{"another grid", func(cfg *Config, s *cellSolver) { cfg.Layout.Unknowns[0].Domain = other }, nil, `field "phi"`},
			{"a gap", func(cfg *Config, s *cellSolver) {
				if last {
					box := s.phi.Box()
					box.Size[0]--
					f, err := field.New[float64](seriesDomain, box)
					if err != nil {
						t.Fatal(err)
					}
					cfg.Fields[0].Field = f
				}
			}, nil, `the ranks' parts of field "phi"`},
		} {
			name := tc.name
			dir := filepath.Join(t.TempDir(), name)
			s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
			cfg := s.config(dir)
			tc.change(&cfg, s)
			_, err := Open(t.Context(), c, cfg)
			for _, want := range append(tc.want, ErrInput) {
				if !errors.Is(err, want) {
					t.Errorf("%s: %v, want %v", name, err, want)
				}
			}
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: %v, want %q", name, err, tc.text)
			}
			sameOnAllRanks(t, c, name, err)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// brittle is a field whose cells can't be had for a while.
type brittle struct {
	field.Any
	fail *error
}

func (b brittle) Source() (pack.Source, error) {
	s, err := b.Any.Source()
	return brittleSource{s, b.fail}, err
}

type brittleSource struct {
	pack.Source
	fail *error
}

func (s brittleSource) ReadCells(dst []byte, first int64) error {
	if *s.fail != nil {
		return *s.fail
	}
	return s.Source.ReadCells(dst, first)
}

// What can't be written is tried again while nothing is lost by that. Otherwise the
// session ends, and a run goes on from the last checkpoint.
func TestFieldsThatCannotBeWritten(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		last := c.Rank() == c.Size()-1
		dir := t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		cfg := s.config(dir)
		cfg.Checkpoint.Steps = 1 << 40
		var fail error
		cfg.Fields[1].Field = brittle{s.heat, &fail}
		breaks := func() {
			if last {
				fail = errKilled
			}
		}
		run, err := Open(ctx, c, cfg)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		// Nothing is in the working file yet.
		breaks()
		err = run.SaveState(ctx, []float64{0})
		if !errors.Is(err, errKilled) || !strings.Contains(err.Error(), `field "heat"`) {
			t.Errorf("a field that can't be read gives %v", err)
		}
		sameOnAllRanks(t, c, "the first state", err)
		fail = nil
		if err := run.SaveState(ctx, []float64{0}); err != nil {
			t.Fatal(err)
		}
		checkpoint := func() error {
			run.cfg.Checkpoint.Steps = 1
			_, err := run.Checkpoint(ctx, []float64{run.time}, nil)
			run.cfg.Checkpoint.Steps = 1 << 40
			return err
		}
		if err := s.step(ctx, t, run); err != nil {
			t.Fatal(err)
		}
		if err := checkpoint(); err != nil {
			t.Fatal(err)
		}
		// Nor after a checkpoint.
		breaks()
		if err := s.step(ctx, t, run); !errors.Is(err, errKilled) {
			t.Errorf("a field that can't be read gives %v", err)
		}
		fail = nil
		if err := run.SaveState(ctx, []float64{2}); err != nil {
			t.Fatal(err)
		}
		// A checkpoint whose own cells fail leaves the last one, and is tried again; the
		// segment has its states.
		breaks()
		err = checkpoint()
		if !errors.Is(err, errKilled) {
			t.Errorf("a checkpoint of a field that can't be read gives %v", err)
		}
		sameOnAllRanks(t, c, "the checkpoint", err)
		fail = nil
		if c.Rank() == 0 {
			if k, err := ReadCheckpoint(ctx, dir, "run"); err != nil || k.Time != 1 || k.Previous {
				t.Errorf("the checkpoint is %+v, %v", k, err)
			}
			if out := joinedOnDisk(t, dir); !slices.Equal(out.Times, []float64{0, 1, 2}) {
				t.Errorf("saved times are %v", out.Times)
			}
		}
		if err := checkpoint(); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2)
		}
		if err := c.Meet(ctx); err != nil {
			t.Fatal(err)
		}
		// A state of the working file alone is lost with it.
		if err := s.step(ctx, t, run); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Checkpoint(ctx, []float64{3}, nil); err != nil {
			t.Fatal(err)
		}
		breaks()
		err = s.step(ctx, t, run)
		fail = nil
		for _, call := range []func() error{
			func() error { return run.SaveState(ctx, []float64{4}) }, checkpoint, func() error { return run.Close(ctx) },
		} {
			if !errors.Is(err, errKilled) || !strings.Contains(err.Error(), "states of fields are lost") {
				t.Errorf("after states were lost: %v", err)
			}
			sameOnAllRanks(t, c, "after states were lost", err)
			err = call()
		}
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2)
			if left := fmt.Sprint(mustNames(t, dir)); strings.Contains(left, ".tmp") || strings.Contains(left, ".lock") {
				t.Errorf("there are %s", left)
			}
		}
		if err := c.Meet(ctx); err != nil {
			t.Fatal(err)
		}
		if run, err = Open(ctx, c, s.config(dir)); err != nil {
			t.Fatal(err)
		}
		s.check(t, "the next segment", 2)
		s.advance(ctx, t, run)
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
		}
	})
}

func mustNames(t testing.TB, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A context that is cancelled on one rank is an error on all.
func TestCancelledOnOneRank(t *testing.T) {
	mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
		dir := t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		run, err := Open(t.Context(), c, s.config(dir))
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		ctx := t.Context()
		if c.Rank() == c.Size()-1 {
			cancelled, cancel := context.WithCancel(ctx)
			cancel()
			ctx = cancelled
		}
		err = run.SaveState(ctx, []float64{0})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled context gives %v", err)
		}
		sameOnAllRanks(t, c, "a cancelled context", err)
		s.advance(t.Context(), t, run)
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
		}
	})
}

// lateCancel is a context that is cancelled when it has been looked at a few times.
type lateCancel struct {
	context.Context
	looks *int
}

func (c lateCancel) Err() error {
	if *c.looks--; *c.looks < 0 {
		return context.Canceled
	}
	return nil
}

// Whenever a context is cancelled on one rank, with fields or without, all ranks have
// the same error, and no state is in the files twice or missing.
func TestCancelledAtAnyTime(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		for rank := range c.Size() {
			for _, fields := range []bool{true, false} {
				step := 1
				if fields { // whose cells are moved with many looks
					step = 11
				}
				for looks := 0; ; looks += step {
					dir := filepath.Join(t.TempDir(), fmt.Sprint(rank, fields, looks))
					s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
					cfg := s.config(dir)
					cfg.Checkpoint.Steps = 1
					if !fields {
						cfg.Layout.Unknowns = cfg.Layout.Unknowns[1:2]
					}
					run, err := Open(t.Context(), c, cfg)
					if err != nil {
						t.Fatal(err)
					}
					ctx := t.Context()
					left := looks
					if c.Rank() == rank {
						ctx = lateCancel{ctx, &left}
					}
					try := func(call func(ctx context.Context) error) bool {
						err := call(ctx)
						sameOnAllRanks(t, c, "a cancelled context", err)
						if err == nil {
							return true
						}
						if !errors.Is(err, context.Canceled) {
							t.Fatalf("looked at %d times: %v", looks, err)
						}
						if err := call(t.Context()); err != nil {
							t.Fatalf("looked at %d times: again: %v", looks, err)
						}
						return false
					}
					checkpoint := func(ctx context.Context) error {
						_, err := run.Checkpoint(ctx, []float64{run.time}, nil)
						return err
					}
					s.set(t, 0)
					// Nothing is lost: each state is published before the next one.
					fine := try(func(ctx context.Context) error { return run.SaveState(ctx, []float64{0}) })
					for range 2 {
						run.Attempt(Attempt{Time: run.NextTime(), StepLength: 1, Accepted: true, WallTime: 1})
						s.set(t, run.time)
						fine = try(func(ctx context.Context) error { return run.SaveState(ctx, []float64{run.time}) }) && fine
						fine = try(checkpoint) && fine
					}
					if err := run.Close(t.Context()); err != nil {
						t.Fatal(err)
					}
					if c.Rank() == 0 {
						if fields {
							checkCellsIn(t, dir, 0, 1, 2)
						} else if out := joinedOnDisk(t, dir); !slices.Equal(out.Times, []float64{0, 1, 2}) || out.Statistics.Attempts() != 2 {
							t.Fatalf("looked at %d times: %v, %d attempts", looks, out.Times, out.Statistics.Attempts())
						}
					}
					if fine {
						break
					}
				}
			}
		}
	})
}

// Whichever call of the system fails on whichever rank, all ranks are told the same, no
// file is torn, and the run can go on.
func TestFaultsWhileFieldsAreWritten(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		ctx := t.Context()
		for rank := range c.Size() {
			for i := 0; ; i++ {
				dir := filepath.Join(t.TempDir(), fmt.Sprint(rank, " ", i))
				s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, false)
				cfg := s.config(dir)
				cfg.Checkpoint.Steps = 1
				in := vfs.NewInject(vfs.OS)
				run, err := open(ctx, c, cfg, smallDisk(cfg, in), time.Now)
				if err != nil {
					t.Fatal(err)
				}
				s.set(t, 0)
				checkpoint := func() error {
					_, err := run.Checkpoint(ctx, []float64{run.time}, nil)
					return err
				}
				if err := run.SaveState(ctx, []float64{0}); err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(s.step(ctx, t, run), checkpoint()); err != nil {
					t.Fatal(err)
				}
				// Two states in the working file, and a checkpoint of the second.
				at := len(in.Ops()) + 1 + i
				if c.Rank() == rank {
					in.FailAt(at, syscall.EIO)
				}
				for _, steps := range []int64{2, 1} {
					if err == nil {
						err = s.step(ctx, t, run)
					}
					if run.cfg.Checkpoint.Steps = steps; err == nil {
						err = checkpoint()
					}
				}
				sameOnAllRanks(t, c, "a fault", err)
				trace := strings.Join(in.Trace(), "\n")
				if c.Rank() == 0 {
					out := joinedOnDisk(t, dir)
					k, kerr := ReadCheckpoint(ctx, dir, "run")
					if kerr != nil || k.SavedCount > len(out.Times) {
						t.Fatalf("after a fault at call %d of rank %d, %v: %d states, the checkpoint has %+v, %v\n%s", i, rank, err, len(out.Times), k, kerr, trace)
					}
				}
				hit := []int64{boolFlag(c.Rank() == rank && len(in.Ops()) >= at)}
				if err := c.AllReduceInt64(ctx, comm.Max, hit); err != nil {
					t.Fatal(err)
				}
				in.ClearRules() // before Close comes to it
				if hit[0] == 0 && (err != nil || rank == 0 && i < 20) {
					t.Fatalf("rank %d has %d calls; %v", rank, i, err)
				}
				if err != nil && !errors.Is(err, syscall.EIO) {
					t.Fatalf("a fault at call %d of rank %d gives %v", i, rank, err)
				}
				if closing := run.Close(ctx); closing != nil && err == nil {
					t.Fatalf("after a fault at call %d of rank %d, which did no harm: %v", i, rank, closing)
				}
				again := s.config(dir)
				if run, err = Open(ctx, c, again); err != nil {
					t.Fatalf("after a fault at call %d of rank %d: %v\n%s", i, rank, err, trace)
				}
				s.check(t, "the next segment", run.Start().Time)
				s.advance(ctx, t, run)
				if c.Rank() == 0 {
					checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
					if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
						t.Errorf("after a fault at call %d of rank %d %q is left\n%s", i, rank, left, trace)
					}
				}
				if err := c.Meet(ctx); err != nil {
					t.Fatal(err)
				}
				if hit[0] == 0 {
					break
				}
			}
		}
	})
}
