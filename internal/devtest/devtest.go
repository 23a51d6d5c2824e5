package devtest

import (
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// Device is what a test runs on.
type Device struct {
	// Name is that of the subtest.
	Name string
	// Open opens it, each time as a space of its own. The test closes them.
	Open func() (device.Space, error)
	// Break makes a kernel that is launched later fail on the device, which is lost
	// then: the first, or the n-th. It is nil for a device that can't be told to.
	Break func(space device.Space, nth int)
	// Slow tells that a test had better not move much, nor launch processes: another
	// device of the kind, that is as likely to show a mistake, is faster.
	Slow bool

	load func(t *testing.T)
	end  func(t *testing.T)
}

const variable = "FIELDSTONE_DEVICE"

// Real returns the name of the device that the tests are to run on, "" for all of
// those that need none.
func Real() string { return os.Getenv(variable) }

// Run runs a test on each device, as a subtest. Of a real device one space is kept open
// for all tests of the process.
func Run(t *testing.T, test func(t *testing.T, d Device)) {
	list := append(emulatedDevices(), fakeDevices()...)
	if name := Real(); name != "" {
		keep(name)
		list = []Device{{Name: name, Open: func() (device.Space, error) { return device.Open(name) }}}
	}
	for _, d := range list {
		t.Run(d.Name, func(t *testing.T) {
			if d.load != nil {
				d.load(t)
			}
			test(t, d)
			if d.end != nil {
				d.end(t)
			}
		})
	}
}

// OnFakes skips a test that needs devices which do as they are told.
func OnFakes(t testing.TB) {
	t.Helper()
	if name := Real(); name != "" {
		t.Skipf("%s is %s: this test is for the fake driver and emulated devices", variable, name)
	}
}

func emulatedDevices() []Device {
	var list []Device
	for _, mode := range []emulated.Mode{emulated.Lazy, emulated.Eager, emulated.Delayed} {
		list = append(list, Device{
			Name: "emulated " + mode.String(),
			Slow: mode != emulated.Lazy,
			Open: func() (device.Space, error) {
				return emulated.New(emulated.Schedule(mode), emulated.Capacity(64<<20))
			},
			Break: func(space device.Space, nth int) {
				space.(*emulated.Device).Inject(emulated.Fault{Call: emulated.CallLaunch, Nth: nth, Err: device.ErrAddress, Late: true})
			},
		})
	}
	return list
}
