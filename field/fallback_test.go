package field_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// warnings collects what is logged.
type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w *warnings) WithGroup(string) slog.Handler            { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
	return nil
}

// roundTrip reads and writes all cells of a field past the mirror.
func roundTrip[T pack.Number](f *field.Field[T], seed uint64) error {
	padded, err := putCells(f, seed)
	if err != nil {
		return err
	}
	want := onDisk(f, float64(seed))
	got := make([]byte, len(want))
	src, err := f.Source()
	if err == nil {
		err = src.ReadCells(got, 0)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other cells are read")
	}
	sink, err := f.Sink()
	if err == nil {
		err = errors.Join(sink.WriteCells(onDisk(f, float64(seed+1)), 0), sink.(pack.FlushSink).Flush())
	}
	if err != nil {
		return err
	}
	if got := make([]byte, len(padded)); true {
		err := errors.Join(f.Stream().CopyToHost(got, f.DevicePtr()), f.Stream().Synchronize())
		if err != nil {
			return err
		}
		var failed failure
		if !bytes.Equal(got, withOwned(&failed, f, padded, seed+1)) {
			return errors.New("other cells are stored")
		}
	}
	return nil
}

// failure is a test that nobody listens to.
type failure struct{}

func (*failure) Helper()               {}
func (*failure) Fatal(args ...any)     { panic(fmt.Sprint(args...)) }
func (*failure) Errorf(string, ...any) {}
func (*failure) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// putCells is put with an error.
func putCells[T pack.Number](f *field.Field[T], seed uint64) (padded []byte, err error) {
	data := make([]T, f.Layout().PaddedCells())
	for i := range data {
		data[i] = convert[T](-float64(i))
	}
	padded = pack.Bytes(data)
	padded = withOwned(&failure{}, f, padded, seed)
	return padded, errors.Join(f.Stream().CopyToDevice(f.DevicePtr(), padded), f.Stream().Synchronize(), f.NoteDeviceWrite())
}

// plain is a device without kernels for boxes.
type plain struct{ device.Space }

// What a device can't do is done in another way, with one warning for each reason,
// and cells are the same.
func TestFallbacks(t *testing.T) {
	smallSlots(t)
	const rows, pinned = "row by row", "pinned"
	for name, tt := range map[string]struct {
		space func(t *testing.T) (space device.Space, dev *emulated.Device)
		warns []string
		check func(t *testing.T, dev *emulated.Device, moved emulated.Transfers)
	}{
		"a device that can do everything": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			return dev, dev
		}, nil, nil},
		"a space without box kernels": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			return plain{dev}, dev
		}, []string{rows}, func(t *testing.T, dev *emulated.Device, moved emulated.Transfers) {
			if moved.Launches > 0 {
				t.Errorf("%d kernels", moved.Launches)
			}
		}},
		"a driver that refuses the module": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			dev.Inject(emulated.Fault{Call: emulated.CallLoadModule, Err: errFault})
			return dev, dev
		}, []string{rows}, nil},
		"a module without the kernel": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			dev.Inject(emulated.Fault{Call: emulated.CallKernel, Err: errFault})
			return dev, dev
		}, []string{rows}, nil},
		"no pinned memory": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			dev.Inject(emulated.Fault{Call: emulated.CallAllocateHost, Err: device.ErrOutOfMemory})
			return dev, dev
		}, []string{pinned}, func(t *testing.T, dev *emulated.Device, moved emulated.Transfers) {
			if moved.Pageable == 0 {
				t.Error("no copies from and to pageable memory")
			}
		}},
		"no memory on the device": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t)
			dev.Inject(emulated.Fault{Call: emulated.CallAllocate, Nth: 4, Err: device.ErrOutOfMemory}) // after three fields
			return dev, dev
		}, []string{rows}, nil},
		"nothing at all": {func(t *testing.T) (device.Space, *emulated.Device) {
			dev := openDevice(t, emulated.WithoutBoxKernels())
			dev.Inject(emulated.Fault{Call: emulated.CallAllocateHost, Err: errFault})
			return dev, dev
		}, []string{rows, pinned}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			for _, b := range []grid.Box{box(3, 16, 2, 13, 4, 15), box(0, 20, 0, 15, 2, 15), box(1, 2, 1, 15, 2, 15)} {
				space, dev := tt.space(t)
				log := &warnings{}
				opts := []field.Option{field.In(space), field.Halo(2), field.Logger(slog.New(log)), field.Transfer(field.Direct)}
				d := domain(20, 15, 15)
				a, c, s := get(field.New[float64](d, b, opts...))(t), get(field.New[complex128](d, b, opts...))(t), get(field.New[float32](d, b, opts...))(t)
				before := dev.Transfers()
				for round := range uint64(2) {
					must(t, roundTrip(a, round))
					must(t, roundTrip(c, round))
					must(t, roundTrip(s, round))
				}
				if tt.check != nil {
					moved := dev.Transfers()
					moved.Launches -= before.Launches
					moved.Pageable -= before.Pageable + 6*2 // those of the test
					tt.check(t, dev, moved)
				}
				// float32 cells are widened by who can.
				bytes := 2 * 8 * b.Cells()
				if len(tt.warns) > 0 && tt.warns[0] == rows {
					bytes /= 2
				}
				if got := s.Transfers(); got.ReadBytes != bytes || got.WrittenBytes != bytes || got.ReadCells != 2*b.Cells() {
					t.Errorf("float32: %+v, want %d bytes", got, bytes)
				}
				if len(log.list) != len(tt.warns) {
					t.Errorf("%d warnings: %q", len(log.list), log.list)
				}
				for i, w := range tt.warns {
					if i < len(log.list) && (!strings.HasPrefix(log.list[i], "WARN ") || !strings.Contains(log.list[i], w) || !strings.Contains(log.list[i], "space=emulated:0")) {
						t.Errorf("warning %q, want one about %q", log.list[i], w)
					}
				}
				free(t, a.Free, c.Free, s.Free, dev.Close)
			}
		})
	}
}

