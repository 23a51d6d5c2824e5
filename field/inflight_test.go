package field_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// What one field has on its way through the ring isn't disturbed by another one, whose
// stream knows nothing of it.
func TestCellsUnderWayAreLeftAlone(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		a := get(field.New[float64](domain(40, 25, 2), domain(40, 25, 2).Box(), field.Halo(1), field.In(space)))(t)
		b := get(field.New[float64](domain(40, 25, 2), domain(40, 25, 2).Box(), field.In(space)))(t)
		put(t, b, 2)
		must(t, b.Stream().Synchronize())
		must(t, get(a.Sink())(t).WriteCells(onDisk(a, 1), 0)) // nobody waits for it
		got := make([]byte, 8*40*25*2)
		must(t, get(b.Source())(t).ReadCells(got, 0))
		if !bytes.Equal(got, onDisk(b, 2)) {
			t.Error("the field that is read has other cells")
		}
		must(t, a.Upload())
		checkOwned(t, a, 1)
		free(t, a.Free, b.Free, space.Close)
	})
}

// The ring doesn't grow as long as cells are on their way through it.
func TestTheRingGrowsOnlyWhenItIsIdle(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		small := get(field.New[float64](domain(16, 8, 4), domain(16, 8, 4).Box(), field.Halo(1), field.In(space)))(t)
		must(t, get(small.Sink())(t).WriteCells(onDisk(small, 1), 0)) // nobody waits for it
		large := get(field.New[float64](domain(32, 16, 4), domain(32, 16, 4).Box(), field.In(space)))(t)
		must(t, get(large.Sink())(t).WriteCells(onDisk(large, 2), 0))
		must(t, small.Upload())
		must(t, large.Upload())
		checkOwned(t, small, 1)
		checkOwned(t, large, 2)
		free(t, small.Free, large.Free, space.Close)
	})
}

// Chunks that a reader has packed ahead are stale after an upload.
func TestAnUploadBetweenReadsIsSeen(t *testing.T) {
	smallSlots(t)
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), field.Halo(1), field.In(space), field.Transfer(field.Direct)))(t)
		put(t, f, 1)
		s := get(f.Source())(t)
		b := make([]byte, 8*100)
		must(t, s.ReadCells(b, 0))
		setOwned(t, f, 2)
		must(t, f.Upload())
		must(t, s.ReadCells(b, 100))
		if !bytes.Equal(b, onDisk(f, 2)[800:1600]) {
			t.Error("cells from before the upload")
		}
		free(t, f.Free, space.Close)
	})
}

// A reader whose chunks were given to another one doesn't take that one's cells for its
// own, though they have the same numbers.
func TestAReaderComesBackToChunksOfAnother(t *testing.T) {
	smallSlots(t)
	dev := openDevice(t)
	fields, sources := [2]*field.Field[float64]{}, [2]pack.Source{}
	for i := range fields {
		fields[i] = get(field.New[float64](domain(30, 20, 10), domain(30, 20, 10).Box(), field.In(dev)))(t)
		put(t, fields[i], uint64(i))
		sources[i] = get(fields[i].Source())(t)
	}
	got := make([]byte, 8*100)
	must(t, sources[0].ReadCells(got, 0))
	for range 3000 { // until the first reader counts as gone
		must(t, sources[1].ReadCells(got[:8], 1000))
		must(t, sources[1].ReadCells(got[:8], 2000))
	}
	other := make([]byte, 8*512)
	for range 8 { // each chunk has the cells around number 100 of the other field
		must(t, sources[1].ReadCells(other, 1))
	}
	must(t, sources[0].ReadCells(got, 100))
	if !bytes.Equal(got, onDisk(fields[0], 0)[800:1600]) {
		t.Error("the cells aren't those of the reader's field")
	}
	free(t, fields[0].Free, fields[1].Free, dev.Close)
}

