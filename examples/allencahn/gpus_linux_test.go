//go:build amd64 || arm64

package main

import (
	"fmt"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// kernelSources stand in for code objects on the fake HIP runtime.
var kernelSources = []string{"internal/stepper/allencahn.cu", "../../device/internal/kernels/box.cu"}

// fakeGPUs loads the fake drivers for this process, and lets jobs find them.
func fakeGPUs(t *testing.T) gpus {
	t.Helper()
	for _, vendor := range []string{"cuda", "hip"} {
		gpu := fakegpu.Load(t, vendor, kernelSources...)
		gpu.Strict(t)
		t.Cleanup(func() {
			live := gpu.Live()
			if vendor == "hip" {
				live.Contexts = 0 // its devices keep theirs
			}
			if live != (fakegpu.Live{}) {
				t.Errorf("left over on %s: %+v", vendor, live)
			}
		})
	}
	environment := fakegpu.Build(t, kernelSources...).Environment()
	return gpus{
		first: "cuda", second: "hip",
		options: []mpitest.Option{mpitest.Env(append(environment, "FAKEGPU_STRICT=1")...)},
		loseAtStep: func(n int) mpitest.Option {
			const illegalAddress = 700
			return mpitest.Env(fmt.Sprintf("FAKEGPU_FAIL=@allencahn_step:%d=%d", n, illegalAddress))
		},
	}
}
