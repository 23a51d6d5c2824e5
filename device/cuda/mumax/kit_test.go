//go:build mumax && linux

package mumax_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// fake returns the fake driver. Where a device was named, what only the fake can
// show isn't tested.
func fake(t *testing.T) *fakegpu.Driver {
	t.Helper()
	devtest.OnFakes(t)
	gpu := fakegpu.Load(t, "cuda")
	// Package cu is linked with a library that must be the same one.
	const devices = 3
	gpu.Devices(t, devices)
	found := 0
	result(func() {
		cu.Init(0)
		found = cu.DeviceGetCount()
	})
	if found != devices {
		t.Fatal("the test isn't linked with the fake driver: run it by scripts/with-mumax")
	}
	return gpu
}

// onNamedDevice returns the name of the real device that the tests are for.
func onNamedDevice(t *testing.T) string {
	t.Helper()
	name := devtest.Real()
	if !strings.HasPrefix(name, "mumax") {
		t.Skip("FIELDSTONE_DEVICE names no device of mumax")
	}
	return name
}

// result returns what a call of cu panics with.
func result(fn func()) (r cu.Result) {
	defer func() {
		if p := recover(); p != nil {
			r = p.(cu.Result)
		}
	}()
	fn()
	return cu.SUCCESS
}

// onThread runs fn on an OS thread of its own.
func onThread(fn func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		fn()
	}()
	<-done
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func get[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// newContext makes a context of the solver's, current on the goroutine's thread,
// which stays locked and ends with it. The test destroys the context in the end.
func newContext(t *testing.T, ordinal int) cu.Context {
	t.Helper()
	runtime.LockOSThread()
	cu.Init(0)
	ctx := cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(ordinal))
	t.Cleanup(func() { result(ctx.Destroy) })
	return ctx
}

// adopt returns a space in a context of the solver's.
func adopt(t *testing.T) device.Space {
	t.Helper()
	newContext(t, 0)
	space := get[device.Space](t)(mumax.Adopt())
	t.Cleanup(func() {
		if err := space.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return space
}
