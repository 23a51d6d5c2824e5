package field_test

import (
	"encoding/binary"
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"pgregory.net/rapid"
)

// The transitions by way of the mirror, one by one: what is copied, and what is newer
// afterwards.
func TestTransitions(t *testing.T) {
	none, refresh, upload := field.Transfers{}, field.Transfers{Refreshes: 1}, field.Transfers{Uploads: 1}
	view := func(f *field.Field[float64]) error { _, err := f.View(); return err }
	mutable := func(f *field.Field[float64]) error { _, err := f.MutableView(); return err }
	note := func(f *field.Field[float64]) error { return f.NoteDeviceWrite() }
	source := func(f *field.Field[float64]) error { _, err := f.Source(); return err }
	read := func(f *field.Field[float64]) error {
		s, err := f.Source()
		if err != nil {
			return err
		}
		return errors.Join(s.ReadCells(make([]byte, 80), 0), s.ReadCells(make([]byte, 80), 7))
	}
	sink := func(f *field.Field[float64]) error { _, err := f.Sink(); return err }
	check := func(f *field.Field[float64]) error {
		s, err := f.Sink()
		if err != nil {
			return err
		}
		return s.CheckCells(make([]byte, 80), 3)
	}
	write := func(f *field.Field[float64]) error {
		s, err := f.Sink()
		if err != nil {
			return err
		}
		return errors.Join(s.WriteCells(make([]byte, 80), 0), s.WriteCells(make([]byte, 80), 7))
	}
	writeNothing := func(f *field.Field[float64]) error {
		s, err := f.Sink()
		if err != nil {
			return err
		}
		return s.WriteCells(nil, 7)
	}
	uploading := func(f *field.Field[float64]) error { return f.Upload() }
	tests := []struct {
		call string
		do   func(f *field.Field[float64]) error
		from field.Residency
		want field.Transfers
		to   field.Residency
	}{
		{"View", view, field.InSync, none, field.InSync},
		{"View", view, field.HostNewer, none, field.HostNewer},
		{"View", view, field.DeviceNewer, refresh, field.InSync},
		{"MutableView", mutable, field.InSync, none, field.HostNewer},
		{"MutableView", mutable, field.HostNewer, none, field.HostNewer},
		{"MutableView", mutable, field.DeviceNewer, refresh, field.HostNewer},
		{"NoteDeviceWrite", note, field.InSync, none, field.DeviceNewer},
		{"NoteDeviceWrite", note, field.HostNewer, none, field.DeviceNewer},
		{"NoteDeviceWrite", note, field.DeviceNewer, none, field.DeviceNewer},
		{"Source", source, field.InSync, none, field.InSync},
		{"Source", source, field.HostNewer, none, field.HostNewer},
		{"Source", source, field.DeviceNewer, refresh, field.InSync},
		{"ReadCells", read, field.InSync, none, field.InSync},
		{"ReadCells", read, field.HostNewer, none, field.HostNewer},
		{"ReadCells", read, field.DeviceNewer, refresh, field.InSync},
		{"Sink", sink, field.InSync, none, field.InSync},
		{"Sink", sink, field.HostNewer, none, field.HostNewer},
		{"Sink", sink, field.DeviceNewer, refresh, field.InSync},
		{"CheckCells", check, field.InSync, none, field.InSync},
		{"WriteCells", write, field.InSync, none, field.HostNewer},
		{"WriteCells", write, field.HostNewer, none, field.HostNewer},
		{"WriteCells", write, field.DeviceNewer, refresh, field.HostNewer},
		{"WriteCells of nothing", writeNothing, field.InSync, none, field.InSync},
		{"Upload", uploading, field.InSync, none, field.InSync},
		{"Upload", uploading, field.HostNewer, upload, field.InSync},
		{"Upload", uploading, field.DeviceNewer, none, field.DeviceNewer},
	}
	for _, tt := range tests {
		t.Run(tt.call+" when "+tt.from.String(), func(t *testing.T) {
			dev := openDevice(t)
			f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.Halo(1), field.In(dev), field.Transfer(field.Mirror)))(t)
			switch tt.from {
			case field.HostNewer:
				must(t, mutable(f))
			case field.DeviceNewer:
				must(t, note(f))
			}
			if f.Residency() != tt.from {
				t.Fatalf("%v at first", f.Residency())
			}
			before := dev.Transfers()
			must(t, tt.do(f))
			if f.Residency() != tt.to {
				t.Errorf("%v afterwards, want %v", f.Residency(), tt.to)
			}
			if got := f.Transfers(); got != tt.want {
				t.Errorf("the field counts %+v, want %+v", got, tt.want)
			}
			// What the device counts: whole padded arrays of 7 x 6 x 5 cells,
			// between pinned memory and device.
			want := before
			want.ToHost.Calls += tt.want.Refreshes
			want.ToHost.Bytes += tt.want.Refreshes * 7 * 6 * 5 * 8
			want.ToDevice.Calls += tt.want.Uploads
			want.ToDevice.Bytes += tt.want.Uploads * 7 * 6 * 5 * 8
			if got := dev.Transfers(); got != want {
				t.Errorf("the device counts %+v, want %+v", got, want)
			}
			free(t, f.Free, dev.Close)
		})
	}
}

