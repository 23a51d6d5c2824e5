package emulated_test

import (
	"fmt"
	"sync"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// Without the call of Synchronize the host would read what was there before.
func Example() {
	dev, err := emulated.New()
	if err != nil {
		fmt.Println(err)
		return
	}
	stream, err := dev.NewStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	mem, err := dev.Allocate(3)
	if err != nil {
		fmt.Println(err)
		return
	}
	got := []byte{1, 2, 3}
	for _, err := range []error{
		stream.Fill(mem.Ptr(), 7, 3),
		stream.CopyToHost(got, mem.Ptr()),
	} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(got)
	if err := stream.Synchronize(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(got, dev.Transfers().ToHost)

	for _, err := range []error{mem.Free(), stream.Close(), dev.Close()} {
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// [1 2 3]
	// [7 7 7] {1 3}
}

var registerScale = sync.OnceValue(func() error {
	return emulated.RegisterModule("example", map[string]emulated.KernelFunc{
		"scale": func(l *emulated.Launch) error {
			p, n, factor := l.Ptr(), l.Int64(), l.Float64()
			x, err := emulated.Slice[float64](l, p, n)
			for i := range x {
				x[i] *= factor
			}
			return err
		},
	})
})

// A kernel is a Go function that does what all threads of a launch do. Modules
// are registered once for the program.
func ExampleRegisterModule() {
	if err := registerScale(); err != nil {
		fmt.Println(err)
		return
	}
	if err := scale(); err != nil {
		fmt.Println(err)
	}
	// Output: launched
}

func scale() error {
	dev, err := emulated.New()
	if err != nil {
		return err
	}
	mem, err := dev.Allocate(80)
	if err != nil {
		return err
	}
	stream, err := dev.NewStream()
	if err != nil {
		return err
	}
	module, err := dev.LoadModule(emulated.Image("example"))
	if err != nil {
		return err
	}
	kernel, err := module.Kernel("scale")
	if err != nil {
		return err
	}
	args := new(device.Args).Ptr(mem.Ptr()).Int64(10).Float64(2)
	if err := stream.Launch(kernel, device.LaunchConfig{Grid: [3]int{1}, Block: [3]int{32}}, args); err != nil {
		return err
	}
	if err := stream.Synchronize(); err != nil {
		return err
	}
	fmt.Println("launched")
	for _, free := range []func() error{module.Close, stream.Close, mem.Free, dev.Close} {
		if err := free(); err != nil {
			return err
		}
	}
	return nil
}
