package emulated

import (
	"fmt"
	"strconv"

	"github.com/fieldstone-io/fieldstone/device"
)

const (
	kind = "emulated"
	// devices is how many devices a machine seems to have.
	devices = 4
)

type driver struct{}

func init() { device.RegisterDriver(kind, driver{}) }

func (driver) Devices() ([]device.Properties, error) {
	list := make([]device.Properties, devices)
	for i := range list {
		list[i] = (&Device{opts: options{ordinal: i}}).Properties()
	}
	return list, nil
}

// Open makes a new device; which is its number or empty for 0.
func (driver) Open(which string) (device.Space, error) {
	n := 0
	if which != "" {
		var err error
		if n, err = strconv.Atoi(which); err != nil {
			return nil, fmt.Errorf("%w: %q is not a number", device.ErrInvalid, which)
		}
	}
	if n < 0 || n >= devices {
		return nil, fmt.Errorf("%w: there are %d emulated devices", device.ErrUnavailable, devices)
	}
	return New(Ordinal(n))
}
