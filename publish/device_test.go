package publish

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

var (
	direct64 = space{onDevice: true, path: field.Direct}
	direct32 = space{onDevice: true, path: field.Direct, single: true}
	mirror64 = space{onDevice: true, path: field.Mirror}
)

// inMemory are the same fields on the host.
func inMemory(spaces []space) []space {
	var host []space
	for _, s := range spaces {
		host = append(host, space{single: s.single})
	}
	return host
}

// TestDeviceFieldsPublishTheBytesOfHostFields saves and loads fields on devices on 1, 2
// and 3 ranks, along the mirror and past it: the bundles are those of host fields, and
// what moves is what must.
func TestDeviceFieldsPublishTheBytesOfHostFields(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		if mpi.Enabled && d.Slow {
			return // launches of many processes; the lazy ones see the most
		}
		mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
			domain := testDomain
			domain.Size = [3]int{5, 7, 2} // some ranks own nothing
			for halo := range 5 {
				if d.Slow && halo%2 == 1 {
					continue
				}
				box, err := cuts[halo%len(cuts)].box(domain, c)
				must(t, c, err)
				deviceRoundTrip(t, c, d, fmt.Sprint("halo-", halo), domain, box, [3]int{halo, halo, halo},
					direct64, mirror64, direct32, device64, device32)
			}
			if !d.Slow {
				domain.Size = [3]int{40, 40, 90} // takes several chunks
				box, err := cuts[c.Size()%len(cuts)].box(domain, c)
				must(t, c, err)
				deviceRoundTrip(t, c, d, "large", domain, box, [3]int{1, 2, 0}, direct64, device32)
			}
		})
	})
}

func deviceRoundTrip(t *mpitest.T, c *comm.Comm, d devtest.Device, name string, domain grid.Domain, box grid.Box, halo [3]int, onDevices ...space) {
	t.Helper()
	dir := func(what string) string {
		return filepath.Join(t.TempDir(), strings.ReplaceAll(d.Name, " ", "-")+"-"+name+"-"+what)
	}
	host, err := newPart(domain, box, halo, inMemory(onDevices)...)
	must(t, c, err)
	must(t, c, host.set(7))
	must(t, c, SaveBundle(t.Context(), c, dir("host"), host.state(7), WithDurability(None)))
	must(t, c, host.close())

	p, err := newPartOn(d.Open, domain, box, halo, onDevices...)
	must(t, c, err)
	must(t, c, p.set(7))
	cells := box.Cells()
	var moved []field.Transfers
	note := func() {
		moved = nil
		for _, f := range p.fields {
			moved = append(moved, f.Transfers())
		}
	}
	// check compares what was moved since with what must be.
	check := func(what string, want func(s space) field.Transfers) {
		t.Helper()
		for i, f := range p.fields {
			w := want(p.spaces[i])
			if box.Empty() {
				w = field.Transfers{}
			}
			got, was := f.Transfers(), moved[i]
			got.Refreshes, got.Uploads = got.Refreshes-was.Refreshes, got.Uploads-was.Uploads
			got.ReadCells, got.ReadBytes = got.ReadCells-was.ReadCells, got.ReadBytes-was.ReadBytes
			got.WrittenCells, got.WrittenBytes = got.WrittenCells-was.WrittenCells, got.WrittenBytes-was.WrittenBytes
			if got != w {
				t.Errorf("%s: field %q, %v, halo %v: %+v, want %+v", what, p.ids[i], p.spaces[i], halo, got, w)
			}
		}
	}
	// The device is newer: past the mirror but where that is forbidden, each time.
	for round := range 2 {
		note()
		path := dir(fmt.Sprint("device", round))
		must(t, c, SaveBundle(t.Context(), c, path, p.state(7), WithDurability(None)))
		check(fmt.Sprintf("save %d", round), func(s space) field.Transfers {
			switch {
			case s.path != field.Mirror:
				return field.Transfers{ReadCells: cells, ReadBytes: 8 * cells}
			case round == 0:
				return field.Transfers{Refreshes: 1}
			}
			return field.Transfers{}
		})
		onRankZero(t, c, func() error { return sameFields(dir("host"), path, p.ids) })
	}
	onRankZero(t, c, func() error { return checkBundle(vfs.OS, dir("device0"), domain, 7, onDevices...) })

	// A mirror that is valid is what is read only where it was asked for.
	for _, f := range p.fields {
		switch f := f.(type) {
		case typed[float64]:
			_, err = f.View()
		case typed[float32]:
			_, err = f.View()
		}
		must(t, c, err)
	}
	note()
	must(t, c, SaveBundle(t.Context(), c, dir("view"), p.state(7), WithDurability(None)))
	check("save with a valid mirror", func(s space) field.Transfers {
		if s.path != field.Mirror {
			return field.Transfers{ReadCells: cells, ReadBytes: 8 * cells}
		}
		return field.Transfers{}
	})
	onRankZero(t, c, func() error { return sameFields(dir("host"), dir("view"), p.ids) })
	must(t, c, p.close())

	for _, inPlace := range []bool{false, true} {
		opts := []Option{WithDurability(None)}
		if inPlace {
			opts = append(opts, InPlace())
		}
		p, err = newPartOn(d.Open, domain, box, halo, onDevices...)
		must(t, c, err)
		note()
		_, err := LoadBundle(t.Context(), c, dir("host"), Request{Fields: p.named()}, opts...)
		must(t, c, err)
		check(fmt.Sprintf("load, in place %t", inPlace), func(s space) field.Transfers {
			if s.path == field.Mirror {
				return field.Transfers{Refreshes: 1, Uploads: 1}
			}
			return field.Transfers{WrittenCells: cells, WrittenBytes: 8 * cells}
		})
		must(t, c, p.check(7))
		must(t, c, p.close())
	}
}