// A mirror is pageable where memory can't be pinned.
func TestAMirrorThatCannotBePinned(t *testing.T) {
	dev := openDevice(t)
	log := &warnings{}
	opts := []field.Option{field.In(dev), field.Logger(slog.New(log))}
	for range 2 {
		f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), opts...))(t)
		g := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), opts...))(t)
		for i, f := range []*field.Field[float64]{f, g} {
			dev.Inject(emulated.Fault{Call: emulated.CallAllocateHost, Err: errFault})
			if get(f.View())(t)[7] != 0 {
				t.Error("a new field isn't 0")
			}
			setOwned(t, f, float64(i))
			must(t, f.Upload())
			must(t, f.NoteDeviceWrite())
			checkOwned(t, f, float64(i))
		}
		free(t, f.Free, g.Free)
	}
	if len(log.list) != 2 || !strings.Contains(log.list[0], "pinned") {
		t.Errorf("warnings %q, want one as long as there are fields", log.list)
	}
	must(t, dev.Close())
}

// Each call of the device fails in turn, at once or on the device, while cells are
// read and written: then there is an error that names it, or the cells went another
// way; the next time all is well, or the device is lost; nothing is left over.
func TestEachCallFailsInTurn(t *testing.T) {
	smallSlots(t)
	for _, late := range []bool{false, true} {
		for _, kernels := range []bool{true, false} {
			for _, path := range paths {
				t.Run(fmt.Sprintf("late %t, kernels %t, %v", late, kernels, path), func(t *testing.T) {
					failed := 0
					for nth := 1; ; nth++ {
						opts := []emulated.Option{}
						if !kernels {
							opts = append(opts, emulated.WithoutBoxKernels())
						}
						dev := openDevice(t, opts...)
						f := get(field.New[float32](domain(20, 15, 15), box(3, 16, 2, 13, 4, 15), field.Halo(1), field.In(dev), field.Transfer(path)))(t)
						padded, err := putCells(f, 1)
						must(t, err)
						live := dev.Live()
						calls := dev.Calls()
						dev.Inject(emulated.Fault{Nth: nth, Err: errFault, Late: late})
						err = use(f, padded)
						through := dev.Calls() - calls
						switch {
						case err == nil:
						case !errors.Is(err, errFault), late != errors.Is(err, device.ErrLost):
							t.Fatalf("call %d: error %v", nth, err)
						default:
							failed++
							checkText(t, err, "field: ", "emulated:0: ", "injected")
						}
						if !late {
							if nth <= int(through) {
								must(t, use(f, padded)) // it was once
							} else {
								if _, err := dev.MemoryInfo(); !errors.Is(err, errFault) {
									t.Errorf("the fault isn't still to come: %v", err)
								}
							}
						}
						must(t, f.Free())
						if after := dev.Live(); after.Memory != live.Memory-1 || after.HostMemory != 0 || after.Streams != 0 || after.Events != 0 || after.Modules != 0 {
							t.Errorf("call %d: %+v is left, before %+v", nth, after, live)
						}
						if late && err == nil {
							// Nothing was queued that could fail any more; the fault is still there.
							must(t, dev.Close())
							break
						}
						must(t, dev.Close())
						if !late && int64(nth) > through {
							break
						}
					}
					if failed < 2 {
						t.Errorf("only %d calls failed", failed)
					}
				})
			}
		}
	}
}

