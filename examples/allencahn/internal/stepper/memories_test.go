package stepper_test

import (
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda" // is opened by its name
	"github.com/fieldstone-io/fieldstone/device/emulated"
	_ "github.com/fieldstone-io/fieldstone/device/hip" // likewise
)

// A memory is where the cells of a test are.
type memory struct {
	name string
	// load, unless it is nil, is called before the devices of a test are opened.
	load func(t *testing.T)
	// open returns a new space, nil for the host. It is closed, and complains of
	// what wasn't freed, at the end of the test.
	open func(t *testing.T) device.Space
}

var onHost = memory{name: "host", open: func(*testing.T) device.Space { return nil }}

func onEmulated(mode emulated.Mode) memory {
	return memory{name: "emulated " + mode.String(), open: func(t *testing.T) device.Space { return openEmulated(t, emulated.Schedule(mode)) }}
}

func onDevice(name string) func(t *testing.T) device.Space {
	return func(t *testing.T) device.Space {
		t.Helper()
		space, err := device.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := space.Close(); err != nil {
				t.Error(err)
			}
		})
		return space
	}
}

// inEachMemory runs a test wherever a stepper can work here, as subtests: on the
// devices of the fake drivers, or the real one that FIELDSTONE_DEVICE names.
func inEachMemory(t *testing.T, test func(t *testing.T, where memory)) {
	list := []memory{onHost, onEmulated(emulated.Lazy), onEmulated(emulated.Eager), onEmulated(emulated.Delayed)}
	if name := os.Getenv("FIELDSTONE_DEVICE"); name != "" {
		list = append(list, memory{name: name, open: onDevice(name)})
	} else {
		list = append(list, onFakes()...)
	}
	for _, where := range list {
		t.Run(where.name, func(t *testing.T) {
			if where.load != nil {
				where.load(t)
			}
			test(t, where)
		})
	}
}