// sameFields reports whether two bundles have the same files of fields.
func sameFields(a, b string, ids []string) error {
	for _, id := range ids {
		x, err := os.ReadFile(filepath.Join(a, "fields", id+".bin"))
		if err != nil {
			return err
		}
		y, err := os.ReadFile(filepath.Join(b, "fields", id+".bin"))
		if err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			return fmt.Errorf("field %q differs in %s and %s", id, a, b)
		}
	}
	return nil
}

// TestDumpsOfDeviceFields writes a complex field from a device.
func TestDumpsOfDeviceFields(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		if mpi.Enabled && d.Slow {
			return // launches of many processes; the lazy ones see the most
		}
		mpitest.Run(t, []int{1, 2, 3}, func(t *mpitest.T, c *comm.Comm) {
			domain := testDomain
			domain.Size = [3]int{12, 9, 7}
			for k, cut := range cuts {
				if k%3 != c.Size()%3 {
					continue
				}
				box, err := cut.box(domain, c)
				must(t, c, err)
				space, err := d.Open()
				must(t, c, err)
				var files [2][]byte
				for i, opts := range [][]field.Option{{field.Halo(2)}, {field.Halo(2), field.In(space)}} {
					f, err := field.New[complex128](domain, box, opts...)
					must(t, c, err)
					must(t, c, fillComplex(f))
					template := filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d-%d_%%d.bin", strings.ReplaceAll(d.Name, " ", "-"), k, i))
					dumps, err := NewDumps(t.Context(), c, template, []field.Named{{ID: "psi", Field: f}})
					must(t, c, err)
					paths, err := dumps.Write(t.Context(), 1, 0)
					must(t, c, err)
					dumps.Close()
					if moved, want := f.Transfers().ReadBytes, 16*box.Cells(); i == 1 && moved != want {
						t.Errorf("%d bytes moved, want %d", moved, want)
					}
					files[i], err = os.ReadFile(paths[0])
					must(t, c, err)
					must(t, c, f.Free())
				}
				if len(files[0]) != 16*12*9*7 || !bytes.Equal(files[0], files[1]) {
					t.Errorf("the dumps have %d and %d bytes, want the same", len(files[0]), len(files[1]))
				}
				must(t, c, space.Close())
			}
		})
	})
}

func fillComplex(f *field.Field[complex128]) error {
	data, err := f.MutableView()
	if err != nil {
		return err
	}
	for i := range data {
		data[i] = complex(-1, -1)
	}
	for c := range f.Owned().Cells() {
		g := f.Global(c[0], c[1], c[2])
		data[f.Index(c[0], c[1], c[2])] = complex(cellValue("re", 1, g), cellValue("im", 1, g))
	}
	if f.Stream() == nil {
		return nil
	}
	return errors.Join(f.Upload(), f.NoteDeviceWrite())
}

// faulty is one rank of a test of faults: two fields on a device.
type faulty struct {
	*part
	rank int
}

func newFaulty(c *comm.Comm, path field.Path, opts ...emulated.Option) (*faulty, error) {
	domain := testDomain
	box, err := cuts[1].box(domain, c)
	if err != nil {
		return nil, err
	}
	open := func() (device.Space, error) {
		return emulated.New(append([]emulated.Option{emulated.Capacity(1 << 20)}, opts...)...)
	}
	p, err := newPartOn(open, domain, box, [3]int{1, 1, 1},
		space{onDevice: true, path: path}, space{onDevice: true, path: path, single: true})
	if err != nil {
		return nil, err
	}
	return &faulty{p, c.Rank()}, p.set(1)
}

