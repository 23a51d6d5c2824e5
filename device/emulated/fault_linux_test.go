package emulated_test

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// A host that follows a device address faults, at both ends of the memory and
// past it.
func TestHostFaultsAtDeviceAddresses(t *testing.T) {
	d := open(t)
	m := allocate(t, d, 10000)
	for _, offset := range []int64{0, 9999, 20000} {
		if !faults(m.Ptr().Add(offset)) {
			t.Errorf("the host can read the device's address at offset %d", offset)
		}
	}
	must(t, errors.Join(m.Free(), d.Close()))
}

func faults(p device.Ptr) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		_, fault = recover().(runtime.Error)
	}()
	// Through memory, because a conversion is what vet warns of, rightly.
	address := *(*unsafe.Pointer)(unsafe.Pointer(&p))
	sum += *(*byte)(address)
	return false
}

var sum byte
