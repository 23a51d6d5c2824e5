package field_test

import (
	"bytes"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// The ring has as many chunks, of such a size, as its fields ask for: the memory that it
// takes on the device shows both, and the number of copies the size.
func TestTheRingIsAsLargeAsAsked(t *testing.T) {
	const cells = 64 * 32 * 8 // 128 KiB
	for _, tt := range []struct {
		name   string
		opts   [][]field.Option // of each field
		chunk  int64
		chunks int64
	}{
		{"nobody asks: a chunk is no larger than the field", [][]field.Option{nil}, 8 * cells, 4},
		{"one field asks", [][]field.Option{{field.Ring(16384, 6)}}, 16384, 6},
		{"one field asks for the size alone", [][]field.Option{{field.Ring(8192, 0)}}, 8192, 4},
		{"one field asks for the number alone", [][]field.Option{{field.Ring(0, 8)}}, 8 * cells, 8},
		{"the others have no wish", [][]field.Option{nil, {field.Ring(8192, 5)}, nil}, 8192, 5},
		{"the largest wishes count", [][]field.Option{{field.Ring(8192, 8)}, {field.Ring(32768, 4)}}, 32768, 8},
		{"a chunk is no larger than the largest field", [][]field.Option{{field.Ring(1<<20, 4)}}, 8 * cells, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dev := openDevice(t)
			var fields []*field.Field[float64]
			for _, opts := range tt.opts {
				fields = append(fields, get(field.New[float64](domain(64, 32, 8), domain(64, 32, 8).Box(), append(opts, field.In(dev))...))(t))
			}
			for i, f := range fields {
				put(t, f, uint64(i))
			}
			was, moved := get(dev.MemoryInfo())(t), dev.Transfers()
			for i, f := range fields {
				b := make([]byte, 8*cells)
				must(t, get(f.Source())(t).ReadCells(b, 0))
				if !bytes.Equal(b, onDisk(f, float64(i))) {
					t.Errorf("field %d: other cells", i)
				}
			}
			if got := was.Free - get(dev.MemoryInfo())(t).Free; got != tt.chunk*tt.chunks {
				t.Errorf("the ring has %d bytes, want %d of %d", got, tt.chunks, tt.chunk)
			}
			if got, want := dev.Transfers().ToHost.Calls-moved.ToHost.Calls, int64(len(fields))*8*cells/tt.chunk; got != want {
				t.Errorf("%d copies, want %d", got, want)
			}
			for _, f := range fields {
				must(t, f.Free())
			}
			must(t, dev.Close())
		})
	}
}

// A ring of more chunks lends more of them at the same time, and reads further ahead. It
// grows for a field that asks for more, but not while somebody has a chunk.
func TestTheRingGrowsByMoreChunks(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		f := get(field.New[float64](domain(64, 32, 8), domain(64, 32, 8).Box(), field.In(space), field.Ring(8192, 0)))(t)
		put(t, f, 1)
		want := onDisk(f, 1)
		s := get(f.Source())(t).(pack.LendSource)
		lend := func(n int) (lent [][]byte) {
			for i := range n {
				lent = append(lent, get(s.LendCells(int64(i*1024), 8192))(t))
			}
			return lent
		}
		giveBack := func(lent [][]byte) {
			t.Helper()
			for i, b := range lent {
				if !bytes.Equal(b, want[8192*i:8192*(i+1)]) {
					t.Errorf("chunk %d of %d: other cells", i, len(lent))
				}
				s.ReturnCells(b)
			}
		}
		lent := lend(1)
		g := get(field.New[float64](domain(64, 32, 8), domain(64, 32, 8).Box(), field.In(space), field.Ring(0, 9)))(t)
		put(t, g, 2)
		b := make([]byte, len(want))
		must(t, get(g.Source())(t).ReadCells(b, 0)) // while the ring can't grow
		if !bytes.Equal(b, onDisk(g, 2)) {
			t.Error("other cells of the other field")
		}
		giveBack(lent)
		must(t, s.ReadCells(make([]byte, 8*1024*15), 1024)) // to the end: nothing is packed ahead any more
		giveBack(lend(9))
		free(t, f.Free, g.Free, space.Close)
	})
}

// A size that no ring can have is refused with what is wrong with it.
func TestBadSizesOfTheRing(t *testing.T) {
	dev := openDevice(t)
	for _, tt := range []struct {
		chunk  int64
		chunks int
		text   []string
	}{
		{0, 0, nil},
		{4096, 4, nil},
		{64 << 20, 64, nil},
		{-4096, 4, []string{"-4096 bytes"}},
		{4097, 4, []string{"4097 bytes", "multiple of 4096"}},
		{64<<20 + 4096, 4, []string{"67112960 bytes", "at most 67108864"}},
		{4096, -1, []string{"-1 chunks"}},
		{4096, 3, []string{"3 chunks", "4 to 64"}},
		{4096, 65, []string{"65 chunks", "4 to 64"}},
	} {
		for _, in := range [][]field.Option{nil, {field.In(device.Space(dev))}} {
			f, err := field.New[float64](domain(4, 4, 4), domain(4, 4, 4).Box(), append(in, field.Ring(tt.chunk, tt.chunks))...)
			checkText(t, err, tt.text...)
			if err == nil {
				must(t, f.Free())
			}
		}
	}
	must(t, dev.Close())
}