// TestEachCallOfADeviceFailsInTurn: on one of two ranks, each call of the device fails in
// turn, at once or later on the device, while a bundle is saved or loaded. Either the
// bundle is there all the same, or all ranks have one error that names rank, field and
// call; the bundle that was there before stays good; after that saving and loading
// work, or the device is lost; everything can be given back.
func TestEachCallOfADeviceFailsInTurn(t *testing.T) {
	devtest.OnFakes(t)
	for _, path := range []field.Path{field.Direct, field.Mirror} {
		for _, late := range []bool{false, true} {
			for _, load := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, late %t, load %t", path, late, load), func(t *testing.T) {
					failures := 0
					for nth := 1; ; nth++ {
						failed, more := deviceFails(t, path, late, load, nth)
						if failed {
							failures++
						}
						if !more {
							break
						}
					}
					if failures < 2 {
						t.Errorf("only %d calls failed", failures)
					}
				})
			}
		}
	}
}

// deviceFails lets the nth call fail, and tells whether something has failed, and whether
// there may be later calls.
func deviceFails(t *testing.T, path field.Path, late, load bool, nth int) (failed, more bool) {
	t.Helper()
	fsys := newFS(t)
	bad := nth % 2
	var failure atomic.Pointer[error]
	var through atomic.Bool
	err := onRanks(t, 2, func(c *comm.Comm) error {
		ctx := context.Background()
		p, err := newFaulty(c, path)
		if err := c.Agree(ctx, err); err != nil {
			return err
		}
		run := func(name string) error {
			if load {
				_, err := LoadBundle(ctx, c, "/data/step_1", Request{Fields: p.named()}, Filesystem(fsys))
				return err
			}
			return SaveBundle(ctx, c, "/data/"+name, p.state(1), Filesystem(fsys))
		}
		if err := SaveBundle(ctx, c, "/data/step_1", p.state(1), Filesystem(fsys)); err != nil {
			return err
		}
		// The next one does all of the work again, the ring included.
		live := p.device.Live()
		if err := c.Agree(ctx, p.close()); err != nil {
			return err
		}
		if p, err = newFaulty(c, path); err != nil {
			return err
		}
		calls := p.device.Calls()
		if c.Rank() == bad {
			p.device.Inject(emulated.Fault{Nth: nth, Err: errBoom, Late: late})
		}
		err = run("step_2")
		if c.Rank() == bad {
			if err != nil {
				failure.Store(&err)
			}
			through.Store(!late && p.device.Calls()-calls < int64(nth) || late && err == nil)
		}
		if err == nil && c.Rank() == bad && !through.Load() && live == (emulated.Live{}) {
			return errors.New("nothing is live while there are fields")
		}
		if through.Load() && c.Rank() == bad && !late {
			if _, err := p.device.MemoryInfo(); !errors.Is(err, errBoom) {
				return fmt.Errorf("the fault isn't still to come: %w", err)
			}
		}
		// Once more, on all ranks alike. A fault that is still to come would meet it.
		var again error
		if !late || err != nil {
			again = run("step_3")
		}
		switch lost := late && err != nil; {
		case lost && !errors.Is(again, device.ErrLost):
			return fmt.Errorf("after the device was lost: %w", again)
		case !lost && again != nil:
			return fmt.Errorf("after the failure: %w", again)
		}
		if again == nil && load && !late {
			if err := c.Agree(ctx, p.check(1)); err != nil {
				return err
			}
		}
		left := c.Agree(ctx, p.close())
		if err := c.Agree(ctx, checkBundle(fsys, "/data/step_1", testDomain, 1, host64, host32)); err != nil {
			return fmt.Errorf("the bundle from before: %w", err)
		}
		return left
	})
	if err != nil {
		t.Fatalf("call %d: %v", nth, err)
	}
	if e := failure.Load(); e != nil {
		for _, text := range []string{fmt.Sprintf("rank %d: ", bad), `field "`, "emulated:0: ", "boom"} {
			if !strings.Contains((*e).Error(), text) {
				t.Errorf("call %d: error %v doesn't say %q", nth, *e, text)
			}
		}
		if late != errors.Is(*e, device.ErrLost) {
			t.Errorf("call %d: error %v", nth, *e)
		}
		if exists, err := vfs.Exists(fsys, "/data/step_2"); exists || err != nil {
			t.Errorf("call %d: there is a bundle, %v", nth, err)
		}
	}
	return failure.Load() != nil, !through.Load()
}