// Any sequence of calls shows the same cells and moves the same arrays as a
// model that has both copies, also where the solver doesn't report a write.
func TestResidencyAgreesWithModel(t *testing.T) {
	dev := openDevice(t)
	add := newAdder(t, dev)
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom(paths).Draw(t, "path")
		f := get(field.New[float64](domain(3, 2, 2), domain(3, 2, 2).Box(), field.Halo(1), field.In(dev), field.Transfer(path)))(t)
		t.Cleanup(func() { must(t, f.Free()) }) // also of runs that end early
		cells := int(f.Layout().PaddedCells())
		var host, device float64 // the value of every cell
		var state field.Residency
		var moved field.Transfers
		refresh := func() {
			if state == field.DeviceNewer {
				host, state = device, field.InSync
				moved.Refreshes++
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"view": func(t *rapid.T) {
				refresh()
				for i, v := range get(f.View())(t) {
					if v != host {
						t.Fatalf("cell %d is %v, want %v", i, v, host)
					}
				}
			},
			"write on the host": func(t *rapid.T) {
				refresh()
				host++
				state = field.HostNewer
				data := get(f.MutableView())(t)
				for i := range data {
					data[i]++
				}
			},
			"write on the device": func(t *rapid.T) {
				// A kernel that adds to what the device has: without the upload
				// it would add to stale cells, and the host's would be lost.
				device += 100
				state = field.DeviceNewer
				add.launch(t, f.Stream(), f, 100)
				must(t, f.NoteDeviceWrite())
			},
			"write on the device and don't say so": func(t *rapid.T) {
				device += 100
				add.launch(t, f.Stream(), f, 100)
			},
			"upload": func(t *rapid.T) {
				if state == field.HostNewer { // without a mirror it can't be
					device, state = host, field.InSync
					moved.Uploads++
				}
				must(t, f.Upload())
			},
			"capture": func(t *rapid.T) {
				want := device
				if path == field.Mirror || state == field.HostNewer {
					refresh()
					want = host
				} else {
					moved.ReadCells, moved.ReadBytes = moved.ReadCells+12, moved.ReadBytes+96
				}
				c := get(field.Capture(field.Named{ID: "f", Field: f}))(t)
				for at := range 12 {
					if v := math.Float64frombits(binary.LittleEndian.Uint64(c.Fields[0].Cells[8*at:])); v != want {
						t.Fatalf("captured %v, want %v", v, want)
					}
				}
				must(t, c.Restore(field.Named{ID: "f", Field: f}))
				if path == field.Mirror || state == field.HostNewer {
					refresh()
					state = field.HostNewer
				} else {
					moved.WrittenCells, moved.WrittenBytes = moved.WrittenCells+12, moved.WrittenBytes+96
					state = field.DeviceNewer
				}
			},
			"": func(t *rapid.T) {
				if f.Residency() != state || f.Transfers() != moved {
					t.Fatalf("%v after %+v, want %v after %+v", f.Residency(), f.Transfers(), state, moved)
				}
				if n := f.Layout().PaddedCells(); int(n) != cells {
					t.Fatalf("%d cells", n)
				}
			},
		})
	})
	free(t, add.module.Close, dev.Close)
}

