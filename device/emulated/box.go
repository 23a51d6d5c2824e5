package emulated

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

const boxModule = "fieldstone box"

func init() {
	modules.byName[boxModule] = map[string]KernelFunc{
		string(device.PackFloat64):   func(l *Launch) error { return moveBox(l, true, copyRow[float64], copyRow[float64]) },
		string(device.UnpackFloat64): func(l *Launch) error { return moveBox(l, false, copyRow[float64], copyRow[float64]) },
		string(device.PackFloat32):   func(l *Launch) error { return moveBox(l, true, widenRow, narrowRow) },
		string(device.UnpackFloat32): func(l *Launch) error { return moveBox(l, false, widenRow, narrowRow) },
	}
}

var _ device.BoxKernels = (*Device)(nil)

// BoxModule implements [device.BoxKernels], unless the device was made
// [WithoutBoxKernels]. That the first call fails, as a [Fault] of [CallLoadModule]
// makes it, is the error of all.
func (d *Device) BoxModule() (device.Module, error) {
	d.boxOnce.Lock()
	defer d.boxOnce.Unlock()
	if d.box == nil && d.boxErr == nil {
		d.box, d.boxErr = d.loadBox()
		if errors.Is(d.boxErr, device.ErrLost) || errors.Is(d.boxErr, device.ErrClosed) {
			err := d.boxErr // nothing against the module
			d.boxErr = nil
			return nil, err
		}
	}
	if d.boxErr != nil {
		return nil, d.boxErr
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, d.fail("load module", device.ErrClosed)
	}
	return d.box, nil
}

func (d *Device) loadBox() (device.Module, error) {
	if d.opts.noBox {
		return nil, d.fail("load box kernels", device.ErrUnsupported)
	}
	m, err := d.LoadModule(Image(boxModule))
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.live.Modules-- // the device's own
	return ownModule{m.(*module)}, nil
}

// ownModule is one that the device closes.
type ownModule struct{ *module }

func (m ownModule) Close() error {
	return m.d.fail("close module", fmt.Errorf("%w: the box kernels are the device's own", device.ErrInvalid))
}

// moveBox is a kernel of [device.BoxKernels]: the rows of a box and packed cells.
func moveBox[T Element](l *Launch, pack bool, out func(packed []float64, row []T), in func(row []T, packed []float64)) error {
	dst, src := l.Ptr(), l.Ptr()
	first, count := l.Int64(), l.Int64()
	nx, ny, sy, sz := l.Int64(), l.Int64(), l.Int64(), l.Int64()
	if err := l.finish(); err != nil {
		return err
	}
	if first < 0 || count < 0 || nx <= 0 || ny <= 0 {
		return fmt.Errorf("%w: cells %d to %d of a box of %d by %d", device.ErrInvalid, first, first+count, nx, ny)
	}
	if blocks := (count + device.BoxCells - 1) / device.BoxCells; int64(l.Threads()) != blocks*device.BoxThreads {
		return fmt.Errorf("%w: %d threads for %d cells", device.ErrInvalid, l.Threads(), count)
	}
	array, other := src, dst
	if !pack {
		array, other = dst, src
	}
	packed, err := Slice[float64](l, other, count)
	if err != nil {
		return err
	}
	size := int64(unsafe.Sizeof(*new(T)))
	for len(packed) > 0 {
		x, y, z := first%nx, first/nx%ny, first/nx/ny
		n := min(nx-x, int64(len(packed)))
		row, err := Slice[T](l, array.Add((z*sz+y*sy+x)*size), n)
		if err != nil {
			return err
		}
		if pack {
			out(packed[:n], row)
		} else {
			in(row, packed[:n])
		}
		packed, first = packed[n:], first+n
	}
	return nil
}

func copyRow[T Element](to, from []T) { copy(to, from) }

// widenRow and narrowRow keep the bits of NaNs, which a conversion of the language
// makes quiet.
func widenRow(to []float64, from []float32) {
	for i, v := range from {
		to[i] = float64(v)
		if v != v {
			b := math.Float32bits(v)
			to[i] = math.Float64frombits(uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29)
		}
	}
}

func narrowRow(to []float32, from []float64) {
	for i, v := range from {
		to[i] = float32(v)
		if v != v {
			b := math.Float64bits(v)
			payload := uint32(b>>29) & 0x7fffff
			if payload == 0 {
				payload = 1 << 22 // or it would be an infinity
			}
			to[i] = math.Float32frombits(uint32(b>>63)<<31 | 0x7f800000 | payload)
		}
	}
}