// TestADeviceFieldThatIsFreedWhileItIsPublished: one rank frees a field at any moment of
// a save. The save fails on all ranks with one error, or it is complete.
func TestADeviceFieldThatIsFreedWhileItIsPublished(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		for _, onStep := range []string{"a", "b"} {
			fsys := newFS(t)
			err := onRanks(t, 2, func(c *comm.Comm) error {
				ctx := context.Background()
				box, err := cuts[1].box(testDomain, c)
				if err != nil {
					return err
				}
				p, err := newPartOn(d.Open, testDomain, box, [3]int{1, 1, 1}, direct64, direct32)
				if err == nil {
					err = p.set(3)
				}
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				freed := false
				step := func(s Step, detail string) {
					if s == StepField && detail == onStep && c.Rank() == 1 {
						freed = p.fields[1].Free() == nil
					}
				}
				saved := SaveBundle(ctx, c, "/data/b", p.state(3), Filesystem(fsys), OnStep(step))
				if c.Rank() == 1 {
					if !freed {
						return errors.New("the field wasn't freed")
					}
					p.fields = p.fields[:1]
				}
				if err := c.Agree(ctx, p.close()); err != nil {
					return err
				}
				return saved
			})
			wantError(t, err, field.ErrFreed, "rank 1: ", `field "b"`)
			if exists, err := vfs.Exists(fsys, "/data/b"); exists || err != nil {
				t.Errorf("there is a bundle, %v", err)
			}
		}
	})
}

// TestALostDeviceIsOneErrorOnAllRanks: a kernel faults on one rank in the middle of a
// save or of a load.
func TestALostDeviceIsOneErrorOnAllRanks(t *testing.T) {
	devtest.OnFakes(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		for _, load := range []bool{false, true} {
			fsys := newFS(t)
			err := onRanks(t, 2, func(c *comm.Comm) error {
				ctx := context.Background()
				box, err := cuts[1].box(testDomain, c)
				if err != nil {
					return err
				}
				open := d.Open
				if c.Rank() == 0 { // a fake driver has one device for all of a process
					open = func() (device.Space, error) { return emulated.New() }
				}
				p, err := newPartOn(open, testDomain, box, [3]int{1, 1, 1}, direct64, direct32)
				if err == nil {
					err = p.set(3)
				}
				if err := c.Agree(ctx, err); err != nil {
					return err
				}
				if err := SaveBundle(ctx, c, "/data/a", p.state(3), Filesystem(fsys)); err != nil {
					return err
				}
				if c.Rank() == 1 {
					d.Break(p.on, 2)
				}
				if load {
					_, err = LoadBundle(ctx, c, "/data/a", Request{Fields: p.named()}, Filesystem(fsys))
				} else {
					err = SaveBundle(ctx, c, "/data/b", p.state(3), Filesystem(fsys))
				}
				if left := c.Agree(ctx, p.close()); left != nil {
					return fmt.Errorf("what was there can't be given back: %w", left)
				}
				return err
			})
			wantError(t, err, device.ErrLost, "rank 1: ", `field "`, "fieldstone_")
			if load != errors.Is(err, ErrFieldsUndefined) {
				t.Errorf("load %t: %v", load, err)
			}
			if err := checkBundle(fsys, "/data/a", testDomain, 3, host64, host32); err != nil {
				t.Errorf("the bundle from before: %v", err)
			}
		}
	})
}

// lossy is a field whose cells come to nothing after they were taken, which shows only
// when it is asked.
type lossy struct{ field.Any }

func (f lossy) Sink() (pack.Sink, error) {
	s, err := f.Any.Sink()
	return lossySink{s}, err
}

type lossySink struct{ pack.Sink }

func (lossySink) Flush() error { return errBoom }

// TestALoadInPlaceWaitsForItsSinks: what a sink finds out late is an error of the load.
func TestALoadInPlaceWaitsForItsSinks(t *testing.T) {
	fsys := newFS(t)
	if err := saveStep(t, fsys, 1, "/data", 4); err != nil {
		t.Fatal(err)
	}
	err := onRanks(t, 2, func(c *comm.Comm) error {
		s, err := newTestSolver(c, 1, "phi")
		if err != nil {
			return err
		}
		fields := s.named()
		if c.Rank() == 1 {
			fields[0].Field = lossy{fields[0].Field}
		}
		_, err = LoadBundle(context.Background(), c, "/data/step_4", Request{Fields: fields}, Filesystem(fsys), InPlace(), Bricks(brick.Using(brick.POSIX)))
		return err
	})
	wantError(t, err, nil, "rank 1: ", `field "phi"`, "boom")
	if errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
