package emulated_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/pack"
)

func open(t testing.TB, opts ...emulated.Option) *emulated.Device {
	t.Helper()
	d, err := emulated.New(append([]emulated.Option{emulated.Capacity(16 << 20)}, opts...)...)
	must(t, err)
	return d
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantIs(t testing.TB, what string, err error, targets ...error) {
	t.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("%s: error %v, want one that is %q", what, err, target)
		}
	}
}

func allocate(t testing.TB, d *emulated.Device, size int64) device.Memory {
	t.Helper()
	m, err := d.Allocate(size)
	must(t, err)
	return m
}

func newStream(t testing.TB, d *emulated.Device) device.Stream {
	t.Helper()
	s, err := d.NewStream()
	must(t, err)
	return s
}

func findKernel(t testing.TB, d *emulated.Device, name string) (device.Module, device.Kernel) {
	t.Helper()
	m, err := d.LoadModule(emulated.Image("box"))
	must(t, err)
	k, err := m.Kernel(name)
	must(t, err)
	return m, k
}

func TestNewMemoryIsNaN(t *testing.T) {
	d := open(t)
	m, s := allocate(t, d, 4096), newStream(t, d)
	raw := make([]byte, 4096)
	must(t, s.CopyToHost(raw, m.Ptr()))
	must(t, s.Synchronize())
	doubles, err := pack.View[float64](raw)
	must(t, err)
	for i, v := range doubles {
		if !math.IsNaN(v) {
			t.Fatalf("float64 %d is %v", i, v)
		}
	}
	floats, err := pack.View[float32](raw)
	must(t, err)
	for i, v := range floats {
		if v == v {
			t.Fatalf("float32 %d is %v", i, v)
		}
	}
	h, err := d.AllocateHost(64)
	must(t, err)
	if pinned, err := pack.View[float64](h.Bytes()); err != nil || !math.IsNaN(pinned[7]) {
		t.Errorf("pinned memory holds %v, %v", pinned, err)
	}
	must(t, errors.Join(m.Free(), h.Free(), s.Close(), d.Close()))
}

func TestModesSayWhenWorkRuns(t *testing.T) {
	t.Run("lazy runs nothing before it is waited for", func(t *testing.T) {
		d := open(t)
		m, s, other := allocate(t, d, 8), newStream(t, d), newStream(t, d)
		got, want := []byte("nothing!"), []byte("a value.")
		must(t, s.CopyToDevice(m.Ptr(), want))
		must(t, s.CopyToHost(got, m.Ptr()))
		must(t, other.Fill(m.Ptr(), 0, 0))
		must(t, other.Synchronize())
		for range 1000 {
			runtime.Gosched()
		}
		if string(got) != "nothing!" {
			t.Errorf("host memory holds %q before the copy was waited for", got)
		}
		must(t, s.Synchronize())
		if !bytes.Equal(got, want) {
			t.Errorf("host memory holds %q afterwards, want %q", got, want)
		}
		must(t, errors.Join(m.Free(), s.Close(), other.Close(), d.Close()))
	})
	t.Run("lazy runs no more than it is waited for", func(t *testing.T) {
		d := open(t)
		m, s := allocate(t, d, 8), newStream(t, d)
		e, err := d.NewEvent()
		must(t, err)
		got := make([]byte, 8)
		must(t, s.Fill(m.Ptr(), 1, 8))
		must(t, s.Record(e))
		must(t, s.CopyToHost(got, m.Ptr()))
		must(t, e.Synchronize())
		for range 1000 {
			runtime.Gosched()
		}
		if got[0] != 0 {
			t.Error("the copy after the event ran")
		}
		must(t, errors.Join(s.Synchronize(), m.Free(), s.Close(), e.Close(), d.Close()))
	})
	for _, mode := range []emulated.Mode{emulated.Eager, emulated.Delayed} {
		t.Run(mode.String()+" runs without being waited for", func(t *testing.T) {
			d := open(t, emulated.Schedule(mode))
			s := newStream(t, d)
			ran := make(chan struct{})
			// Names of modules are for good, and tests may run more than once.
			name := fmt.Sprintf("tell %d", tells.Add(1))
			must(t, emulated.RegisterModule(name, map[string]emulated.KernelFunc{
				"tell": func(*emulated.Launch) error { close(ran); return nil },
			}))
			m, err := d.LoadModule(emulated.Image(name))
			must(t, err)
			k, err := m.Kernel("tell")
			must(t, err)
			must(t, s.Launch(k, device.LaunchConfig{}, nil))
			<-ran
			must(t, errors.Join(m.Close(), s.Close(), d.Close()))
		})
	}
}

