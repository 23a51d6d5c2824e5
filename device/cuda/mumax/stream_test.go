//go:build mumax && linux

package mumax_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// strangersStream returns a stream that cu can't make: it doesn't synchronise with
// the default stream.
func strangersStream(t *testing.T, gpu *fakegpu.Driver) uintptr {
	t.Helper()
	lib, err := purego.Dlopen(gpu.CUDA, purego.RTLD_NOW)
	must(t, err)
	const nonBlocking = 1
	var create func(stream *uintptr, flags uint32) int32
	purego.RegisterLibFunc(&create, lib, "cuStreamCreate")
	var s uintptr
	if r := create(&s, nonBlocking); r != 0 {
		t.Fatalf("new stream: %d", r)
	}
	t.Cleanup(func() { result(func() { st := cu.Stream(s); st.Destroy() }) })
	return s
}

// On a lazy device a copy runs only when somebody waits, and until then its
// destination is NaN: so it shows whether the host has waited.
func TestWhoWaitsForAnEvent(t *testing.T) {
	gpu := fake(t)
	gpu.Set(t, fakegpu.Lazy)
	space := adopt(t)
	theSpaces := func(t *testing.T) device.Stream {
		s := get[device.Stream](t)(space.NewStream())
		t.Cleanup(func() { must(t, s.Close()) })
		return s
	}
	theSolvers := func(t *testing.T) device.Stream {
		own := cu.StreamCreate()
		s := get[device.Stream](t)(mumax.WrapStream(space, own))
		t.Cleanup(func() {
			must(t, s.Close())
			own.Destroy()
		})
		return s
	}
	wrapped := func(t *testing.T, handle uintptr) device.Stream {
		return get[device.Stream](t)(space.WrapStream(handle))
	}
	// What was known of a handle ends with the stream that was wrapped, for the
	// handle may become another's.
	solversByHandle := func(t *testing.T) device.Stream {
		own := cu.StreamCreate()
		t.Cleanup(func() { own.Destroy() })
		must(t, get[device.Stream](t)(mumax.WrapStream(space, own)).Close())
		return wrapped(t, uintptr(own))
	}
	defaultStream := func(t *testing.T) device.Stream { return wrapped(t, 0) }
	somebodys := func(t *testing.T) device.Stream { return wrapped(t, strangersStream(t, gpu)) }
	spacesByHandle := func(t *testing.T) device.Stream { return wrapped(t, theSpaces(t).Handle()) }

	const size = 1 << 12
	p, q := get[device.Memory](t)(space.Allocate(size)), get[device.Memory](t)(space.Allocate(size))
	in, mid, out := get[device.HostMemory](t)(space.AllocateHost(size)), get[device.HostMemory](t)(space.AllocateHost(size)), get[device.HostMemory](t)(space.AllocateHost(size))
	defer func() {
		for _, m := range []interface{ Free() error }{p, q, in, mid, out} {
			must(t, m.Free())
		}
	}()
	for _, tt := range []struct {
		name      string
		a, b      func(*testing.T) device.Stream
		hostWaits bool
	}{
		{"two of the space", theSpaces, theSpaces, false},
		{"the solver's and the space's", theSolvers, theSpaces, false},
		{"the space's and the solver's", theSpaces, theSolvers, false},
		{"the default stream and the space's", defaultStream, theSpaces, false},
		{"the solver's and the default stream", theSolvers, defaultStream, false},
		{"the space's by its handle", spacesByHandle, theSpaces, false},
		{"the solver's by its handle", solversByHandle, theSpaces, true},
		{"a stranger's and the space's", somebodys, theSpaces, true},
		{"the space's and a stranger's", theSpaces, somebodys, true},
		{"a stranger's and the default stream", somebodys, defaultStream, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runtime.LockOSThread() // until the subtest's goroutine ends
			mumax.Context(space).SetCurrent()
			a, b := tt.a(t), tt.b(t)
			e := get[device.Event](t)(space.NewEvent())
			for round := range 3 {
				want := bytes.Repeat([]byte{byte(round + 1)}, size)
				copy(in.Bytes(), want)
				must(t, a.CopyToDevice(p.Ptr(), in.Bytes()))
				must(t, a.CopyToHost(mid.Bytes(), p.Ptr()))
				must(t, a.Record(e))
				must(t, b.Wait(e))
				if waited := bytes.Equal(mid.Bytes(), want); waited != tt.hostWaits {
					t.Errorf("the host waits: %v, want %v", waited, tt.hostWaits)
				}
				must(t, b.CopyOnDevice(q.Ptr(), p.Ptr(), size))
				must(t, b.CopyToHost(out.Bytes(), q.Ptr()))
				must(t, b.Synchronize())
				if !bytes.Equal(out.Bytes(), want) {
					t.Fatal("the second stream didn't wait for the first")
				}
				must(t, a.Synchronize())
			}
			must(t, e.Close())
		})
	}
}

func TestWaitForWhatIsOverCostsNothing(t *testing.T) {
	gpu := fake(t)
	space := adopt(t)
	a, b := get[device.Stream](t)(space.NewStream()), get[device.Stream](t)(space.NewStream())
	e := get[device.Event](t)(space.NewEvent())
	fills := func() int64 { return gpu.Transfers().Filled.Calls }

	must(t, b.Wait(e)) // never recorded
	must(t, a.Record(e))
	must(t, a.Wait(e)) // its own
	must(t, a.Synchronize())
	must(t, b.Wait(e)) // over
	if n := fills(); n != 0 {
		t.Errorf("%d pieces of work in the default stream, want none", n)
	}
	must(t, a.Record(e))
	must(t, b.Wait(e))
	if n := fills(); n != 1 {
		t.Errorf("%d pieces of work in the default stream, want 1", n)
	}
	for _, c := range []interface{ Close() error }{e, a, b} {
		must(t, c.Close())
	}
}

// What an event stands for outlives the stream it was recorded on.
func TestEventOfAClosedStream(t *testing.T) {
	fake(t).Set(t, fakegpu.Lazy)
	space := adopt(t)
	m := get[device.Memory](t)(space.Allocate(100))
	h := get[device.HostMemory](t)(space.AllocateHost(100))
	a, b := get[device.Stream](t)(space.NewStream()), get[device.Stream](t)(space.NewStream())
	e := get[device.Event](t)(space.NewEvent())
	want := bytes.Repeat([]byte{9}, 100)
	must(t, a.Fill(m.Ptr(), 9, 100))
	must(t, a.CopyToHost(h.Bytes(), m.Ptr()))
	must(t, a.Record(e))
	must(t, a.Close())
	done, err := e.Query()
	must(t, err)
	if !done {
		t.Error("the event isn't over after its stream was closed")
	}
	must(t, e.Synchronize())
	if !bytes.Equal(h.Bytes(), want) {
		t.Error("the copy hasn't run")
	}
	must(t, b.Wait(e))
	for _, free := range []func() error{e.Close, b.Close, m.Free, h.Free} {
		must(t, free())
	}
}
