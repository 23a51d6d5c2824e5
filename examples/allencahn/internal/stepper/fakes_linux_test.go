//go:build amd64 || arm64

package stepper_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// kernelSources stand in for code objects on the fake HIP runtime.
var kernelSources = []string{"allencahn.cu", "../../../../device/internal/kernels/box.cu"}

// onFakes are devices of the fake drivers, which run the PTX and, for HIP, the
// kernel's source compiled for the host.
func onFakes() []memory {
	var list []memory
	for _, kind := range []string{"cuda", "hip"} {
		for _, mode := range fakegpu.Modes {
			list = append(list, memory{
				name: "fake " + kind + " " + mode.String(),
				load: func(t *testing.T) {
					gpu := fakegpu.Load(t, kind, kernelSources...)
					gpu.Set(t, mode)
					gpu.Strict(t)
					t.Cleanup(func() {
						if gpu.Launches("allencahn_step") == 0 {
							t.Error("the kernel was never launched")
						}
						live := gpu.Live()
						if kind == "hip" {
							live.Contexts = 0 // its devices keep theirs
						}
						if live != (fakegpu.Live{}) {
							t.Errorf("left over: %+v", live)
						}
					})
				},
				open: onDevice(kind + ":0"),
			})
		}
	}
	return list
}