// refreshShows reports whether a view shows what a kernel has written.
func refreshShows(t *testing.T, space device.Space) bool {
	t.Helper()
	f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(space)))(t)
	add := newAdder(t, space)
	add.launch(t, f.Stream(), f, 7)
	must(t, f.NoteDeviceWrite())
	got := get(f.View())(t)[3]
	must(t, space.Synchronize())
	free(t, f.Free, add.module.Close)
	return got == 7
}

// uploadFinishes reports whether an upload is over when it returns, so that
// the host may go on writing.
func uploadFinishes(t *testing.T, space device.Space) bool {
	t.Helper()
	f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(space)))(t)
	data := get(f.MutableView())(t)
	data[3] = 1
	must(t, f.Upload())
	data[3] = 2
	must(t, space.Synchronize())
	must(t, f.NoteDeviceWrite())
	got := get(f.View())(t)[3]
	must(t, space.Synchronize())
	must(t, f.Free())
	return got == 1
}

func TestCopiesAreOverWhenCallsReturn(t *testing.T) {
	for _, mode := range []emulated.Mode{emulated.Lazy, emulated.Eager, emulated.Delayed} {
		t.Run(mode.String(), func(t *testing.T) {
			dev := openDevice(t, emulated.Schedule(mode))
			if !refreshShows(t, dev) {
				t.Error("the view is stale")
			}
			if !uploadFinishes(t, dev) {
				t.Error("the upload took what the host wrote afterwards")
			}
			must(t, dev.Close())
		})
	}
	// The two tests notice a synchronisation that is missing, every time.
	t.Run("without synchronisation both would be seen", func(t *testing.T) {
		for range 20 {
			dev := openDevice(t)
			space := devicetest.Plant(dev, devicetest.StreamSynchronizeReturnsAtOnce)
			if refreshShows(t, space) {
				t.Fatal("a view without synchronisation isn't stale")
			}
			if uploadFinishes(t, space) {
				t.Fatal("an upload without synchronisation isn't late")
			}
			must(t, dev.Close())
		}
	})
}

// A kernel of another stream is waited for through the event that reports it.
func TestDeviceWriteOnAnotherStream(t *testing.T) {
	shows := func(t *testing.T, space device.Space) bool {
		f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(space)))(t)
		add := newAdder(t, space)
		other, e := get(space.NewStream())(t), get(space.NewEvent())(t)
		add.launch(t, other, f, 7)
		must(t, other.Record(e))
		must(t, f.NoteDeviceWrite(e))
		got := get(f.View())(t)[3]
		must(t, space.Synchronize())
		free(t, f.Free, add.module.Close, other.Close, e.Close)
		return got == 7
	}
	for range 20 {
		dev := openDevice(t)
		if !shows(t, dev) {
			t.Fatal("the view is stale")
		}
		if shows(t, devicetest.Plant(dev, devicetest.WaitDoesNothing)) {
			t.Fatal("the test would not notice a missing wait")
		}
		must(t, dev.Close())
	}
}

func TestWrapDevice(t *testing.T) {
	d, b := domain(5, 4, 3), domain(5, 4, 3).Box()
	const cells = 7 * 6 * 5
	dev := openDevice(t)
	add := newAdder(t, dev)
	stream := get(dev.NewStream())(t)
	mem := get(dev.Allocate(8 * cells))(t)
	pinned := get(dev.AllocateHost(8 * cells))(t)
	own := make([]float64, cells)
	must(t, stream.Fill(mem.Ptr(), 0, 8*cells))

	for _, tt := range []struct {
		name     string
		mirror   []float64
		pageable int64
	}{{"with the caller's mirror", own, 2}, {"with a mirror of its own", nil, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			must(t, stream.Fill(mem.Ptr(), 0, 8*cells))
			before := dev.Transfers()
			f := get(field.WrapDevice(d, b, mem.Ptr(), stream, tt.mirror, field.Halo(1)))(t)
			if f.Residency() != field.DeviceNewer || f.DevicePtr() != mem.Ptr() || f.Stream() != stream {
				t.Errorf("%v at first, at %#x", f.Residency(), uintptr(f.DevicePtr()))
			}
			add.launch(t, stream, f, 5)
			must(t, f.NoteDeviceWrite())
			data := get(f.MutableView())(t)
			if data[17] != 5 || tt.mirror != nil && &data[0] != &own[0] {
				t.Errorf("view shows %v", data[17])
			}
			data[17] = 6
			must(t, f.Upload())
			add.launch(t, stream, f, 5)
			must(t, f.NoteDeviceWrite())
			if data := get(f.View())(t); data[16] != 10 || data[17] != 11 {
				t.Errorf("view shows %v", data[16:18])
			}
			if got := dev.Transfers().Pageable - before.Pageable; got != tt.pageable+min(tt.pageable, 1) {
				t.Errorf("%d copies from or to pageable memory", got)
			}
			must(t, f.Free())
			// Memory and stream are still the caller's.
			must(t, stream.CopyToHost(pinned.Bytes(), mem.Ptr()))
			must(t, stream.Synchronize())
		})
	}
	free(t, add.module.Close, stream.Close, mem.Free, pinned.Free, dev.Close)
}

