package field_test

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/emulated"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

var square = grid.Domain{Size: [3]int{4, 3, 1}, Spacing: [3]float64{0.5, 0.5, 1}}

// A field in host memory with one ghost cell in the plane.
func ExampleNew() {
	psi, err := field.New[float64](square, square.Box(), field.HaloXYZ(1, 1, 0))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := psi.MutableView()
	if err != nil {
		fmt.Println(err)
		return
	}
	for c := range psi.Owned().Cells() {
		p := psi.Coordinates(c[0], c[1], c[2])
		data[psi.Index(c[0], c[1], c[2])] = p[0] + 10*p[1]
	}
	for row := range psi.Owned().Rows() {
		fmt.Println(data[row.Start:row.End])
	}
	fmt.Println(len(data))
	// Output:
	// [0 0.5 1 1.5]
	// [5 5.5 6 6.5]
	// [10 10.5 11 11.5]
	// 30
}

// A field on a device: the host writes, uploads, and reads again after a
// kernel has written.
func ExampleIn() {
	if err := onDevice(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// host newer
	// in sync
	// device newer
	// 3
	// 1 1
}

func onDevice() error {
	dev, err := emulated.New()
	if err != nil {
		return err
	}
	psi, err := field.New[float64](square, square.Box(), field.In(dev))
	if err != nil {
		return err
	}
	data, err := psi.MutableView()
	if err != nil {
		return err
	}
	data[0] = 1
	fmt.Println(psi.Residency())
	if err := psi.Upload(); err != nil {
		return err
	}
	fmt.Println(psi.Residency())

	module, err := dev.LoadModule(emulated.Image("field"))
	if err != nil {
		return err
	}
	add, err := module.Kernel("add")
	if err != nil {
		return err
	}
	args := new(device.Args).Ptr(psi.DevicePtr()).Int64(12).Float64(2)
	if err := psi.Stream().Launch(add, device.LaunchConfig{}, args); err != nil {
		return err
	}
	if err := psi.NoteDeviceWrite(); err != nil {
		return err
	}
	fmt.Println(psi.Residency())

	if data, err = psi.View(); err != nil {
		return err
	}
	fmt.Println(data[0])
	moved := psi.Transfers()
	fmt.Println(moved.Refreshes, moved.Uploads)
	for _, end := range []func() error{module.Close, psi.Free, dev.Close} {
		if err := end(); err != nil {
			return err
		}
	}
	return nil
}

// A field that lives on a device is read past its mirror: exactly the owned cells move,
// and nothing becomes stale. publish.SaveBundle reads it in this way.
func ExampleTransfer() {
	if err := readDirectly(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [0 0 0 0]
	// 12 cells, 96 bytes, 0 refreshes, device newer
}

func readDirectly() error {
	dev, err := emulated.New()
	if err != nil {
		return err
	}
	psi, err := field.New[float64](square, square.Box(), field.Halo(1), field.In(dev), field.Transfer(field.Direct))
	if err != nil {
		return err
	}
	if err := psi.NoteDeviceWrite(); err != nil { // as after a kernel
		return err
	}
	source, err := psi.Source()
	if err != nil {
		return err
	}
	cells := make([]float64, 12)
	if err := source.ReadCells(pack.Bytes(cells), 0); err != nil {
		return err
	}
	fmt.Println(cells[:4])
	t := psi.Transfers()
	fmt.Printf("%d cells, %d bytes, %d refreshes, %v\n", t.ReadCells, t.ReadBytes, t.Refreshes, psi.Residency())
	if err := psi.Free(); err != nil {
		return err
	}
	return dev.Close()
}

// A stepper tries a step and goes back.
func ExampleCapture() {
	psi, err := field.WrapHost(square, square.Box(), make([]float64, 12))
	if err != nil {
		fmt.Println(err)
		return
	}
	before, err := field.Capture(field.Named{ID: "psi", Field: psi})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := psi.MutableView()
	if err != nil {
		fmt.Println(err)
		return
	}
	data[5] = 1e300
	if err := before.Restore(field.Named{ID: "psi", Field: psi}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(data[5])
	// Output: 0
}
