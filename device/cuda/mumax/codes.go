//go:build mumax

package mumax

import (
	"fmt"
	"strings"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

// meaning is what a code of the driver stands for. Those without an err have no
// word in package device.
type meaning struct {
	name   string // where cu has none
	err    error
	sticky bool
}

var meanings = map[cu.Result]meaning{
	cu.ERROR_INVALID_VALUE:           {err: device.ErrInvalid},
	cu.ERROR_OUT_OF_MEMORY:           {err: device.ErrOutOfMemory},
	cu.ERROR_NOT_INITIALIZED:         {err: device.ErrUnavailable},
	cu.ERROR_DEINITIALIZED:           {sticky: true},
	35:                               {name: "CUDA_ERROR_INSUFFICIENT_DRIVER", err: device.ErrUnavailable},
	46:                               {name: "CUDA_ERROR_DEVICE_UNAVAILABLE", err: device.ErrUnavailable, sticky: true},
	cu.ERROR_NO_DEVICE:               {err: device.ErrUnavailable},
	cu.ERROR_INVALID_DEVICE:          {err: device.ErrUnavailable},
	cu.ERROR_INVALID_IMAGE:           {err: device.ErrInvalid},
	cu.ERROR_INVALID_CONTEXT:         {err: device.ErrInvalid},
	cu.ERROR_NO_BINARY_FOR_GPU:       {err: device.ErrUnsupported},
	cu.ERROR_ECC_UNCORRECTABLE:       {sticky: true},
	218:                              {name: "CUDA_ERROR_INVALID_PTX", err: device.ErrInvalid},
	220:                              {name: "CUDA_ERROR_NVLINK_UNCORRECTABLE", sticky: true},
	221:                              {name: "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", err: device.ErrUnsupported},
	222:                              {name: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", err: device.ErrUnsupported},
	223:                              {name: "CUDA_ERROR_JIT_COMPILATION_DISABLED", err: device.ErrUnsupported},
	226:                              {name: "CUDA_ERROR_CONTAINED", sticky: true},
	cu.ERROR_INVALID_SOURCE:          {err: device.ErrInvalid},
	cu.ERROR_INVALID_HANDLE:          {err: device.ErrInvalid},
	cu.ERROR_NOT_FOUND:               {err: device.ErrNotFound},
	700:                              {name: "CUDA_ERROR_ILLEGAL_ADDRESS", err: device.ErrAddress, sticky: true},
	cu.ERROR_LAUNCH_OUT_OF_RESOURCES: {err: device.ErrInvalid},
	cu.ERROR_LAUNCH_TIMEOUT:          {sticky: true},
	cu.ERROR_CONTEXT_IS_DESTROYED:    {sticky: true},
	cu.ERROR_ASSERT:                  {sticky: true},
	cu.ERROR_HARDWARE_STACK_ERROR:    {sticky: true},
	cu.ERROR_ILLEGAL_INSTRUCTION:     {sticky: true},
	cu.ERROR_MISALIGNED_ADDRESS:      {err: device.ErrAddress, sticky: true},
	cu.ERROR_INVALID_ADDRESS_SPACE:   {err: device.ErrAddress, sticky: true},
	cu.ERROR_INVALID_PC:              {sticky: true},
	cu.ERROR_LAUNCH_FAILED:           {sticky: true},
	721:                              {name: "CUDA_ERROR_TENSOR_MEMORY_LEAK", sticky: true},
	cu.ERROR_NOT_SUPPORTED:           {err: device.ErrUnsupported},
	805:                              {name: "CUDA_ERROR_MPS_CONNECTION_FAILED", err: device.ErrUnavailable, sticky: true},
	806:                              {name: "CUDA_ERROR_MPS_RPC_FAILURE", sticky: true},
	807:                              {name: "CUDA_ERROR_MPS_SERVER_NOT_READY", err: device.ErrUnavailable, sticky: true},
	808:                              {name: "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", err: device.ErrUnavailable, sticky: true},
	809:                              {name: "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", err: device.ErrUnavailable, sticky: true},
	810:                              {name: "CUDA_ERROR_MPS_CLIENT_TERMINATED", sticky: true},
	cu.ERROR_UNKNOWN:                 {sticky: true},
}

// Meaning implements gpu.API.
func (*bindings) Meaning(c gpu.Code) gpu.Meaning { return meaningOf(cu.Result(c)) }

func meaningOf(r cu.Result) gpu.Meaning {
	m := meanings[r]
	out := gpu.Meaning{Name: m.name, Err: m.err, Sticky: m.sticky}
	if out.Err == nil {
		out.Err = device.ErrDriver
	}
	if out.Name == "" {
		out.Name = r.String()
	}
	if !strings.HasPrefix(out.Name, "CUDA_") {
		out.Name = fmt.Sprintf("CUDA error %d", int(r))
	}
	return out
}