// The solver's memory can be freed after Free, whatever was under way for the field.
func TestFreeOfAWrappedFieldWaitsForItsCells(t *testing.T) {
	smallSlots(t)
	for name, begin := range map[string]func(t *testing.T, f *field.Field[float64]){
		"packed ahead": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Source())(t).ReadCells(make([]byte, 8), 0))
		},
		"written": func(t *testing.T, f *field.Field[float64]) {
			must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0))
		},
	} {
		t.Run(name, func(t *testing.T) {
			devtest.OnFakes(t)
			dev := openDevice(t, emulated.Schedule(emulated.Lazy))
			stream := get(dev.NewStream())(t)
			mem := get(dev.Allocate(8 * 40 * 30 * 4))(t)
			f := get(field.WrapDevice[float64](domain(40, 30, 4), domain(40, 30, 4).Box(), mem.Ptr(), stream, nil))(t)
			// The ring stays, for another field.
			other := get(field.New[float64](domain(4, 4, 4), domain(4, 4, 4).Box(), field.In(dev)))(t)
			begin(t, f)
			must(t, f.Free())
			if done, err := stream.Query(); err != nil || !done {
				t.Errorf("the stream is done: %t, error %v", done, err)
			}
			free(t, other.Free, mem.Free, stream.Close, dev.Close)
		})
	}
}

// After a call that failed its chunk can be used, whatever it had queued.
func TestAChunkOfAFailedReadIsFree(t *testing.T) {
	smallSlots(t)
	dev := openDevice(t)
	f := get(field.New[float64](domain(40, 25, 2), domain(40, 25, 2).Box(), field.Halo(1), field.In(dev)))(t)
	put(t, f, 1)
	s := get(f.Source())(t)
	for nth := 1; nth <= 6; nth++ {
		dev.Inject(emulated.Fault{Call: emulated.CallRecord, Nth: nth, Err: errFault})
		if err := s.ReadCells(make([]byte, 8*40*25*2), 0); !errors.Is(err, errFault) {
			t.Fatalf("record %d: error %v", nth, err)
		}
		must(t, get(f.Sink())(t).WriteCells(onDisk(f, float64(nth)), 0))
		must(t, f.Upload())
		checkOwned(t, f, float64(nth))
		must(t, f.NoteDeviceWrite())
	}
	free(t, f.Free, dev.Close)
}

// A lost device has no sink: that it is lost is known before anything has changed.
func TestALostDeviceHasNoSink(t *testing.T) {
	dev := openDevice(t)
	f := get(field.New[float64](domain(8, 8, 8), domain(8, 8, 8).Box(), field.In(dev)))(t)
	g := get(field.New[float64](domain(8, 8, 8), domain(8, 8, 8).Box(), field.In(dev)))(t)
	must(t, get(f.Sink())(t).WriteCells(onDisk(f, 1), 0)) // the ring is there
	must(t, f.Upload())
	dev.Inject(emulated.Fault{Call: emulated.CallFill, Err: errFault, Late: true})
	must(t, g.Stream().Fill(g.DevicePtr(), 1, 8))
	if err := g.Stream().Synchronize(); !errors.Is(err, device.ErrLost) {
		t.Fatalf("error %v", err)
	}
	if _, err := f.Sink(); !errors.Is(err, device.ErrLost) {
		t.Errorf("error %v", err)
	}
	free(t, f.Free, g.Free, dev.Close)
}

// Without memory for the ring there is no sink, and nothing has changed.
func TestNoSinkWithoutMemory(t *testing.T) {
	dev := openDevice(t)
	f := get(field.New[float64](domain(8, 8, 8), domain(8, 8, 8).Box(), field.In(dev)))(t)
	dev.Inject(emulated.Fault{Call: emulated.CallNewEvent, Err: errFault})
	if _, err := f.Sink(); !errors.Is(err, errFault) {
		t.Errorf("error %v", err)
	}
	if f.Residency() != field.InSync {
		t.Errorf("%v", f.Residency())
	}
	free(t, f.Free, dev.Close)
}
