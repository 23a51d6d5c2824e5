package devtest_test

import (
	"errors"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
)

// Each device packs a box, and can be broken.
func TestDevices(t *testing.T) {
	ran := 0
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		ran++
		for _, broken := range []bool{false, true} {
			if broken && d.Break == nil {
				continue
			}
			space, err := d.Open()
			if err != nil {
				t.Fatal(err)
			}
			box, ok := space.(device.BoxKernels)
			if !ok {
				t.Fatal("no kernels for boxes")
			}
			module, err := box.BoxModule()
			if err != nil {
				t.Fatal(err)
			}
			kernel, err := module.Kernel(string(device.PackFloat64))
			if err != nil {
				t.Fatal(err)
			}
			stream, err := space.NewStream()
			if err != nil {
				t.Fatal(err)
			}
			mem, err := space.Allocate(2048)
			if err != nil {
				t.Fatal(err)
			}
			if broken {
				d.Break(space, 2)
			}
			for range 2 {
				err = errors.Join(err, device.LaunchBox(stream, kernel, mem.Ptr(), mem.Ptr().Add(1024), device.BoxRange{Count: 100, NX: 10, NY: 10, SY: 10, SZ: 100}))
			}
			err = errors.Join(err, stream.Synchronize())
			if errors.Is(err, device.ErrLost) != broken {
				t.Errorf("broken %t: error %v", broken, err)
			}
			if err := errors.Join(stream.Close(), mem.Free(), space.Close()); err != nil {
				t.Error(err)
			}
		}
	})
	if ran == 0 {
		t.Error("no device")
	}
}