// use reads all cells, writes them, and looks at the device.
func use(f *field.Field[float32], padded []byte) error {
	if err := f.NoteDeviceWrite(); err != nil {
		return err
	}
	want := onDisk(f, 1)
	got := make([]byte, len(want))
	src, err := f.Source()
	if err == nil {
		err = src.ReadCells(got, 0)
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other cells are read")
	}
	sink, err := f.Sink()
	if err == nil {
		err = sink.WriteCells(want, 0)
	}
	if err == nil {
		err = f.Upload()
	}
	if err == nil {
		err = sink.(pack.FlushSink).Flush()
	}
	return err
}

// A missing wait or event is noticed on a lazy device, every time: the tests above
// would see it.
func TestPlantedBugsAreNoticed(t *testing.T) {
	smallSlots(t)
	works := func(t *testing.T, bug devicetest.Bug, kernels bool) (err error) {
		var opts []emulated.Option
		if !kernels {
			opts = append(opts, emulated.WithoutBoxKernels())
		}
		dev := openDevice(t, opts...)
		space := devicetest.Plant(dev, bug)
		f := get(field.New[float64](domain(20, 15, 15), box(3, 16, 2, 13, 4, 15), field.Halo(1), field.In(space)))(t)
		defer func() {
			must(t, dev.Synchronize())
			free(t, f.Free, dev.Close)
		}()
		return roundTrip(f, 1)
	}
	for _, kernels := range []bool{true, false} {
		if err := works(t, "none", kernels); err != nil {
			t.Fatalf("without a bug, kernels %t: %v", kernels, err)
		}
		for _, bug := range []devicetest.Bug{devicetest.EventSynchronizeReturnsAtOnce, devicetest.WaitDoesNothing, devicetest.RecordDoesNothing, devicetest.LaunchDoesNothing, devicetest.BoxIgnoresPitch} {
			if kernels == (bug == devicetest.BoxIgnoresPitch) || !kernels && (bug == devicetest.WaitDoesNothing || bug == devicetest.LaunchDoesNothing) {
				continue // there are none
			}
			for range 10 {
				if works(t, bug, kernels) == nil {
					t.Fatalf("%q isn't noticed, kernels %t", bug, kernels)
				}
			}
		}
	}
}

// Kernels of another stream that an event reports are over before cells are packed,
// and a load is over before kernels of any stream that wait for the field's.
func TestPackingIsInOrderWithTheSolversStreams(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(20, 15, 15), domain(20, 15, 15).Box(), field.Halo(1), field.In(space)))(t)
		other, e := get(space.NewStream())(t), get(space.NewEvent())(t)
		pinned := get(space.AllocateHost(8 * f.Layout().PaddedCells()))(t)
		got := make([]byte, 8*f.Box().Cells())
		for round := range 5 {
			copy(pinned.Bytes(), withOwned(t, f, pinned.Bytes(), uint64(round)))
			must(t, other.CopyToDevice(f.DevicePtr(), pinned.Bytes())) // the kernel
			must(t, other.Record(e))
			must(t, f.NoteDeviceWrite(e))
			must(t, get(f.Source())(t).ReadCells(got, 0))
			if !bytes.Equal(got, onDisk(f, float64(round))) {
				t.Fatalf("round %d: cells from before the kernel", round)
			}
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, float64(round+100)), 0))
			must(t, f.Stream().Record(e))
			must(t, other.Wait(e))
			must(t, other.CopyToHost(pinned.Bytes(), f.DevicePtr()))
			must(t, other.Synchronize())
			if !bytes.Equal(pinned.Bytes(), withOwned(t, f, pinned.Bytes(), uint64(round+100))) {
				t.Fatalf("round %d: the kernel sees cells from before the load", round)
			}
		}
		free(t, f.Free, other.Close, e.Close, pinned.Free, space.Close)
	})
}