var tells atomic.Int64

func TestTransfersAreCounted(t *testing.T) {
	d := open(t)
	m, s := allocate(t, d, 1000), newStream(t, d)
	h, err := d.AllocateHost(1000)
	must(t, err)
	own := make([]byte, 1000)
	r, err := d.RegisterHost(own[:500])
	must(t, err)
	module, fill := findKernel(t, d, "fill")

	pitch := device.Pitch{Row: 20, Rows: 5}
	box := device.Extent{Row: 10, Rows: 4, Slices: 3}
	must(t, s.CopyToDevice(m.Ptr(), h.Bytes()))
	must(t, s.CopyToDevice(m.Ptr(), own[100:300]))
	must(t, s.CopyToDevice(m.Ptr(), own[400:600])) // half of it isn't pinned
	must(t, s.CopyToHost(h.Bytes()[:10], m.Ptr()))
	must(t, s.CopyBoxToDevice(m.Ptr(), pitch, h.Bytes(), pitch, box))
	must(t, s.CopyBoxToHost(h.Bytes(), pitch, m.Ptr(), pitch, box))
	must(t, s.CopyOnDevice(m.Ptr(), m.Ptr().Add(500), 100))
	must(t, s.Fill(m.Ptr(), 0, 1000))
	must(t, s.Launch(fill, device.LaunchConfig{}, new(device.Args).Ptr(m.Ptr()).Int32(1).Float64(2)))
	if s.CopyToHost(own, m.Ptr().Add(1)) == nil {
		t.Error("a copy past the end was taken")
	}
	want := emulated.Transfers{
		ToDevice: emulated.Count{Calls: 4, Bytes: 1000 + 200 + 200 + 120},
		ToHost:   emulated.Count{Calls: 2, Bytes: 10 + 120},
		OnDevice: emulated.Count{Calls: 1, Bytes: 100},
		Fills:    1, Launches: 1, Pageable: 1,
	}
	if got := d.Transfers(); got != want {
		t.Errorf("transfers %+v\nwant      %+v", got, want)
	}
	must(t, s.Synchronize())
	must(t, errors.Join(m.Free(), h.Free(), r.Free(), module.Close(), s.Close(), d.Close()))
}

func TestMemoryIsCounted(t *testing.T) {
	d := open(t, emulated.Capacity(10000))
	info := func() device.MemoryInfo {
		i, err := d.MemoryInfo()
		must(t, err)
		return i
	}
	if got := info(); got != (device.MemoryInfo{Free: 10000, Total: 10000}) {
		t.Errorf("at first %+v", got)
	}
	a := allocate(t, d, 6000)
	if got := info().Free; got != 4000 {
		t.Errorf("%d bytes free, want 4000", got)
	}
	_, err := d.Allocate(4001)
	wantIs(t, "allocate more than is free", err, device.ErrOutOfMemory)
	b := allocate(t, d, 4000)
	must(t, errors.Join(a.Free(), b.Free()))
	if got := info().Free; got != 10000 {
		t.Errorf("%d bytes free at last, want 10000", got)
	}
	must(t, d.Close())
}

