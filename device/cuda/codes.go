package cuda

import (
	"fmt"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

const (
	invalidValue = 1
	notFound     = 500
)

// meanings are the codes of cuda.h that package device has a word for.
var meanings = map[gpu.Code]error{
	invalidValue: device.ErrInvalid,
	2:            device.ErrOutOfMemory,
	100:          device.ErrUnavailable, // no device
	101:          device.ErrUnavailable, // invalid device
	200:          device.ErrInvalid,     // image
	201:          device.ErrInvalid,     // context
	209:          device.ErrUnsupported, // no binary for the GPU
	218:          device.ErrInvalid,     // PTX
	221:          device.ErrUnsupported, // no compiler
	222:          device.ErrUnsupported, // version of PTX
	223:          device.ErrUnsupported, // compiler disabled
	300:          device.ErrInvalid,     // source
	400:          device.ErrInvalid,     // handle
	notFound:     device.ErrNotFound,
	700:          device.ErrAddress,
	701:          device.ErrInvalid, // more threads or registers than there are
	712:          device.ErrInvalid, // host memory registered already
	713:          device.ErrInvalid, // host memory not registered
	716:          device.ErrAddress, // misaligned
	717:          device.ErrAddress, // not in the address space
	801:          device.ErrUnsupported,
	805:          device.ErrUnavailable, // no connection to the MPS server
	807:          device.ErrUnavailable, // the MPS server isn't ready
	808:          device.ErrUnavailable, // too many clients of MPS
	809:          device.ErrUnavailable, // too many connections to MPS
}

// sticky are the codes after which the context, or the driver, is of no use.
var sticky = map[gpu.Code]bool{
	4:   true, // driver shut down
	46:  true, // device unavailable
	214: true, // memory error
	220: true, // link error
	226: true, // contained hardware error
	700: true, // illegal address
	702: true, // timeout
	709: true, // context destroyed
	710: true, // assert
	714: true, // stack
	715: true, // illegal instruction
	716: true, // misaligned address
	717: true, // address space
	718: true, // program counter
	719: true, // launch failed
	721: true, // memory leak of a tensor core
	805: true, // of MPS, as are the next: another client's fault ends them all
	806: true,
	807: true,
	808: true,
	809: true,
	810: true,
	999: true, // unknown
}

func (l *library) Meaning(c gpu.Code) gpu.Meaning {
	m := gpu.Meaning{Err: device.ErrDriver, Sticky: sticky[c]}
	if err := meanings[c]; err != nil {
		m.Err = err
	}
	var name uintptr
	if l.getErrorName.Call2(uintptr(c), uintptr(unsafe.Pointer(&name))) == 0 {
		m.Name = dl.Text(name)
	}
	if m.Name == "" {
		m.Name = fmt.Sprintf("CUDA error %d", c)
	}
	return m
}
