//go:build amd64 || arm64

package cuda_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu/gputest"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

func TestEveryCallOfTheDriverCanFail(t *testing.T) {
	gputest.Faults(t, gputest.Config{
		GPU:       load(t),
		Space:     "cuda:1",
		Image:     kernels.TestPTX(),
		Functions: append(cuda.Functions(), "cuDevicePrimaryCtxRelease"),
		Quiet: map[string]string{
			"cuDriverGetVersion": "the version is left out",
			"cuGetErrorName":     "the number must do",
			"cuCtxGetDevice":     "there is no current context here",
		},
		Release: "cuDevicePrimaryCtxRelease",
		Forget:  func() { cuda.Use("libcuda.so.1") },
	}, []gputest.Fault{
		{Code: 2, Name: "CUDA_ERROR_OUT_OF_MEMORY", Is: device.ErrOutOfMemory},
		{Code: 304, Name: "CUDA_ERROR_OPERATING_SYSTEM", Is: device.ErrDriver},
		{Code: 700, Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Is: device.ErrAddress, Sticky: true},
	})
}