func TestAddressesAreUsedAgainLate(t *testing.T) {
	d := open(t, emulated.Capacity(4096))
	seen := map[device.Ptr]int{}
	for range 200 {
		m := allocate(t, d, 4096)
		seen[m.Ptr()]++
		must(t, m.Free())
	}
	if len(seen) < 10 {
		t.Errorf("200 allocations had %d addresses", len(seen))
	}
	must(t, d.Close())
}

func TestFailedWorkLosesTheDevice(t *testing.T) {
	args := func(p device.Ptr) *device.Args { return new(device.Args).Ptr(p).Int32(4).Float64(1) }
	tests := []struct {
		name string
		work func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory)
		want []error
		text string
	}{
		{"memory freed before the work that uses it", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			other := allocate(t, d, 100)
			must(t, s.CopyToDevice(other.Ptr(), make([]byte, 100)))
			must(t, other.Free())
		}, []error{device.ErrAddress}, "copy 100 bytes to device"},
		{"a kernel with a stray address", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, args(m.Ptr().Add(m.Size()))))
		}, []error{device.ErrAddress}, `launch kernel "fill"`},
		{"a kernel that reaches past the end", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, args(m.Ptr().Add(m.Size()-24))))
		}, []error{device.ErrAddress}, "past the end"},
		{"an address that is not aligned", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, args(m.Ptr().Add(1))))
		}, []error{device.ErrAddress}, "aligned"},
		{"a kernel with too few arguments", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, new(device.Args).Ptr(m.Ptr()).Int32(4)))
		}, []error{device.ErrInvalid}, "more parameters"},
		{"a kernel without arguments", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, nil))
		}, []error{device.ErrInvalid}, "more parameters"},
		{"a kernel with too many arguments", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "fill")
			must(t, s.Launch(k, device.LaunchConfig{}, args(m.Ptr()).Int64(7)))
		}, []error{device.ErrInvalid}, "32 bytes of arguments"},
		{"a kernel that panics", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			_, k := findKernel(t, d, "panics")
			must(t, s.Launch(k, device.LaunchConfig{}, nil))
		}, nil, "kernel out of its depth"},
		{"an injected failure", func(t *testing.T, d *emulated.Device, s device.Stream, m device.Memory) {
			d.Inject(emulated.Fault{Call: emulated.CallFill, Err: errFault, Late: true})
			must(t, s.CopyToDevice(m.Ptr(), make([]byte, 8)))
			must(t, s.Fill(m.Ptr(), 0, 8))
		}, []error{errFault}, "fill 8 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := open(t)
			s, m := newStream(t, d), allocate(t, d, 64)
			e, err := d.NewEvent()
			must(t, err)
			tt.work(t, d, s, m)
			after := []byte("untouched")
			must(t, s.CopyToHost(after, m.Ptr()))

			err = s.Synchronize()
			wantIs(t, "synchronize", err, append(tt.want, device.ErrLost)...)
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %q doesn't have %q", err, tt.text)
			}
			if string(after) != "untouched" {
				t.Error("work after the failure ran")
			}
			// The error stays, on every call.
			_, allocErr := d.Allocate(8)
			_, infoErr := d.MemoryInfo()
			_, queryErr := s.Query()
			_, eventErr := e.Query()
			for _, err := range []error{
				s.Synchronize(), s.Fill(m.Ptr(), 0, 8), s.Record(e), s.Wait(e), e.Synchronize(), d.Synchronize(),
				allocErr, infoErr, queryErr, eventErr,
			} {
				wantIs(t, "call on the lost device", err, append(tt.want, device.ErrLost)...)
			}
			must(t, errors.Join(m.Free(), e.Close(), s.Close()))
			if live := d.Live(); live.Memory != 0 || live.Streams != 0 || live.Events != 0 {
				t.Errorf("left over: %+v", live)
			}
			if leak, ok := errors.AsType[*emulated.LeakError](d.Close()); ok && leak.Live.Modules != 1 {
				t.Errorf("leaks: %v", leak)
			}
		})
	}
}

