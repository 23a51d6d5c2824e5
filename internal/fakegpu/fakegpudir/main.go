//go:build linux

// Command fakegpudir builds the fake drivers, and the sources of kernels for the host
// that are its arguments, if that hasn't been done, and prints the folder that has
// them: what scripts put into LD_LIBRARY_PATH.
package main

import (
	"fmt"
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// reporter takes the place of a test: what would skip or end one ends the program.
type reporter struct{ testing.TB }

func (reporter) Helper() {}

func (reporter) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(1)
}

func (r reporter) Skipf(format string, args ...any) { r.Fatalf(format, args...) }

func main() { fmt.Println(fakegpu.Build(reporter{}, os.Args[1:]...).Dir) }
