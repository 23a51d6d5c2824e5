package emulated_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// boxBench is a stream with memory for an array and for packed cells.
type boxBench struct {
	dev           *emulated.Device
	stream        device.Stream
	array, packed device.Memory
}

func newBoxBench(t *testing.T, array, packed int64, opts ...emulated.Option) *boxBench {
	t.Helper()
	dev, err := emulated.New(append([]emulated.Option{emulated.Capacity(1 << 20)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	b := &boxBench{dev: dev}
	var errs [3]error
	b.stream, errs[0] = dev.NewStream()
	b.array, errs[1] = dev.Allocate(array)
	b.packed, errs[2] = dev.Allocate(packed)
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.stream.Close(), b.array.Free(), b.packed.Free(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *boxBench) put(t *testing.T, m device.Memory, data []byte) {
	t.Helper()
	if err := errors.Join(b.stream.CopyToDevice(m.Ptr(), data), b.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
}

func (b *boxBench) get(t *testing.T, m device.Memory) []byte {
	t.Helper()
	data := make([]byte, m.Size())
	if err := errors.Join(b.stream.CopyToHost(data, m.Ptr()), b.stream.Synchronize()); err != nil {
		t.Fatal(err)
	}
	return data
}

func (b *boxBench) launch(t *testing.T, k device.BoxKernel, dst, src device.Ptr, r device.BoxRange) {
	t.Helper()
	m, err := b.dev.BoxModule()
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := m.Kernel(string(k))
	if err == nil {
		err = device.LaunchBox(b.stream, kernel, dst, src, r)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The numbers of a float32 that differ in kind, as bits: zeros, subnormal numbers,
// infinities, NaNs quiet and signalling, and ordinary ones.
var kinds = []uint32{0, 1 << 31, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x7fc00abc, 0xff800001, 0x3f800001, 0xc0490fdb}

func wide(b uint32) uint64 {
	if b&0x7fffffff > 0x7f800000 {
		return uint64(b>>31)<<63 | 0x7ff<<52 | uint64(b&0x7fffff)<<29
	}
	return math.Float64bits(float64(math.Float32frombits(b)))
}

// Every range of a box goes to and fro, and nothing else changes.
func TestBoxKernelsMoveEveryRange(t *testing.T) {
	const nx, ny, nz, sy, sz, at = 3, 4, 2, 5, 35, 11
	const stored, cells = 80, nx * ny * nz
	index := func(cell int) int { return at + cell%nx + cell/nx%ny*sy + cell/(nx*ny)*sz }
	for _, single := range []bool{false, true} {
		size, pack, unpack := 8, device.PackFloat64, device.UnpackFloat64
		if single {
			size, pack, unpack = 4, device.PackFloat32, device.UnpackFloat32
		}
		narrow := make([]uint32, stored)
		array := make([]byte, 0, stored*size)
		for i := range narrow {
			narrow[i] = kinds[i%len(kinds)] ^ uint32(i)<<8&0x700
			if single {
				array = binary.LittleEndian.AppendUint32(array, narrow[i])
			} else {
				array = binary.LittleEndian.AppendUint64(array, wide(narrow[i]))
			}
		}
		b := newBoxBench(t, int64(len(array)), 8*(cells+2))
		blank := bytes.Repeat([]byte{0x5a}, 8*(cells+2))
		for first := range cells {
			for _, count := range []int{1, 2, nx, cells - first} {
				count = min(count, cells-first)
				r := device.BoxRange{First: int64(first), Count: int64(count), NX: nx, NY: ny, SY: sy, SZ: sz}
				want := slices.Clone(blank)
				for i := range count {
					binary.LittleEndian.PutUint64(want[8*(i+1):], wide(narrow[index(first+i)]))
				}
				b.put(t, b.array, array)
				b.put(t, b.packed, blank)
				b.launch(t, pack, b.packed.Ptr().Add(8), b.array.Ptr().Add(int64(at*size)), r)
				if got := b.get(t, b.packed); !bytes.Equal(got, want) {
					t.Fatalf("float32 %t: cells %d to %d are packed otherwise", single, first, first+count)
				}
				empty := make([]byte, len(array))
				b.put(t, b.array, empty)
				b.launch(t, unpack, b.array.Ptr().Add(int64(at*size)), b.packed.Ptr().Add(8), r)
				for i := range count {
					j := index(first + i)
					copy(empty[j*size:(j+1)*size], array[j*size:])
				}
				if got := b.get(t, b.array); !bytes.Equal(got, empty) {
					t.Fatalf("float32 %t: cells %d to %d are unpacked otherwise", single, first, first+count)
				}
			}
		}
	}
}

func TestUnpackingToFloat32RoundsToNearest(t *testing.T) {
	b := newBoxBench(t, 4*4, 8*4)
	var packed []byte
	for _, v := range []uint64{math.Float64bits(1 + 1.0/(1<<24) + 1.0/(1<<40)), math.Float64bits(1e300), 0x7ff0000000000001, 0xfff0000000000001} {
		packed = binary.LittleEndian.AppendUint64(packed, v)
	}
	b.put(t, b.packed, packed)
	b.launch(t, device.UnpackFloat32, b.array.Ptr(), b.packed.Ptr(), device.BoxRange{Count: 4, NX: 4, NY: 1, SY: 4, SZ: 4})
	got := b.get(t, b.array)
	for i, want := range []uint32{0x3f800001, 0x7f800000, 0x7fc00000, 0xffc00000} {
		if v := binary.LittleEndian.Uint32(got[4*i:]); v != want {
			t.Errorf("cell %d has the bits %08x, want %08x", i, v, want)
		}
	}
}

// The module is the device's: loaded once, not to be closed, and no leak.
func TestBoxModuleIsLoadedOnce(t *testing.T) {
	dev, err := emulated.New()
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		m, err := dev.BoxModule()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Close(); !errors.Is(err, device.ErrInvalid) {
			t.Errorf("close: error %v", err)
		}
	}
	if dev.Calls() != 1 || dev.Live() != (emulated.Live{}) {
		t.Errorf("%d calls, %+v", dev.Calls(), dev.Live())
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dev.BoxModule(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("error %v of a closed device", err)
	}
}

// A module that is refused stays so; a closed or lost device says what it is.
func TestBoxModuleRefused(t *testing.T) {
	boom := errors.New("boom")
	for name, tt := range map[string]struct {
		opts  []emulated.Option
		fault bool
		want  error
	}{
		"by an option":  {[]emulated.Option{emulated.WithoutBoxKernels()}, false, device.ErrUnsupported},
		"by the driver": {nil, true, boom},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := emulated.New(tt.opts...)
			if err != nil {
				t.Fatal(err)
			}
			if tt.fault {
				dev.Inject(emulated.Fault{Call: emulated.CallLoadModule, Err: boom})
			}
			for range 2 {
				_, err := dev.BoxModule()
				if _, ok := errors.AsType[*device.Error](err); !ok || !errors.Is(err, tt.want) {
					t.Errorf("error %v", err)
				}
			}
			if err := dev.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	dev, err := emulated.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := dev.BoxModule(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("error %v of a closed device", err)
	}
}

// A launch that doesn't fit the kernel is an error of the device.
func TestBoxKernelsRefuse(t *testing.T) {
	good := func(p device.Ptr) *device.Args {
		return new(device.Args).Ptr(p).Ptr(p).Int64(0).Int64(8).Int64(2).Int64(2).Int64(2).Int64(4)
	}
	for name, launch := range map[string]struct {
		args   func(p device.Ptr) *device.Args
		blocks int
	}{
		"an argument too few": {func(p device.Ptr) *device.Args { return new(device.Args).Ptr(p) }, 1},
		"too many blocks":     {good, 2},
		"no rows": {func(p device.Ptr) *device.Args {
			return new(device.Args).Ptr(p).Ptr(p).Int64(0).Int64(8).Int64(0).Int64(2).Int64(2).Int64(4)
		}, 1},
		"memory that isn't there": {func(p device.Ptr) *device.Args { return good(p.Add(1 << 12)) }, 1},
		"an array that is short": {func(p device.Ptr) *device.Args {
			return new(device.Args).Ptr(p).Ptr(p).Int64(0).Int64(8).Int64(2).Int64(2).Int64(2).Int64(1 << 20)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBoxBench(t, 64, 64)
			m, err := b.dev.BoxModule()
			if err != nil {
				t.Fatal(err)
			}
			k, err := m.Kernel(string(device.PackFloat64))
			if err != nil {
				t.Fatal(err)
			}
			config := device.LaunchConfig{Grid: [3]int{launch.blocks}, Block: [3]int{device.BoxThreads}}
			if err := b.stream.Launch(k, config, launch.args(b.packed.Ptr())); err != nil {
				t.Fatal(err)
			}
			if err := b.stream.Synchronize(); !errors.Is(err, device.ErrLost) {
				t.Errorf("error %v", err)
			}
		})
	}
}
