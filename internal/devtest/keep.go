package devtest

import (
	"strings"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
)

// On returns the name of the device that the tests are to run on, and skips the test
// unless that is a device of the given kind. The device is kept as by [Run].
func On(t *testing.T, kind string) string {
	t.Helper()
	name := Real()
	if of, _, _ := strings.Cut(name, ":"); of != kind {
		t.Skipf("%s names no device of kind %s", variable, kind)
	}
	keep(name)
	return name
}

// kept are the devices of which a space stays open until the process ends.
var kept sync.Map

// keep holds a space of a device open: to make a primary context and to destroy it for
// each test takes longer than most of the tests.
func keep(name string) {
	open, _ := kept.LoadOrStore(name, sync.OnceFunc(func() {
		// Why that fails is told by the test that opens the device next.
		_, _ = device.Open(name)
	}))
	open.(func())()
}
