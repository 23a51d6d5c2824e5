package field_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/pack"
)

// still is a device that does nothing, and allocates nothing to do it.
type still struct{ device.Space }

func (d *still) Name() string                          { return "still" }
func (d *still) Allocate(int64) (device.Memory, error) { return stillMemory{}, nil }
func (d *still) NewStream() (device.Stream, error)     { return &stillStream{space: d}, nil }
func (d *still) NewEvent() (device.Event, error)       { return stillEvent{}, nil }
func (d *still) BoxModule() (device.Module, error)     { return stillModule{}, nil }
func (d *still) AllocateHost(n int64) (device.HostMemory, error) {
	return stillHost(make([]byte, n)), nil
}

type stillMemory struct{ device.Memory }

func (stillMemory) Ptr() device.Ptr { return 1 << 20 }
func (stillMemory) Free() error     { return nil }

type stillHost []byte

func (h stillHost) Bytes() []byte { return h }
func (stillHost) Free() error     { return nil }

type stillModule struct{ device.Module }

func (stillModule) Kernel(name string) (device.Kernel, error) { return stillKernel(name), nil }

type stillKernel string

func (k stillKernel) Name() string { return string(k) }

type stillEvent struct{ device.Event }

func (stillEvent) Synchronize() error { return nil }
func (stillEvent) Close() error       { return nil }

type stillStream struct {
	device.Stream
	space    *still
	launches int
}

func (s *stillStream) Space() device.Space                   { return s.space }
func (s *stillStream) Fill(device.Ptr, byte, int64) error    { return nil }
func (s *stillStream) CopyToHost([]byte, device.Ptr) error   { return nil }
func (s *stillStream) CopyToDevice(device.Ptr, []byte) error { return nil }
func (s *stillStream) Record(device.Event) error             { return nil }
func (s *stillStream) Wait(device.Event) error               { return nil }
func (s *stillStream) Synchronize() error                    { return nil }
func (s *stillStream) Query() (bool, error)                  { return true, nil }
func (s *stillStream) Close() error                          { return nil }
func (s *stillStream) Launch(_ device.Kernel, _ device.LaunchConfig, _ *device.Args) error {
	s.launches++
	return nil
}

// Moving cells past the mirror allocates nothing: what a device allocates for a call is
// its own affair.
func TestMovingCellsPastTheMirrorAllocatesNothing(t *testing.T) {
	smallSlots(t)
	space := &still{}
	f := get(field.New[float32](domain(30, 20, 10), domain(30, 20, 10).Box(), field.Halo(1), field.In(space), field.Transfer(field.Direct)))(t)
	src, sink := get(f.Source())(t), get(f.Sink())(t)
	const cells = 30 * 20 * 10
	b, sum := make([]byte, 8*cells), pack.NewChecksum(8*cells)
	for what, move := range map[string]func() error{
		"read":       func() error { return src.ReadCells(b, 0) },
		"read sum":   func() error { return src.(pack.SumSource).ReadSum(b, 0, sum, 0) },
		"read rows":  func() error { return src.(pack.RowSource).ReadRows(b, 0, 30, 200, 240) },
		"write":      func() error { return sink.WriteCells(b, 0) },
		"write sum":  func() error { return sink.(pack.SumSink).WriteSum(b, 0, sum, 0) },
		"write rows": func() error { return sink.(pack.RowSink).WriteRows(b, 0, 30, 200, 240) },
		"flush":      func() error { return sink.(pack.FlushSink).Flush() },
		"lend": func() error {
			for at := 0; at < cells; {
				c, err := src.(pack.LendSource).LendCells(int64(at), len(b))
				if err != nil {
					return err
				}
				at += len(c) / 8
				src.(pack.LendSource).ReturnCells(c)
			}
			return nil
		},
	} {
		must(t, move())
		if n := testing.AllocsPerRun(20, func() { must(t, move()) }); n != 0 && !raceDetector {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	if n := f.Stream().(*stillStream).launches; n < 8*cells/512 {
		t.Errorf("only %d kernels", n)
	}
	must(t, f.Free())
}
