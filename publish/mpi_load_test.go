package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// restarting is a solver that has just been made: nothing of it may change when
// a load is rejected.
type restarting struct {
	*part
	clock    *fixedClock
	results  int64
	boundary *fakeBoundary
	solver   Solver
	path     string
}

// fixedClock derives its time from the increment when it is told how.
type fixedClock struct {
	testClock
	timeAt func(int64) float64
}

func (c *fixedClock) TimeAt(n int64) float64 { return c.timeAt(n) }

func newRestarting(c *comm.Comm, path string) (*restarting, error) {
	box, err := cuts[1].box(testDomain, c)
	if err != nil {
		return nil, err
	}
	r := &restarting{path: path, results: 17, clock: &fixedClock{testClock{3, 0.25}, testTime}}
	if r.part, err = newPart(testDomain, box, [3]int{1, 2, 0}, host64, device32); err != nil {
		return nil, err
	}
	r.boundary = &fakeBoundary{config: `{"kind": "fake", "n": 1}`, state: `"old"`}
	r.solver = Solver{Fields: r.named(), Clock: r.clock, Results: &r.results, Method: "euler", Boundaries: []Boundary{r.boundary}}
	return r, nil
}

func (r *restarting) unchanged() error {
	err := r.untouched()
	if r.clock.testClock != (testClock{3, 0.25}) || r.results != 17 {
		err = errors.Join(err, fmt.Errorf("clock %+v, results %d", r.clock.testClock, r.results))
	}
	if r.boundary.state != `"old"` {
		err = errors.Join(err, fmt.Errorf("boundary condition in state %s", r.boundary.state))
	}
	return err
}

func (r *restarting) restored(increment int64) error {
	err := r.check(increment)
	if r.clock.testClock != (testClock{increment, testTime(increment)}) || r.results != 2*increment || r.boundary.state != `{"x":1}` {
		err = errors.Join(err, fmt.Errorf("clock %+v, results %d, boundary condition in state %s", r.clock.testClock, r.results, r.boundary.state))
	}
	return err
}

// loadFault is what is wrong with a load on one rank.
type loadFault struct {
	name  string
	spoil func(r *restarting)
	kind  error
	text  string
	late  bool // found when the fields have been read
}

func loadFaults() []loadFault {
	domain := func(change func(d *grid.Domain)) func(r *restarting) {
		return func(r *restarting) {
			for i := range r.solver.Fields {
				r.solver.Fields[i].Field = oddField{r.solver.Fields[i].Field, change}
			}
		}
	}
	return []loadFault{
		{"another size", domain(func(d *grid.Domain) { d.Size[2]++ }), ErrMismatch, "size", false},
		{"another spacing", domain(func(d *grid.Domain) { d.Spacing[0] *= 1 + 1e-11 }), ErrMismatch, "spacing", false},
		{"another origin", domain(func(d *grid.Domain) { d.Origin[1] = 1e-6 }), ErrMismatch, "origin", false},
		{"other periodicity", domain(func(d *grid.Domain) { d.Periodic[1] = true }), ErrMismatch, "periodic", false},
		{"another method", func(r *restarting) { r.solver.Method = "rk4" }, ErrMismatch, `"rk4"`, false},
		{"another time", func(r *restarting) { r.clock.timeAt = func(n int64) float64 { return testTime(n) + 1e-8 } }, ErrMismatch, "accepted_time", false},
		{"another boundary condition", func(r *restarting) { r.boundary.config = `{"kind": "fake", "n": 2}` }, ErrBoundary, "configuration", false},
		{"one boundary condition more", func(r *restarting) {
			r.solver.Boundaries = append(r.solver.Boundaries, &fakeBoundary{config: `{}`})
		}, ErrBoundary, "", false},
		{"a boundary condition that refuses the state", func(r *restarting) { r.boundary.refuses = `{"x":1}` }, nil, "refused", true},
		{"a field that is not there", func(r *restarting) { r.solver.Fields[1].ID = "phi" }, ErrInput, `"phi"`, false},
		{"the fields in another order", func(r *restarting) {
			f := r.solver.Fields
			f[0], f[1] = f[1], f[0]
		}, ErrInput, "", false},
		{"a box that overlaps another", func(r *restarting) {
			for i := range r.solver.Fields {
				r.solver.Fields[i].Field, _ = field.New[float64](testDomain, testDomain.Box())
			}
		}, nil, "overlap", false},
		{"another path", func(r *restarting) { r.path += "/." }, ErrInput, "path", false},
		{"a device that fails", func(r *restarting) {
			r.device.Inject(emulated.Fault{Call: emulated.CallStreamQuery, Err: errBoom})
		}, nil, "boom", true},
		{"a destination that is too narrow", func(r *restarting) {
			// The float64 field goes into a float32 one.
			r.solver.Fields[0].Field, _ = field.New[float32](testDomain, r.fields[0].Box())
		}, nil, "float32", true},
	}
}

