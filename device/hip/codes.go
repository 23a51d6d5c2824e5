package hip

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu"
)

const (
	invalidValue         = 1
	invalidConfiguration = 9
	invalidDevicePointer = 17
	invalidImage         = 200
	notFound             = 500
)

// meanings are the codes of hip_runtime_api.h that package device has a word for.
var meanings = map[gpu.Code]error{
	invalidValue:         device.ErrInvalid,
	2:                    device.ErrOutOfMemory,
	invalidConfiguration: device.ErrInvalid,
	12:                   device.ErrInvalid, // pitch
	invalidDevicePointer: device.ErrAddress,
	21:                   device.ErrInvalid,     // direction of a copy
	35:                   device.ErrUnavailable, // driver too old
	98:                   device.ErrUnsupported, // device function
	100:                  device.ErrUnavailable, // no device
	101:                  device.ErrUnavailable, // invalid device
	invalidImage:         device.ErrInvalid,
	201:                  device.ErrInvalid,     // context
	209:                  device.ErrUnsupported, // no binary for the GPU
	218:                  device.ErrInvalid,     // kernel file
	300:                  device.ErrInvalid,     // source
	400:                  device.ErrInvalid,     // handle
	notFound:             device.ErrNotFound,
	700:                  device.ErrAddress,
	701:                  device.ErrInvalid, // more threads or registers than there are
	709:                  device.ErrInvalid, // the runtime doesn't know the stream
	712:                  device.ErrInvalid, // host memory registered already
	713:                  device.ErrInvalid, // host memory not registered
	801:                  device.ErrUnsupported,
}

// sticky are the codes after which the device, or the runtime, is of no use.
var sticky = map[gpu.Code]bool{
	4:   true, // runtime shut down
	53:  true, // prior launch failed
	214: true, // memory error
	700: true, // illegal address
	702: true, // timeout
	710: true, // assert
	719: true, // launch failed
}

func (l *library) Meaning(c gpu.Code) gpu.Meaning {
	m := gpu.Meaning{Name: l.getErrorName.Text(uintptr(c)), Err: device.ErrDriver, Sticky: sticky[c]}
	if err := meanings[c]; err != nil {
		m.Err = err
	}
	if m.Name == "" {
		m.Name = fmt.Sprintf("HIP error %d", c)
	}
	return m
}
