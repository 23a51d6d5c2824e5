package device_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// launches is a stream that notes what is launched on it.
type launches struct {
	device.Stream
	list []launched
}

type launched struct {
	dst, src, first, count int64
}

type named struct{ device.Space }

func (named) Name() string { return "named:0" }

func (*launches) Space() device.Space { return named{} }

func (l *launches) Launch(_ device.Kernel, c device.LaunchConfig, args *device.Args) error {
	b := args.Bytes()
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(b[8*i:])) }
	n := launched{word(0), word(1), word(2), word(3)}
	l.list = append(l.list, n)
	if threads := uint64(c.Grid[0]) * uint64(c.Block[0]); threads >= 1<<32 || c.Grid[0]*device.BoxCells < int(n.count) || (c.Grid[0]-1)*device.BoxCells >= int(n.count) {
		return errors.New("the number of threads is wrong")
	}
	return nil
}

type boxKernel device.BoxKernel

func (k boxKernel) Name() string { return string(k) }

// HIP counts threads in 32 bits, so more cells than these move go in parts.
func TestLaunchBoxInParts(t *testing.T) {
	const most = (1<<24 - 1) * device.BoxCells
	const array, packed = 1 << 44, 1 << 45
	for _, tt := range []struct {
		kernel   device.BoxKernel
		dst, src int64
		count    int64
		want     []launched
	}{
		{device.PackFloat64, packed, array, most, []launched{{packed, array, 5, most}}},
		{device.PackFloat64, packed, array, most + 1, []launched{{packed, array, 5, most}, {packed + 8*most, array, 5 + most, 1}}},
		{device.PackFloat32, packed, array, 2*most + 7, []launched{
			{packed, array, 5, most}, {packed + 8*most, array, 5 + most, most}, {packed + 16*most, array, 5 + 2*most, 7},
		}},
		{device.UnpackFloat64, array, packed, most + 1, []launched{{array, packed, 5, most}, {array, packed + 8*most, 5 + most, 1}}},
		{device.UnpackFloat32, array, packed, most + 1, []launched{{array, packed, 5, most}, {array, packed + 8*most, 5 + most, 1}}},
		{device.PackFloat64, 1, 1, 0, nil},
	} {
		var s launches
		r := device.BoxRange{First: 5, Count: tt.count, NX: 1 << 20, NY: 1 << 20, SY: 1 << 20, SZ: 1 << 40}
		if err := device.LaunchBox(&s, boxKernel(tt.kernel), device.Ptr(tt.dst), device.Ptr(tt.src), r); err != nil {
			t.Errorf("%s, %d cells: %v", tt.kernel, tt.count, err)
		}
		if !slices.Equal(s.list, tt.want) {
			t.Errorf("%s, %d cells: launched %+v, want %+v", tt.kernel, tt.count, s.list, tt.want)
		}
	}
}
