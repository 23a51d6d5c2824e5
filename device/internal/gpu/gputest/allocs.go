//go:build linux && (amd64 || arm64)

package gputest

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// Allocations checks that calls which put work into a queue, or wait for it, leave
// nothing to the garbage collector.
func Allocations(t *testing.T, space device.Space, image []byte) {
	for _, tt := range newWork(t, space, image).calls() {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			n := testing.AllocsPerRun(100, func() {
				if e := tt.call(); e != nil {
					err = e
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if n != 0 && !raceDetector {
				t.Errorf("%v allocations for a call", n)
			}
			must(t, space.Synchronize())
		})
	}
}

// Benchmark measures what a call costs the host.
func Benchmark(b *testing.B, space device.Space, image []byte) {
	for _, tt := range newWork(b, space, image).calls() {
		b.Run(tt.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				must(b, tt.call())
			}
			must(b, space.Synchronize())
		})
	}
}

type call struct {
	name string
	call func() error
}

// calls returns those that a program makes again and again.
func (w *work) calls() []call {
	pitch := device.Pitch{Row: 64, Rows: 8}
	box := device.Extent{Row: 40, Rows: 5, Slices: 3}
	return []call{
		{"copy to device", func() error { return w.stream.CopyToDevice(w.p, w.pinned) }},
		{"copy to host", func() error { return w.stream.CopyToHost(w.pinned, w.p) }},
		{"copy on device", func() error { return w.stream.CopyOnDevice(w.p, w.p.Add(2048), 2048) }},
		{"copy box to device", func() error { return w.stream.CopyBoxToDevice(w.p, pitch, w.pinned, pitch, box) }},
		{"copy box to host", func() error { return w.stream.CopyBoxToHost(w.pinned, pitch, w.p, pitch, box) }},
		{"copy box on device", func() error { return w.stream.CopyBoxOnDevice(w.p, pitch, w.p.Add(2048), pitch, box) }},
		{"fill", func() error { return w.stream.Fill(w.p, 0, 4096) }},
		{"launch", w.launch},
		{"record", func() error { return w.stream.Record(w.event) }},
		{"wait", func() error { return w.stream.Wait(w.event) }},
		{"query event", func() error { _, err := w.event.Query(); return err }},
		{"query stream", func() error { _, err := w.stream.Query(); return err }},
		{"synchronize event", w.event.Synchronize},
		{"synchronize stream", w.stream.Synchronize},
	}
}

// work is what a test puts into a queue.
type work struct {
	space  device.Space
	stream device.Stream
	event  device.Event
	p      device.Ptr
	pinned []byte
	kernel device.Kernel
	args   device.Args
}

// newWork makes what a test needs, and frees it when the test ends.
func newWork(t testing.TB, space device.Space, image []byte) *work {
	t.Helper()
	w := &work{space: space}
	var err error
	w.stream, err = space.NewStream()
	must(t, err)
	w.event, err = space.NewEvent()
	must(t, err)
	memory, err := space.Allocate(4096)
	must(t, err)
	host, err := space.AllocateHost(4096)
	must(t, err)
	module, err := space.LoadModule(image)
	must(t, err)
	w.kernel, err = module.Kernel("pack3d")
	must(t, err)
	w.p, w.pinned = memory.Ptr(), host.Bytes()
	w.args.Ptr(w.p).Ptr(w.p.Add(2048))
	for _, n := range []int64{0, 0, 0, 4, 4, 4, 4, 16} {
		w.args.Int64(n)
	}
	t.Cleanup(func() {
		for _, free := range []func() error{w.stream.Synchronize, module.Close, host.Free, memory.Free, w.event.Close, w.stream.Close} {
			must(t, free())
		}
	})
	return w
}

func (w *work) launch() error {
	return w.stream.Launch(w.kernel, device.LaunchConfig{Grid: [3]int{1}, Block: [3]int{256}}, &w.args)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