// The solver's own memory and stream: all there is to see of the contract.
func TestWrapDevicePastTheMirror(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		stream := get(space.NewStream())(t)
		const padded = 22 * 17 * 17
		mem := get(space.Allocate(8 * (padded + 64)))(t)
		pinned := get(space.AllocateHost(8 * padded))(t)
		mirror := get(pack.View[float64](pinned.Bytes()))(t)
		at := mem.Ptr().Add(256)
		for _, with := range [][]float64{nil, mirror} {
			f := get(field.WrapDevice(domain(20, 15, 15), domain(20, 15, 15).Box(), at, stream, with, field.Halo(1)))(t)
			if f.Residency() != field.DeviceNewer || f.DevicePtr() != at || f.Stream() != stream {
				t.Errorf("%v at %#x", f.Residency(), uintptr(f.DevicePtr()))
			}
			for i := range mirror {
				mirror[i] = 77
			}
			must(t, roundTrip(f, 3))
			for _, v := range mirror {
				if v != 77 {
					t.Fatal("the mirror has changed")
				}
			}
			checkOwned(t, f, 4)
			if with != nil && mirror[f.Index(0, 0, 0)] != number([3]int{})+4 {
				t.Error("the view isn't the caller's mirror")
			}
			must(t, f.Free())
		}
		// A pointer to the middle of an allocation, but not past its end.
		if _, err := field.WrapDevice[float64](domain(20, 15, 15), domain(20, 15, 15).Box(), at.Add(8*64), stream, nil, field.Halo(1)); !errors.Is(err, device.ErrAddress) {
			t.Errorf("error %v", err)
		}
		// What the solver calls its stream by.
		wrapped := get(space.WrapStream(stream.Handle()))(t)
		f := get(field.WrapDevice[float64](domain(20, 15, 15), domain(20, 15, 15).Box(), at, wrapped, nil, field.Halo(1)))(t)
		must(t, roundTrip(f, 5))
		// The solver's kernels go on in it.
		must(t, stream.CopyToHost(pinned.Bytes(), at))
		must(t, stream.Synchronize())
		if mirror[f.Index(0, 0, 0)] != number([3]int{})+6 {
			t.Error("the stream doesn't see what was written")
		}
		free(t, f.Free, wrapped.Close, stream.Close, mem.Free, pinned.Free, space.Close)
	})
}

// The ring is a few chunks, whatever the fields, and goes with the last of them.
func TestTheRingIsSmallAndGoes(t *testing.T) {
	dev := openDevice(t, emulated.Capacity(128<<20))
	fields := make([]*field.Field[float64], 5)
	var all int64
	for i := range fields {
		n := 20 + 15*i
		fields[i] = get(field.New[float64](domain(n, n, n), domain(n, n, n).Box(), field.Halo(1), field.In(dev)))(t)
		all += 8 * fields[i].Layout().PaddedCells()
		before := get(dev.MemoryInfo())(t)
		must(t, roundTrip(fields[i], 1))
		info := get(dev.MemoryInfo())(t)
		if ring := info.Total - info.Free - all; ring > 4<<20 || ring < min(8*int64(n*n*n), 4<<20) {
			t.Errorf("%d fields: the ring has %d bytes on the device", i+1, ring)
		}
		live := dev.Live()
		if live.Memory != i+2 || live.HostMemory != 1 {
			t.Errorf("%d fields: %+v, %+v before", i+1, live, before)
		}
	}
	for i, f := range fields {
		must(t, f.Free())
		live := dev.Live()
		if last := i == len(fields)-1; last != (live == emulated.Live{}) {
			t.Errorf("%d fields are left: %+v", len(fields)-1-i, live)
		}
	}
	must(t, dev.Close())
}

// A reader that goes out of order moves what it asks for and no more.
func TestReadingOutOfOrder(t *testing.T) {
	smallSlots(t)
	dev := openDevice(t)
	f := get(field.New[float64](domain(30, 20, 10), domain(30, 20, 10).Box(), field.In(dev)))(t)
	put(t, f, 1)
	want := onDisk(f, 1)
	s := get(f.Source())(t)
	moved := int64(0)
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		first := 1 + r.IntN(5000)
		n := 1 + r.IntN(900)
		got := make([]byte, 8*n)
		must(t, s.ReadCells(got, int64(first)))
		if !bytes.Equal(got, want[8*first:8*(first+n)]) {
			t.Fatalf("other cells at %d", first)
		}
		if moved += int64(n); f.Transfers().ReadCells != moved {
			t.Fatalf("%d cells from %d: %d moved, want %d", n, first, f.Transfers().ReadCells, moved)
		}
	}
	free(t, f.Free, dev.Close)
}

// Readers that never come back don't keep the chunks for ever.
func TestReadersThatAreGone(t *testing.T) {
	smallSlots(t)
	dev := openDevice(t)
	f := get(field.New[float64](domain(30, 20, 10), domain(30, 20, 10).Box(), field.In(dev)))(t)
	put(t, f, 1)
	for range 10 {
		must(t, get(f.Source())(t).ReadCells(make([]byte, 8), 0)) // and reads ahead
	}
	s, got := get(f.Source())(t), make([]byte, 8*100)
	ahead := func() (n int64) {
		before := f.Transfers().ReadCells
		must(t, s.ReadCells(got, 0))
		n = f.Transfers().ReadCells - before
		must(t, s.ReadCells(got, 4000)) // gives up what it has
		return n
	}
	if n := ahead(); n != 100 {
		t.Errorf("%d cells moved while there is no chunk to keep", n)
	}
	for range 3000 {
		must(t, s.ReadCells(got[:8], 1000))
		must(t, s.ReadCells(got[:8], 2000))
	}
	if n := ahead(); n <= 512 {
		t.Errorf("%d cells moved: nothing is read ahead", n)
	}
	free(t, f.Free, dev.Close)
}