func TestCloseReportsFailureThatNobodySaw(t *testing.T) {
	d := open(t)
	s, m := newStream(t, d), allocate(t, d, 8)
	d.Inject(emulated.Fault{Err: errFault, Late: true})
	must(t, s.Fill(m.Ptr(), 0, 8))
	must(t, errors.Join(m.Free(), s.Close()))
	wantIs(t, "close", d.Close(), errFault, device.ErrLost)
}

var errFault = errors.New("injected")

func TestFaults(t *testing.T) {
	t.Run("the nth call fails, once", func(t *testing.T) {
		d := open(t)
		d.Inject(emulated.Fault{Call: emulated.CallAllocate, Nth: 3, Err: errFault})
		for i := 1; i <= 5; i++ {
			m, err := d.Allocate(8)
			if (i == 3) != errors.Is(err, errFault) {
				t.Errorf("call %d: error %v", i, err)
			}
			if err == nil {
				must(t, m.Free())
			}
		}
		must(t, d.Close())
	})
	t.Run("a fault without a call fails the next one of any", func(t *testing.T) {
		d := open(t)
		d.Inject(emulated.Fault{Err: errFault})
		_, err := d.MemoryInfo()
		wantIs(t, "memory info", err, errFault)
		_, err = d.MemoryInfo()
		must(t, err)
		if d.Calls() != 2 {
			t.Errorf("%d calls, want 2", d.Calls())
		}
		must(t, d.Close())
	})
	t.Run("two faults fail two calls", func(t *testing.T) {
		d := open(t)
		d.Inject(emulated.Fault{Call: emulated.CallMemoryInfo, Err: errFault})
		d.Inject(emulated.Fault{Call: emulated.CallMemoryInfo, Err: device.ErrUnsupported})
		_, err := d.MemoryInfo()
		wantIs(t, "first", err, errFault)
		_, err = d.MemoryInfo()
		wantIs(t, "second", err, device.ErrUnsupported)
		must(t, d.Close())
	})
	t.Run("a call that fails does nothing", func(t *testing.T) {
		d := open(t)
		s, m := newStream(t, d), allocate(t, d, 8)
		must(t, s.Fill(m.Ptr(), 1, 8))
		d.Inject(emulated.Fault{Call: emulated.CallFill, Err: errFault})
		wantIs(t, "fill", s.Fill(m.Ptr(), 2, 8), errFault)
		got := make([]byte, 8)
		must(t, s.CopyToHost(got, m.Ptr()))
		must(t, s.Synchronize())
		if got[0] != 1 || d.Transfers().Fills != 1 {
			t.Errorf("memory holds %d after %d fills", got[0], d.Transfers().Fills)
		}
		d.Inject(emulated.Fault{Call: emulated.CallFree, Err: errFault})
		wantIs(t, "free", m.Free(), errFault)
		must(t, errors.Join(m.Free(), s.Close(), d.Close()))
	})
	// A script of all calls, each of which is made to fail in turn.
	t.Run("every call can fail, with its name and the cause", func(t *testing.T) {
		for nth := int64(1); ; nth++ {
			d := open(t)
			d.Inject(emulated.Fault{Nth: int(nth), Err: errFault})
			failed := everyCall(d)
			if d.Calls() < nth {
				must(t, errors.Join(failed...))
				must(t, d.Close())
				if nth < 30 {
					t.Errorf("only %d calls were made", nth-1)
				}
				break
			}
			if len(failed) == 0 {
				t.Fatalf("call %d was to fail", nth)
			}
			if e, ok := errors.AsType[*device.Error](failed[0]); !ok || e.Space != d.Name() || e.Op == "" || e.Err != errFault {
				t.Errorf("call %d: error %v", nth, failed[0])
			}
			_ = d.Close() // what the failed call was to free is left over
		}
	})
}