func TestFieldOnTheCallersStream(t *testing.T) {
	dev := openDevice(t)
	stream := get(dev.NewStream())(t)
	f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.OnStream(stream)))(t)
	if f.Stream() != stream || f.DevicePtr() == 0 {
		t.Error("the field isn't on the stream's device")
	}
	free(t, f.Free, stream.Synchronize, stream.Close, dev.Close)
}

// Free waits for kernels that still use the memory.
func TestFreeWaitsForTheStream(t *testing.T) {
	dev := openDevice(t)
	f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
	add := newAdder(t, dev)
	add.launch(t, f.Stream(), f, 1)
	free(t, f.Free, dev.Synchronize, add.module.Close, dev.Close)
}

// Each call that making a field needs fails in turn: nothing is left over.
func TestNewGivesEverythingBackWhenTheDeviceFails(t *testing.T) {
	d, b := domain(5, 4, 3), domain(5, 4, 3).Box()
	for name, build := range map[string]func(s device.Stream, p device.Ptr) (*field.Field[float64], error){
		"new": func(s device.Stream, _ device.Ptr) (*field.Field[float64], error) {
			return field.New[float64](d, b, field.In(s.Space()))
		},
		"new on a stream": func(s device.Stream, _ device.Ptr) (*field.Field[float64], error) {
			return field.New[float64](d, b, field.OnStream(s))
		},
		"wrap": func(s device.Stream, p device.Ptr) (*field.Field[float64], error) {
			return field.WrapDevice[float64](d, b, p, s, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dev := openDevice(t)
			stream, mem := get(dev.NewStream())(t), get(dev.Allocate(1000))(t)
			before := dev.Live()
			for nth := 1; ; nth++ {
				calls := dev.Calls()
				dev.Inject(emulated.Fault{Nth: nth, Err: errFault})
				f, err := build(stream, mem.Ptr())
				if err == nil {
					if dev.Calls()-calls != int64(nth-1) || nth < 2 {
						t.Errorf("made by %d calls, of which %d were to fail", dev.Calls()-calls, nth)
					}
					if _, err := dev.MemoryInfo(); !errors.Is(err, errFault) {
						t.Error("the fault isn't still to come")
					}
					must(t, f.Free())
					break
				}
				if !errors.Is(err, errFault) {
					t.Fatalf("call %d: error %v", nth, err)
				}
				if live := dev.Live(); live != before {
					t.Errorf("call %d: %+v, before %+v", nth, live, before)
				}
			}
			free(t, stream.Close, mem.Free, dev.Close)
		})
	}
}

var errFault = errors.New("injected")