// TestALoadThatIsWrongOnOneRankChangesNothingOnAny: a request that does not fit
// the bundle on one rank is rejected on all ranks by one error, before any field
// is opened where that can be known, and fields with their ghost cells, clock,
// result counter and boundary conditions keep every bit.
func TestALoadThatIsWrongOnOneRankChangesNothingOnAny(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
			dir := filepath.Join(t.TempDir(), "b")
			saved, err := newRestarting(c, dir)
			must(t, c, err)
			must(t, c, saved.set(9))
			state := saved.state(9)
			state.Boundaries = []Boundary{&fakeBoundary{config: `{"n": 1.0, "kind": "fake"}`, state: `{"x":1}`}}
			must(t, c, SaveBundle(t.Context(), c, dir, state))
			must(t, c, saved.close())
			load := func(spoil func(r *restarting), fsys vfs.FS) (*restarting, error) {
				r, err := newRestarting(c, dir)
				must(t, c, err)
				if spoil != nil {
					spoil(r)
				}
				options := []Option{}
				if fsys != nil {
					options = append(options, Filesystem(fsys))
				}
				service, err := NewService(context.Background(), c, Config{}, options...)
				must(t, c, err)
				_, err = service.Load(context.Background(), r.path, r.solver)
				return r, sameOutcome(t, c, err)
			}
			for i, f := range loadFaults() {
				for _, traced := range []bool{false, true} {
					for _, bad := range []int{0, c.Size() - 1} {
						if (i+bad)%2 == 0 == traced && c.Size() == 3 {
							continue // more ranks than cores are slow
						}
						var fsys vfs.FS
						inject := vfs.NewInject(vfs.OS)
						if traced {
							fsys = inject
						}
						spoil := f.spoil
						if c.Rank() != bad {
							spoil = nil
						}
						r, err := load(spoil, fsys)
						if err == nil || f.kind != nil && !errors.Is(err, f.kind) || !strings.Contains(err.Error(), f.text) {
							t.Errorf("%s on rank %d: %v: want %v that says %q", f.name, bad, err, f.kind, f.text)
						}
						if err := r.unchanged(); err != nil {
							t.Errorf("%s on rank %d: %v", f.name, bad, err)
						}
						opened := false
						for _, op := range inject.Ops() {
							opened = opened || op.Kind == vfs.OpOpen && strings.HasSuffix(op.Name, ".bin")
						}
						anywhere := []int64{0}
						if opened {
							anywhere[0] = 1
						}
						must(t, c, c.AllReduceInt64(t.Context(), comm.Max, anywhere)) // a rank may have no file to read
						if opened && !f.late {
							t.Errorf("%s on rank %d: a field was opened:\n%s", f.name, bad, strings.Join(inject.Trace(), "\n"))
						}
						if traced && anywhere[0] == 0 && f.late {
							t.Errorf("%s on rank %d: the fields were not even read", f.name, bad)
						}
						must(t, c, r.close())
					}
				}
			}
			r, err := load(nil, nil)
			if err == nil {
				err = r.restored(9)
			}
			if err := c.Agree(t.Context(), err); err != nil {
				t.Errorf("after all of that: %v", err)
			}
			must(t, c, r.close())
		}, opts...)
	})
}

