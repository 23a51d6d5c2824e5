package field_test

import (
	"errors"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Storage that isn't aligned to its elements is refused by WrapDevice: the first kernel
// would cost the solver its context.
func TestWrapDeviceWantsAlignedMemory(t *testing.T) {
	devtest.Run(t, func(t *testing.T, d devtest.Device) {
		space := get(d.Open())(t)
		memory := get(space.Allocate(1 << 16))(t)
		stream := get(space.NewStream())(t)
		wrapMisaligned[float64](t, memory.Ptr(), stream, 8)
		wrapMisaligned[complex128](t, memory.Ptr(), stream, 8)
		wrapMisaligned[float32](t, memory.Ptr(), stream, 4)
		free(t, stream.Close, memory.Free, space.Close)
	})
}

func wrapMisaligned[T pack.Number](t *testing.T, p device.Ptr, stream device.Stream, align int64) {
	t.Helper()
	d := domain(8, 4, 2)
	for at := range int64(17) {
		f, err := field.WrapDevice[T](d, d.Box(), p.Add(at), stream, nil)
		if at%align != 0 {
			if !errors.Is(err, device.ErrAddress) {
				t.Errorf("%d bytes off: %v", at, err)
			}
			checkText(t, err, stream.Space().Name(), "no multiple of")
			continue
		}
		must(t, err)
		must(t, get(f.Source())(t).ReadCells(make([]byte, f.Kind().DiskSize()*64), 0))
		must(t, stream.Synchronize())
		must(t, f.Free())
	}
}
