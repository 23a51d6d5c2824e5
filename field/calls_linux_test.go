//go:build amd64 || arm64

package field_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// A chunk costs the calls of the driver that move it, six at most, and one change of
// the current context and back, where the solver has another one.
func TestDriverCallsOfAChunk(t *testing.T) {
	devtest.OnFakes(t)
	const bytes, chunks = 4096, 12
	defer field.SlotBytes(field.SlotBytes(bytes))
	for vendor, change := range map[string][]string{
		"cuda": {"cuCtxGetCurrent", "cuCtxSetCurrent"},
		"hip":  {"hipGetDevice", "hipSetDevice"},
	} {
		t.Run(vendor, func(t *testing.T) {
			gpu := fakegpu.Load(t, vendor, boxKernels)
			space := get(device.Open(vendor + ":1"))(t)
			d := domain(32, 16, chunks)
			f := get(field.New[float64](d, d.Box(), field.Halo(1), field.In(space), field.Transfer(field.Direct)))(t)
			source, sink := get(f.Source())(t), get(f.Sink())(t)
			b := make([]byte, bytes)
			for _, way := range []struct {
				name string
				move func(first int64) error
			}{
				{"write", func(first int64) error { return sink.WriteCells(b, first) }},
				{"read", func(first int64) error { return source.ReadCells(b, first) }},
			} {
				must(t, way.move(0)) // this makes the ring, or has chunks ahead
				calls := func() (all, changes int64) {
					for _, name := range change {
						changes += gpu.Calls(name)
					}
					return gpu.Calls(""), changes
				}
				all, changes := calls()
				const moved = chunks - 4 // the last ones have none ahead
				for i := range int64(moved) {
					must(t, way.move((i+1)*bytes/8))
				}
				allAfter, changesAfter := calls()
				all, changes = allAfter-all, changesAfter-changes
				// One more chunk may have been begun than was wanted.
				if changes > 3*moved || all-changes > 6*(moved+1) {
					t.Errorf("%s: %d calls for %d chunks, %d of them about the context", way.name, all, moved, changes)
				}
			}
			must(t, f.Upload())
			free(t, f.Free, space.Close)
		})
	}
}

// boxKernels is the source of the kernels, which stands in for HIP's code objects.
const boxKernels = "../device/internal/kernels/box.cu"