// TestADamagedBundleChangesNothingOnAnyRank damages each file of a bundle in each
// way: all ranks reject it with one error that names the file, and change nothing;
// in place they say what they may have changed.
func TestADamagedBundleChangesNothingOnAnyRank(t *testing.T) {
	type damageWay struct {
		file   string
		change func(data []byte) []byte
		kind   error
		read   bool // found while the fields are read
	}
	flipAt := func(n int, bit byte) func(data []byte) []byte {
		return func(data []byte) []byte {
			data[(n+len(data))%len(data)] ^= 1 << bit
			return data
		}
	}
	var ways []damageWay
	for _, file := range []string{"fields/a.bin", "fields/b.bin"} {
		ways = append(ways,
			damageWay{file, func([]byte) []byte { return nil }, ErrDamaged, false},
			damageWay{file, func(data []byte) []byte { return data[:len(data)-1] }, ErrDamaged, false},
			damageWay{file, func(data []byte) []byte { return data[:len(data)-8] }, ErrDamaged, false},
			damageWay{file, func(data []byte) []byte { return append(data, 0) }, ErrDamaged, false},
			damageWay{file, func(data []byte) []byte { return append(data, make([]byte, 8)...) }, ErrDamaged, false},
			// Signs, since a float32 field takes the number as well without one.
			damageWay{file, flipAt(7, 7), ErrChecksum, true},
			damageWay{file, flipAt(407, 7), ErrChecksum, true},
			damageWay{file, flipAt(-1, 7), ErrChecksum, true},
		)
	}
	ways = append(ways,
		damageWay{"fields/a.bin", flipAt(0, 0), ErrChecksum, true},
		damageWay{"fields/a.bin", flipAt(-3, 4), ErrChecksum, true},
		damageWay{"metadata.json", func([]byte) []byte { return nil }, ErrNotABundle, false},
		damageWay{"metadata.json", func(data []byte) []byte { return data[:len(data)/2] }, ErrDamaged, false},
		damageWay{"metadata.json", func(data []byte) []byte {
			return []byte(strings.Replace(string(data), `"accepted_time": 3`, `"accepted_time": 2`, 1))
		}, ErrChecksum, false},
		damageWay{"sidecar.json", func(data []byte) []byte { return []byte(strings.Replace(string(data), "42", "43", 1)) }, ErrChecksum, false},
		damageWay{"checksums.txt", flipAt(3, 4), ErrDamaged, false},
	)
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
			dir := filepath.Join(t.TempDir(), "b")
			saved, err := newRestarting(c, dir)
			must(t, c, err)
			must(t, c, saved.set(9))
			state := saved.state(9)
			state.Sidecar = map[string]int{"answer": 42}
			state.Boundaries = []Boundary{&fakeBoundary{config: `{"n": 1, "kind": "fake"}`, state: `{"x":1}`}}
			must(t, c, SaveBundle(t.Context(), c, dir, state))
			must(t, c, saved.close())
			for i, way := range ways {
				path := filepath.Join(dir, filepath.FromSlash(way.file))
				var good []byte
				onRankZero(t, c, func() error {
					if good, err = os.ReadFile(path); err != nil {
						return err
					}
					bad := way.change(append([]byte(nil), good...))
					if string(bad) == string(good) {
						return errors.New("nothing was damaged")
					}
					if bad == nil {
						return os.Remove(path)
					}
					return os.WriteFile(path, bad, 0o666)
				})
				for _, inPlace := range []bool{false, true} {
					var loadOpts []Option
					if inPlace {
						loadOpts = append(loadOpts, InPlace())
					}
					r, err := newRestarting(c, dir)
					must(t, c, err)
					service, err := NewService(context.Background(), c, Config{}, loadOpts...)
					must(t, c, err)
					_, err = service.Load(context.Background(), dir, r.solver)
					err = sameOutcome(t, c, err)
					if !errors.Is(err, way.kind) || way.kind != ErrNotABundle && !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), filepath.Base(way.file)) {
						t.Errorf("way %d, %s, in place %t: %v: want %v", i, way.file, inPlace, err, way.kind)
					}
					undefined := inPlace && way.read
					if errors.Is(err, ErrFieldsUndefined) != undefined {
						t.Errorf("way %d, %s, in place %t: %v: the fields are undefined: want %t", i, way.file, inPlace, err, undefined)
					}
					if err := r.unchanged(); err != nil && !undefined {
						t.Errorf("way %d, %s, in place %t: %v", i, way.file, inPlace, err)
					}
					must(t, c, r.close())
				}
				onRankZero(t, c, func() error { return os.WriteFile(path, good, 0o666) })
			}
			r, err := newRestarting(c, dir)
			must(t, c, err)
			l, err := LoadBundle(t.Context(), c, dir, Request{Fields: r.named(), Boundaries: r.solver.Boundaries})
			must(t, c, err)
			if !l.Verified || !strings.Contains(string(l.Sidecar), "42") || r.check(9) != nil {
				t.Errorf("the bundle as it was: %+v, %v", l, r.check(9))
			}
			must(t, c, r.close())
		}, opts...)
	})
}