// everyCall uses each method once and returns what failed.
func everyCall(d *emulated.Device) []error {
	var failed []error
	try := func(err error) bool {
		if err != nil {
			failed = append(failed, err)
		}
		return err == nil
	}
	_, err := d.MemoryInfo()
	try(err)
	host := make([]byte, 64)
	if h, err := d.AllocateHost(64); try(err) {
		try(h.Free())
	}
	if r, err := d.RegisterHost(host); try(err) {
		try(r.Free())
	}
	m, err := d.Allocate(64)
	if !try(err) {
		return failed
	}
	_, err = d.WrapMemory(m.Ptr(), 64)
	try(err)
	_, _, err = d.AddressRange(m.Ptr())
	try(err)
	_, err = d.WrapStream(0)
	try(err)
	if s, err := d.NewStream(); try(err) {
		try(s.CopyToDevice(m.Ptr(), host))
		try(s.CopyToHost(host, m.Ptr()))
		try(s.CopyOnDevice(m.Ptr(), m.Ptr().Add(32), 32))
		try(s.Fill(m.Ptr(), 0, 8))
		if e, err := d.NewEvent(); try(err) {
			try(s.Record(e))
			try(s.Wait(e))
			_, err = e.Query()
			try(err)
			try(e.Synchronize())
			try(e.Close())
		}
		if mod, err := d.LoadModule(emulated.Image("box")); try(err) {
			if k, err := mod.Kernel("fill"); try(err) {
				try(s.Launch(k, device.LaunchConfig{}, new(device.Args).Ptr(m.Ptr()).Int32(1).Float64(1)))
			}
			try(s.Synchronize())
			try(mod.Close())
		}
		_, err = s.Query()
		try(err)
		try(d.Synchronize())
		try(s.Close())
	}
	try(m.Free())
	return failed
}

func TestCloseReportsLeaks(t *testing.T) {
	d := open(t)
	m := allocate(t, d, 8)
	for range 2 {
		_ = newStream(t, d)
	}
	_, err := d.AllocateHost(8)
	must(t, err)
	_, err = d.NewEvent()
	must(t, err)
	module, _ := findKernel(t, d, "fill")
	must(t, errors.Join(m.Free(), module.Close()))
	_, err = d.WrapStream(0)
	must(t, err)
	want := emulated.Live{HostMemory: 1, Streams: 2, Events: 1}
	if got := d.Live(); got != want {
		t.Errorf("live %+v, want %+v", got, want)
	}
	leak, ok := errors.AsType[*emulated.LeakError](d.Close())
	if !ok || leak.Live != want {
		t.Errorf("close reports %v, want %+v", leak, want)
	}
}

func TestOnlyOneCloseSucceeds(t *testing.T) {
	d := open(t, emulated.Schedule(emulated.Delayed))
	m, s := allocate(t, d, 1<<20), newStream(t, d)
	for range 5 {
		must(t, s.Fill(m.Ptr(), 1, 1<<20))
	}
	must(t, errors.Join(s.Synchronize(), m.Free(), s.Close()))
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = d.Close() })
	}
	wg.Wait()
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		} else {
			wantIs(t, "other close", err, device.ErrClosed)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d calls of close succeeded", succeeded)
	}
}

func TestThingsOfAnotherDeviceAreRefused(t *testing.T) {
	a, b := open(t), open(t)
	s, m := newStream(t, a), allocate(t, b, 8)
	e, err := b.NewEvent()
	must(t, err)
	module, k := findKernel(t, b, "fill")
	wantIs(t, "record", s.Record(e), device.ErrInvalid)
	wantIs(t, "wait", s.Wait(e), device.ErrInvalid)
	wantIs(t, "launch", s.Launch(k, device.LaunchConfig{}, nil), device.ErrInvalid)
	wantIs(t, "launch of nothing", s.Launch(nil, device.LaunchConfig{}, nil), device.ErrInvalid)
	wantIs(t, "copy", s.Fill(m.Ptr(), 0, 8), device.ErrAddress)
	must(t, errors.Join(s.Close(), m.Free(), e.Close(), module.Close(), a.Close(), b.Close()))
}

