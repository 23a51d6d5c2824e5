//go:build hdf5

package h5_test

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

func Example() {
	dir, err := os.MkdirTemp("", "h5")
	if err != nil {
		log.Panic(err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "run.h5")

	f, err := h5.Create(name)
	if err != nil {
		log.Panic(err)
	}
	err = errors.Join(
		h5.Write(f, "time", []float64{0, 0.5}, 2),
		f.SetAttributeString("time", "unit", "s"),
		f.Sync(),
		f.Close(),
	)
	if err != nil {
		log.Panic(err)
	}

	f, err = h5.Open(name)
	if err != nil {
		log.Panic(err)
	}
	defer f.Close()
	times, shape, err := h5.Read[float64](f, "time")
	fmt.Println(times, shape, err)
	unit, err := f.AttributeString("time", "unit")
	fmt.Println(unit, err)
	// Output:
	// [0 0.5] [2] <nil>
	// s <nil>
}
