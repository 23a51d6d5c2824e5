package gpu_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"
	"unsafe"
	"weak"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// reading is a driver that keeps the image of a module, but nothing that the garbage
// collector sees.
type reading struct {
	gpu.API // nil: the test doesn't call the other methods
	image   weak.Pointer[byte]
	bytes   int
	unload  gpu.Code
}

func (d *reading) Meaning(c gpu.Code) gpu.Meaning {
	return gpu.Meaning{Name: "ERROR", Err: device.ErrDriver, Sticky: c == 700}
}
func (d *reading) Current() (gpu.Context, gpu.Code)    { return 7, gpu.Success }
func (d *reading) Synchronize() gpu.Code               { return gpu.Success }
func (d *reading) CloseModule(module uintptr) gpu.Code { return d.unload }

func (d *reading) LoadModule(image []byte) (uintptr, string, gpu.Code) {
	d.image, d.bytes = weak.Make(&image[0]), len(image)
	return 1, "", gpu.Success
}

// read returns what is left of the image.
func (d *reading) read() []byte {
	for range 3 {
		runtime.GC()
	}
	p := d.image.Value()
	if p == nil {
		return nil
	}
	return unsafe.Slice(p, d.bytes+1)
}

// The image that a driver was given is there, followed by a NUL, until the driver has
// unloaded the module.
func TestImagesLiveAsLongAsModules(t *testing.T) {
	want := []byte("an image that no other object shares its memory with, and its end\x00")
	load := func(d *reading) (*gpu.Space, device.Module) {
		t.Helper()
		s := gpu.New(gpu.Config{API: d, Properties: device.Properties{Kind: "test"}, Context: 7})
		mine := bytes.Clone(want[:len(want)-1])
		m, err := s.LoadModule(mine)
		if err != nil {
			t.Fatal(err)
		}
		clear(mine)
		if got := d.read(); !bytes.Equal(got, want) {
			t.Errorf("the driver reads %q", got)
		}
		return s, m
	}

	t.Run("a module that is closed", func(t *testing.T) {
		d := &reading{}
		s, m := load(d)
		d.unload = 304
		if err := m.Close(); !errors.Is(err, device.ErrDriver) {
			t.Errorf("error %v", err)
		}
		if got := d.read(); !bytes.Equal(got, want) {
			t.Errorf("after a refusal the driver reads %q", got)
		}
		d.unload = gpu.Success
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		if got := d.read(); got != nil {
			t.Errorf("%q is kept", got)
		}
		runtime.KeepAlive(m)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a module that the space closes", func(t *testing.T) {
		d := &reading{}
		s, m := load(d)
		if _, leak := errors.AsType[*device.LeakError](s.Close()); !leak {
			t.Error("no leak")
		}
		if got := d.read(); got != nil {
			t.Errorf("%q is kept", got)
		}
		runtime.KeepAlive(m)
	})
	t.Run("a module that is lost", func(t *testing.T) {
		d := &reading{}
		s, m := load(d)
		d.unload = 700
		if err := m.Close(); !errors.Is(err, device.ErrLost) {
			t.Errorf("error %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := d.read(); !bytes.Equal(got, want) {
			t.Errorf("the driver reads %q", got)
		}
	})
}
