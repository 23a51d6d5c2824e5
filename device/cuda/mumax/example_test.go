//go:build mumax && linux

package mumax_test

import (
	"fmt"
	"log"
	"runtime"

	"github.com/mumax/3/cuda/cu"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda/mumax"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A solver has a context, a buffer and the default stream; a field is put around them.
func ExampleAdopt() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cu.Init(0)
	ctx := cu.CtxCreate(cu.CTX_SCHED_AUTO, cu.DeviceGet(0))
	defer ctx.Destroy()
	domain := grid.Domain{Size: [3]int{4, 3, 2}, Spacing: [3]float64{1, 1, 1}}
	buffer := cu.MemAlloc(8 * domain.Cells())
	defer buffer.Free()
	cu.MemsetD8Async(buffer, 0, 8*domain.Cells(), 0) // a very simple kernel

	space, err := mumax.Adopt()
	if err != nil {
		log.Fatal(err)
	}
	defer space.Close()
	stream, err := mumax.WrapStream(space, 0)
	if err != nil {
		log.Fatal(err)
	}
	defer stream.Close()
	psi, err := field.WrapDevice[float64](domain, domain.Box(), device.Ptr(buffer), stream, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer psi.Free()
	cells, err := psi.View()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(space.Name(), psi.Residency(), cells[:4])
	// Output: mumax:0 in sync [0 0 0 0]
}
