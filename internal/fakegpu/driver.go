//go:build linux && (amd64 || arm64)

package fakegpu

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
)

// Mode says when queued operations run.
type Mode int

const (
	// Lazy: only once somebody waits for them. What a program uses without having
	// waited is what was there before, every time.
	Lazy Mode = iota
	// Delayed: after a random delay.
	Delayed
	// Eager: as soon as they can.
	Eager
)

// Modes are all of them.
var Modes = []Mode{Lazy, Delayed, Eager}

var modeNames = []string{"lazy", "delayed", "eager"}

// String returns the name that FAKEGPU_MODE takes.
func (m Mode) String() string { return modeNames[m] }

// Driver controls a fake driver of this process.
type Driver struct {
	Libraries

	set     func(name, value string) int32
	kernels func(path string) int32
	fail    func(api string, nth int64, code int32)
	reset   func()
	count   func(what string) int64
	misuse  func(text []byte, size uint64) int64
}

var (
	loadedMu sync.Mutex
	loaded   = map[string]*Driver{}
)

// Load builds a fake driver and loads it, so that whoever opens the vendor's library in
// this process gets the fake. vendor is "cuda", "hip5", "hip6", "hip7" or "hip" for the
// newest one; kernels are those of [Build]. The driver is as after [Driver.Reset]. When
// the test ends and there was a misuse that it didn't ask for by [Driver.Misuse], it
// fails.
func Load(tb testing.TB, vendor string, kernels ...string) *Driver {
	tb.Helper()
	l := Build(tb, kernels...)
	d, err := load(vendor)
	if err != nil {
		tb.Fatalf("load the fake GPU: %v", err)
	}
	d.Libraries = l
	for _, path := range l.Kernels {
		if d.kernels(path) == 0 {
			tb.Fatalf("the fake GPU can't load %s", path)
		}
	}
	d.Reset()
	tb.Cleanup(func() {
		if n, what := d.Misuse(); n > 0 {
			tb.Errorf("the GPU was used wrongly, %d times: %s", n, what)
		}
	})
	return d
}

func load(vendor string) (*Driver, error) {
	loadedMu.Lock()
	defer loadedMu.Unlock()
	if vendor == "hip" {
		vendor += newestHIP()
	}
	if d := loaded[vendor]; d != nil {
		return d, nil
	}
	soname := "libcuda.so.1"
	if vendor != "cuda" {
		soname = "libamdhip64.so." + vendor[len("hip"):]
	}
	// Always the same file: a second copy of the library would be a driver of
	// its own.
	base, err := Make()
	if err != nil {
		return nil, err
	}
	handle, err := purego.Dlopen(filepath.Join(base.Dir, soname), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", soname, err)
	}
	d := new(Driver)
	purego.RegisterLibFunc(&d.set, handle, "fakegpu_set")
	purego.RegisterLibFunc(&d.kernels, handle, "fakegpu_kernels")
	purego.RegisterLibFunc(&d.fail, handle, "fakegpu_fail")
	purego.RegisterLibFunc(&d.reset, handle, "fakegpu_reset")
	purego.RegisterLibFunc(&d.count, handle, "fakegpu_count")
	purego.RegisterLibFunc(&d.misuse, handle, "fakegpu_misuse")
	loaded[vendor] = d
	return d, nil
}

// Set sets the mode.
func (d *Driver) Set(tb testing.TB, m Mode) {
	tb.Helper()
	d.Setting(tb, "MODE", m.String())
}

// Setting sets what the variable FAKEGPU_name of the environment sets.
func (d *Driver) Setting(tb testing.TB, name, value string) {
	tb.Helper()
	if d.set(name, value) == 0 {
		tb.Fatalf("the fake GPU has no setting %s=%s", name, value)
	}
}

// Memory sets how much memory each device has.
func (d *Driver) Memory(tb testing.TB, bytes int64) {
	tb.Helper()
	d.Setting(tb, "MEM", strconv.FormatInt(bytes, 10))
}

// Devices sets how many devices there are.
func (d *Driver) Devices(tb testing.TB, n int) {
	tb.Helper()
	d.Setting(tb, "DEVICES", strconv.Itoa(n))
}

// Strict makes asynchronous copies of pageable host memory fail, which a real driver
// makes synchronous, and copies whose pinned memory was written while they were queued.
func (d *Driver) Strict(tb testing.TB) {
	tb.Helper()
	d.Setting(tb, "STRICT", "1")
}

// Fail lets the nth call of a function from now on fail, or every one for nth 0, with
// an error of the vendor. A version suffix of the function's name doesn't matter. With
// the names "@copy", "@fill", "@kernel" and "@" followed by the name of a kernel, the
// call works, but what it queues fails on the device, and the error stays: so it does
// for calls with the codes of errors that stay.
func (d *Driver) Fail(api string, nth, code int) {
	d.fail(api, int64(nth), int32(code))
}

// FailKernel lets the nth launch from now on fail on the device.
func (d *Driver) FailKernel(nth, code int) {
	d.Fail("@kernel", nth, code)
}

// Reset destroys all contexts with all that belongs to them, forgets faults and
// counters, and sets what the environment sets.
func (d *Driver) Reset() { d.reset() }

// Transfers counts copies and what they copied. Boxes are counted without the gaps.
type Transfers struct {
	ToDevice, ToHost, OnDevice, Filled Traffic
}

// Traffic counts calls and bytes.
type Traffic struct {
	Calls, Bytes int64
}

// Transfers returns what was queued since the last reset. A test takes the difference.
func (d *Driver) Transfers() Transfers {
	return Transfers{
		ToDevice: d.traffic("to device"),
		ToHost:   d.traffic("to host"),
		OnDevice: d.traffic("on device"),
		Filled:   d.traffic("fill"),
	}
}

func (d *Driver) traffic(what string) Traffic {
	return Traffic{Calls: d.count(what + " calls"), Bytes: d.count(what + " bytes")}
}

// Live counts what a program has and must give back.
type Live struct {
	Allocations, Pinned, Registered, Streams, Events, Modules, Contexts int64
	// Bytes of device memory.
	Bytes int64
}

// Live returns what there is now.
func (d *Driver) Live() Live {
	return Live{
		Allocations: d.count("allocations"),
		Pinned:      d.count("pinned"),
		Registered:  d.count("registered"),
		Streams:     d.count("streams"),
		Events:      d.count("events"),
		Modules:     d.count("modules"),
		Contexts:    d.count("contexts"),
		Bytes:       d.count("used bytes"),
	}
}

// Launches returns how often a kernel was launched since the last reset, or all kernels
// for an empty name.
func (d *Driver) Launches(kernel string) int64 {
	if kernel == "" {
		return d.count("launches")
	}
	return d.count("launches of " + kernel)
}

// Calls returns how often a function of the driver was called since the last reset, or
// all functions for an empty name. A version suffix of the name doesn't matter. Those
// that only name or number something aren't counted.
func (d *Driver) Calls(function string) int64 { return d.count("calls of " + function) }

// PageableCopies returns how many asynchronous copies since the last reset had to be
// staged, or waited for, because the host memory wasn't pinned.
func (d *Driver) PageableCopies() int64 { return d.count("pageable copies") }

// Misuse returns how often the driver was used wrongly since the last call or reset,
// and what the first time was.
func (d *Driver) Misuse() (int64, string) {
	text := make([]byte, 256)
	n := d.misuse(text, uint64(len(text)))
	if end := bytes.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	return n, string(text)
}
