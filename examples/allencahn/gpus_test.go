package main

import (
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// gpus are two devices to test on beside host and emulated ones, and what jobs need to
// find them: the real one that FIELDSTONE_DEVICE names, or devices of the fake drivers.
type gpus struct {
	first, second string
	options       []mpitest.Option
}

func findGPUs(t *testing.T) gpus {
	t.Helper()
	if name := os.Getenv("FIELDSTONE_DEVICE"); name != "" {
		return gpus{first: name, second: name}
	}
	return fakeGPUs(t)
}