// A failed copy leaves the residency as it was, so that the next call copies.
func TestFailedCopiesAreRepeated(t *testing.T) {
	for _, call := range []emulated.Call{emulated.CallCopyToHost, emulated.CallStreamSynchronize} {
		t.Run("refresh: "+string(call), func(t *testing.T) {
			dev := openDevice(t)
			f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev), field.Transfer(field.Mirror)))(t)
			add := newAdder(t, dev)
			add.launch(t, f.Stream(), f, 3)
			must(t, f.NoteDeviceWrite())
			for name, do := range map[string]func() error{
				"view":         func() error { _, err := f.View(); return err },
				"mutable view": func() error { _, err := f.MutableView(); return err },
				"source":       func() error { _, err := f.Source(); return err },
				"sink":         func() error { _, err := f.Sink(); return err },
			} {
				dev.Inject(emulated.Fault{Call: call, Err: errFault})
				if err := do(); !errors.Is(err, errFault) {
					t.Errorf("%s: error %v", name, err)
				}
				if f.Residency() != field.DeviceNewer {
					t.Errorf("%s: %v after a failed refresh", name, f.Residency())
				}
			}
			if got := get(f.View())(t)[0]; got != 3 {
				t.Errorf("the view shows %v, want 3", got)
			}
			free(t, f.Free, add.module.Close, dev.Close)
		})
	}
	for _, call := range []emulated.Call{emulated.CallCopyToDevice, emulated.CallStreamSynchronize} {
		t.Run("upload: "+string(call), func(t *testing.T) {
			dev := openDevice(t)
			f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
			get(f.MutableView())(t)[0] = 3
			dev.Inject(emulated.Fault{Call: call, Err: errFault})
			if err := f.Upload(); !errors.Is(err, errFault) {
				t.Errorf("error %v", err)
			}
			if f.Residency() != field.HostNewer {
				t.Errorf("%v after a failed upload", f.Residency())
			}
			must(t, f.Upload())
			free(t, f.Free, dev.Close)
		})
	}
	t.Run("note device write", func(t *testing.T) {
		dev := openDevice(t)
		f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
		e := get(dev.NewEvent())(t)
		dev.Inject(emulated.Fault{Call: emulated.CallWait, Err: errFault})
		if err := f.NoteDeviceWrite(e); !errors.Is(err, errFault) {
			t.Errorf("error %v", err)
		}
		if f.Residency() != field.DeviceNewer {
			t.Errorf("%v, want that the mirror is stale in any case", f.Residency())
		}
		free(t, e.Close, f.Free, dev.Close)
	})
	t.Run("a lost device", func(t *testing.T) {
		dev := openDevice(t)
		f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
		get(f.MutableView())(t)[0] = 3
		dev.Inject(emulated.Fault{Err: errFault, Late: true})
		if err := f.Upload(); !errors.Is(err, device.ErrLost) {
			t.Errorf("upload: error %v", err)
		}
		if got := get(f.View())(t)[0]; got != 3 {
			t.Errorf("the mirror shows %v, want 3: the host's cells are still good", got)
		}
		// It was said once; giving things back works.
		free(t, f.Free, dev.Close)
	})
	t.Run("a lost device that nobody knows of", func(t *testing.T) {
		dev := openDevice(t)
		f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
		g := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
		dev.Inject(emulated.Fault{Err: errFault, Late: true})
		add := newAdder(t, dev)
		add.launch(t, f.Stream(), f, 1)
		if err := f.Free(); !errors.Is(err, device.ErrLost) || !errors.Is(err, errFault) {
			t.Errorf("free: error %v", err)
		}
		free(t, g.Free, add.module.Close, dev.Close)
	})
}

// Goroutines that ask for a view at the same time all see a fresh mirror, and
// it is copied once.
func TestViewsAtTheSameTimeCopyOnce(t *testing.T) {
	dev := openDevice(t, emulated.Schedule(emulated.Delayed))
	f := get(field.New[float64](domain(5, 4, 3), domain(5, 4, 3).Box(), field.In(dev)))(t)
	add := newAdder(t, dev)
	add.launch(t, f.Stream(), f, 3)
	must(t, f.NoteDeviceWrite())
	var wg sync.WaitGroup
	seen := make([]float64, 8)
	for i := range seen {
		wg.Go(func() {
			if data, err := f.View(); err == nil {
				seen[i] = data[i]
			}
		})
	}
	wg.Wait()
	for i, v := range seen {
		if v != 3 {
			t.Errorf("goroutine %d sees %v", i, v)
		}
	}
	if got := f.Transfers().Refreshes; got != 1 {
		t.Errorf("%d refreshes", got)
	}
	free(t, f.Free, add.module.Close, dev.Close)
}

// On the host nothing is ever copied or stale.
func TestHostFieldsAreAlwaysInSync(t *testing.T) {
	f := get(field.New[float64](domain(5, 4, 3), grid.Box{Size: [3]int{5, 4, 3}}, field.Halo(1)))(t)
	for _, err := range []error{
		func() error { _, err := f.MutableView(); return err }(), f.NoteDeviceWrite(), f.Upload(),
	} {
		must(t, err)
	}
	if f.Residency() != field.InSync || f.Transfers() != (field.Transfers{}) || f.DevicePtr() != 0 || f.Stream() != nil {
		t.Errorf("%v, %+v", f.Residency(), f.Transfers())
	}
}
