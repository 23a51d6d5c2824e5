package hip_test

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/emulated"
	_ "github.com/fieldstone-io/fieldstone/device/hip"
)

// A machine without an AMD GPU, or without ROCm, is no reason to stop.
func Example() {
	space, err := device.Open("hip:0")
	if errors.Is(err, device.ErrUnavailable) {
		space, err = device.Open("emulated:0")
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := space.MemoryInfo()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("memory:", info.Total > 0)
	if err := space.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: memory: true
}
