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
	// loseAtStep makes the first device of a job fail at a step. It is nil where
	// none can be told to.
	loseAtStep func(n int) mpitest.Option
}

func findGPUs(t *testing.T) gpus {
	t.Helper()
	if name := os.Getenv("FIELDSTONE_DEVICE"); name != "" {
		return gpus{first: name, second: name}
	}
	return fakeGPUs(t)
}

// Names of gpus before they are found.
const (
	firstGPU  = "the first GPU"
	secondGPU = "the second GPU"
)

// find returns a device that -device takes.
func find(t *testing.T, device string) string {
	t.Helper()
	switch device {
	case firstGPU:
		return findGPUs(t).first
	case secondGPU:
		return findGPUs(t).second
	}
	return device
}
