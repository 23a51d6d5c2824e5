//go:build linux && (amd64 || arm64)

package gputest

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// HostMemory tests how copies treat host memory. foreign returns memory that is
// pinned by calls of the solver on the driver, and what frees it; synchronize is the
// driver's function that waits for a stream.
func HostMemory(t *testing.T, gpu *fakegpu.Driver, space device.Space, synchronize string, foreign func(bytes int) ([]byte, func())) {
	gpu.Set(t, fakegpu.Lazy)
	const size = 10000
	stream, err := space.NewStream()
	must(t, err)
	memory, err := space.Allocate(size)
	must(t, err)
	want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, size/5)
	must(t, stream.CopyToDevice(memory.Ptr(), want))

	// waits reports whether a copy to host memory is over when the call returns.
	waits := func(t *testing.T, host []byte) bool {
		t.Helper()
		clear(host)
		must(t, stream.CopyToHost(host, memory.Ptr()))
		over := bytes.Equal(host, want[:len(host)])
		must(t, stream.Synchronize())
		if !bytes.Equal(host, want[:len(host)]) {
			t.Error("the copy is wrong")
		}
		return over
	}
	t.Run("copies of memory that isn't pinned are over at once", func(t *testing.T) {
		if !waits(t, make([]byte, size)) {
			t.Error("it isn't")
		}
	})
	t.Run("copies of pinned memory are queued", func(t *testing.T) {
		m, err := space.AllocateHost(size)
		must(t, err)
		if waits(t, m.Bytes()) || waits(t, m.Bytes()[7:4000]) {
			t.Error("the call waits")
		}
		must(t, m.Free())
	})
	t.Run("copies of registered memory are queued until the registration ends", func(t *testing.T) {
		own := make([]byte, size+200)
		r, err := space.RegisterHost(own[100 : 100+size])
		must(t, err)
		if waits(t, own[100:100+size]) {
			t.Error("the call waits")
		}
		if !waits(t, own[:size]) || !waits(t, own[200:200+size]) {
			t.Error("memory that is pinned in part isn't waited for")
		}
		must(t, r.Free())
		if !waits(t, own[100:100+size]) {
			t.Error("memory that was pinned isn't waited for")
		}
	})
	t.Run("copies of memory that the solver pinned are queued", func(t *testing.T) {
		host, free := foreign(size)
		if waits(t, host) || waits(t, host[10:11]) {
			t.Error("the call waits")
		}
		free()
	})
	t.Run("another space's pinned memory is pinned", func(t *testing.T) {
		other, err := device.Open(space.Name())
		must(t, err)
		m, err := other.AllocateHost(size)
		must(t, err)
		if waits(t, m.Bytes()) {
			t.Error("the call waits")
		}
		if _, err := space.RegisterHost(m.Bytes()[:10]); !errors.Is(err, device.ErrInvalid) {
			t.Errorf("a second registration: %v", err)
		}
		must(t, m.Free())
		must(t, other.Close())
	})
	t.Run("registered memory is held", func(t *testing.T) {
		own := make([]byte, size)
		gone := weak.Make(&own[0])
		r, err := space.RegisterHost(own)
		must(t, err)
		own = nil
		for range 3 {
			runtime.GC()
		}
		if gone.Value() == nil {
			t.Error("it is collected while it is registered")
		}
		must(t, r.Free())
		r = nil
		for range 3 {
			runtime.GC()
		}
		if gone.Value() != nil {
			t.Error("it is held after its registration")
		}
	})
	t.Run("memory of a copy that couldn't be waited for is held", func(t *testing.T) {
		own := make([]byte, size)
		held := weak.Make(&own[0])
		gpu.Fail(synchronize, 1, 304)
		if err := stream.CopyToHost(own, memory.Ptr()); !errors.Is(err, device.ErrDriver) {
			t.Errorf("copy: %v", err)
		}
		own = nil
		for range 3 {
			runtime.GC()
		}
		if held.Value() == nil {
			t.Error("it is collected")
		}
		must(t, stream.Synchronize())
	})
	t.Run("ordinary memory isn't taken for pinned where the device reaches all of it", func(t *testing.T) {
		gpu.Setting(t, "HMM", "1")
		defer gpu.Setting(t, "HMM", "0")
		if !waits(t, make([]byte, size)) {
			t.Error("it is")
		}
		host, free := foreign(size)
		if waits(t, host) {
			t.Error("memory that the solver pinned isn't taken for it")
		}
		free()
		if _, _, err := space.AddressRange(device.Ptr(unsafe.Pointer(unsafe.SliceData(want)))); !errors.Is(err, device.ErrAddress) {
			t.Errorf("ordinary memory is the device's: %v", err)
		}
	})
	must(t, memory.Free())
	must(t, stream.Close())
}

// Freed tests that addresses are none of the device's which its driver refuses to know,
// with each of the codes that it has for that. rangeOf is its function that finds the
// allocation.
func Freed(t *testing.T, gpu *fakegpu.Driver, space device.Space, rangeOf string, codes ...int) {
	memory, err := space.Allocate(4096)
	must(t, err)
	for _, code := range codes {
		gpu.Fail(rangeOf, 1, code)
		if _, err := space.WrapMemory(memory.Ptr(), 8); !errors.Is(err, device.ErrAddress) || !strings.Contains(err.Error(), "isn't memory of this context") {
			t.Errorf("code %d: wrap: %v", code, err)
		}
		gpu.Fail(rangeOf, 1, code)
		if _, _, err := space.AddressRange(memory.Ptr()); !errors.Is(err, device.ErrAddress) {
			t.Errorf("code %d: address range: %v", code, err)
		}
	}
	must(t, memory.Free())
}
