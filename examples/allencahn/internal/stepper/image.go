package stepper

import (
	"embed"
	"fmt"
	"io/fs"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/device/hip"
	"github.com/fieldstone-io/fieldstone/examples/allencahn/internal/phasefield"
)

// What scripts/kernels makes of allencahn.cu: the text that CUDA compiles when it
// is loaded, and a code object for each target of AMD.
var (
	//go:embed allencahn.ptx
	ptx string
	//go:embed allencahn.*.hsaco
	objects embed.FS
)

// kernelName is the name of the kernel in all of them.
const kernelName = "allencahn_step"

// image returns what a device of this kind loads.
func image(p device.Properties) ([]byte, error) {
	switch p.Kind {
	case "cuda":
		return append([]byte(ptx), 0), nil // a C string
	case "hip":
		// That for the architecture alone, otherwise that for its family.
		for _, target := range hip.Targets(p.Arch) {
			object, err := fs.ReadFile(objects, "allencahn."+target+".hsaco")
			if err == nil {
				return object, nil
			}
		}
		return nil, fmt.Errorf("%w: no kernel for %s", device.ErrUnsupported, p.Arch)
	case "emulated":
		return emulated.Image(emulatedModule), registerEmulated()
	}
	return nil, fmt.Errorf("%w: no kernel for devices of the kind %s", device.ErrUnsupported, p.Kind)
}

// emulatedModule is the name of the module of an emulated device.
const emulatedModule = "allencahn"

var registerEmulated = sync.OnceValue(func() error {
	return emulated.RegisterModule(emulatedModule, map[string]emulated.KernelFunc{kernelName: emulatedStep})
})

// emulatedStep is the kernel as a Go function, which does what all threads do.
func emulatedStep(l *emulated.Launch) error {
	nextPtr, oldPtr := l.Ptr(), l.Ptr()
	number := func() int { return int(l.Int64()) }
	s := phasefield.Stencil{First: number(), Size: [3]int{number(), number(), number()}, Row: number(), Slice: number()}
	for axis := range s.Beyond {
		s.Beyond[axis] = [2]int{number(), number()}
	}
	rates := phasefield.Rates{Diffusion: l.Float64(), Reaction: l.Float64()}

	span := int64(s.Span())
	next, err := emulated.Slice[float64](l, nextPtr, span)
	if err != nil {
		return err
	}
	old, err := emulated.Slice[float64](l, oldPtr, span)
	if err != nil {
		return err
	}
	rates.Step(next, old, s)
	return nil
}