func TestCallsThatMakeNoSenseAreRefused(t *testing.T) {
	d := open(t)
	s, m := newStream(t, d), allocate(t, d, 100)
	module, k := findKernel(t, d, "fill")
	closed, err := d.LoadModule(emulated.Image("box"))
	must(t, err)
	old, err := closed.Kernel("fill")
	must(t, err)
	must(t, closed.Close())
	_, closedErr := closed.Kernel("fill")
	_, imageErr := d.LoadModule(emulated.Image("no such module"))
	_, streamErr := d.WrapStream(99)
	_, hostErr := d.AllocateHost(1 << 40)
	for _, tt := range []struct {
		name string
		err  error
		want error
	}{
		{"a negative grid", s.Launch(k, device.LaunchConfig{Grid: [3]int{1, -1, 1}}, nil), device.ErrInvalid},
		{"a kernel of a closed module", s.Launch(old, device.LaunchConfig{}, nil), device.ErrClosed},
		{"a closed module", closedErr, device.ErrClosed},
		{"an image of no module", imageErr, device.ErrNotFound},
		{"a handle of no stream", streamErr, device.ErrInvalid},
		{"more host memory than there is", hostErr, device.ErrOutOfMemory},
		{"copies that overlap", s.CopyOnDevice(m.Ptr(), m.Ptr().Add(49), 50), device.ErrInvalid},
		{"copies of a negative length", s.CopyOnDevice(m.Ptr(), m.Ptr().Add(50), -1), device.ErrInvalid},
		{"fills of a negative length", s.Fill(m.Ptr(), 0, -1), device.ErrAddress},
		{"fills past the end", s.Fill(m.Ptr(), 0, 101), device.ErrAddress},
		{"fills before the start", s.Fill(m.Ptr()-1, 0, 8), device.ErrAddress},
	} {
		wantIs(t, tt.name, tt.err, tt.want)
	}
	must(t, errors.Join(s.Synchronize(), s.Close(), m.Free(), module.Close(), d.Close()))
}

func TestRegisterModuleRejects(t *testing.T) {
	wantIs(t, "a name twice", emulated.RegisterModule("box", nil), device.ErrInvalid)
	wantIs(t, "no function", emulated.RegisterModule("nil", map[string]emulated.KernelFunc{"f": nil}), device.ErrInvalid)
}

func TestOptionsReject(t *testing.T) {
	for name, opt := range map[string]emulated.Option{
		"a negative number":    emulated.Ordinal(-1),
		"no capacity":          emulated.Capacity(0),
		"too large a capacity": emulated.Capacity(math.MaxInt64),
		"an unknown mode":      emulated.Schedule(7),
	} {
		_, err := emulated.New(opt)
		wantIs(t, name, err, device.ErrInvalid)
	}
}

func TestOpenByName(t *testing.T) {
	for name, want := range map[string]string{"emulated": "emulated:0", "emulated:0": "emulated:0", "emulated:3": "emulated:3"} {
		s, err := device.Open(name)
		must(t, err)
		if s.Name() != want {
			t.Errorf("%q opens %q, want %q", name, s.Name(), want)
		}
		must(t, s.Close())
	}
	for name, want := range map[string]error{"emulated:4": device.ErrUnavailable, "emulated:-1": device.ErrUnavailable, "emulated:one": device.ErrInvalid} {
		_, err := device.Open(name)
		wantIs(t, name, err, want)
	}
	list, err := device.Devices("emulated")
	must(t, err)
	for i, p := range list {
		if p.Kind != "emulated" || p.Ordinal != i {
			t.Errorf("device %d has properties %+v", i, p)
		}
	}
}
