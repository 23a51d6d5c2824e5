//go:build linux && (amd64 || arm64)

// Command fakegpudir builds the fake drivers, and the sources of kernels for the host
// that are its arguments, if that hasn't been done, and prints the folder that has
// them: what scripts put into LD_LIBRARY_PATH.
package main

import (
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

func main() {
	l, err := fakegpu.Make(os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakegpudir:", err)
		os.Exit(1)
	}
	fmt.Println(l.Dir)
}
