//go:build linux && (amd64 || arm64)

package gputest

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// EachCall makes each call of a space once and calls after with its name.
func EachCall(t *testing.T, space device.Space, image []byte, after func(name string)) {
	t.Helper()
	w := newWork(t, space, image)
	own := make([]byte, 4096)
	pitch := device.Pitch{Row: 64, Rows: 8}
	box := device.Extent{Row: 40, Rows: 5, Slices: 3}
	second := func(_ any, err error) error { return err }
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"memory info", func() error { return second(space.MemoryInfo()) }},
		{"address range", func() error { _, _, err := space.AddressRange(w.p); return err }},
		{"wrap memory", func() error { return second(space.WrapMemory(w.p, 8)) }},
		{"wrap stream", func() error { return second(space.WrapStream(w.stream.Handle())) }},
		{"box module", func() error { return second(space.(device.BoxKernels).BoxModule()) }},
		{"allocate and free", func() error { return freed(space.Allocate(8)) }},
		{"allocate and free host memory", func() error { return freed(space.AllocateHost(8)) }},
		{"register host memory and end it", func() error { return freed(space.RegisterHost(own)) }},
		{"new stream and close", func() error { return closed(space.NewStream()) }},
		{"new event and close", func() error { return closed(space.NewEvent()) }},
		{"load module and close", func() error { return closed(space.LoadModule(image)) }},
		{"copy to device", func() error { return w.stream.CopyToDevice(w.p, w.pinned) }},
		{"copy from memory that isn't pinned", func() error { return w.stream.CopyToDevice(w.p, own) }},
		{"copy to host", func() error { return w.stream.CopyToHost(w.pinned, w.p) }},
		{"copy on device", func() error { return w.stream.CopyOnDevice(w.p, w.p.Add(2048), 2048) }},
		{"copy box to device", func() error { return w.stream.CopyBoxToDevice(w.p, pitch, w.pinned, pitch, box) }},
		{"copy box to host", func() error { return w.stream.CopyBoxToHost(w.pinned, pitch, w.p, pitch, box) }},
		{"copy box on device", func() error { return w.stream.CopyBoxOnDevice(w.p, pitch, w.p.Add(2048), pitch, box) }},
		{"fill", func() error { return w.stream.Fill(w.p, 0, 4096) }},
		{"launch", w.launch},
		{"record", func() error { return w.stream.Record(w.event) }},
		{"wait", func() error { return w.stream.Wait(w.event) }},
		{"query event", func() error { return second(w.event.Query()) }},
		{"query stream", func() error { return second(w.stream.Query()) }},
		{"synchronize event", w.event.Synchronize},
		{"synchronize stream", w.stream.Synchronize},
		{"synchronize", space.Synchronize},
	} {
		if err := call.do(); err != nil {
			t.Errorf("%s: %v", call.name, err)
		}
		after(call.name)
	}
}

func freed(m interface{ Free() error }, err error) error {
	if err != nil {
		return err
	}
	return m.Free()
}

func closed(c interface{ Close() error }, err error) error {
	if err != nil {
		return err
	}
	return c.Close()
}
