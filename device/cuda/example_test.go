package cuda_test

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda"
	_ "github.com/fieldstone-io/fieldstone/device/emulated"
)

// openDevice opens the first of the named devices that there is.
func openDevice(names ...string) (device.Space, error) {
	var failed []error
	for _, name := range names {
		space, err := device.Open(name)
		if err == nil {
			return space, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// The same program runs with a GPU and without.
func Example() {
	space, err := openDevice("cuda:0", "emulated:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := sevens(space); err != nil {
		fmt.Println(err)
	}
	if err := space.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: [7 7 7 7]
}

// sevens fills device memory and brings it home.
func sevens(space device.Space) error {
	stream, err := space.NewStream()
	if err != nil {
		return err
	}
	mem, err := space.Allocate(4)
	if err != nil {
		return err
	}
	got := make([]byte, 4)
	for _, step := range []func() error{
		func() error { return stream.Fill(mem.Ptr(), 7, 4) },
		func() error { return stream.CopyToHost(got, mem.Ptr()) },
		stream.Synchronize,
		mem.Free,
		stream.Close,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	fmt.Println(got)
	return nil
}
