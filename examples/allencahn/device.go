package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/cuda"     // -device cuda
	_ "github.com/fieldstone-io/fieldstone/device/emulated" // -device emulated
	_ "github.com/fieldstone-io/fieldstone/device/hip"      // -device hip
)

// openDevice opens the device of this rank, and returns nil for the host. A kind
// alone means that the ranks of a node share its devices. It is collective, but
// every rank has its own error.
func openDevice(ctx context.Context, c *comm.Comm, name string) (device.Space, error) {
	local, _, err := c.Node(ctx)
	if err != nil || name == onHost {
		return nil, err
	}
	which := name
	if !strings.Contains(name, ":") {
		which, err = device.ForRank(name, local)
	}
	if err != nil {
		return nil, fmt.Errorf("-device %s: %w", name, err)
	}
	space, err := device.Open(which)
	if err != nil {
		return nil, fmt.Errorf("-device %s: %w", name, err)
	}
	return space, nil
}

// describe names a memory to people.
func describe(space device.Space) string {
	if space == nil {
		return onHost
	}
	p := space.Properties()
	about := strings.Join(slices.DeleteFunc([]string{p.Model, p.Arch, p.Driver}, func(s string) bool { return s == "" }), ", ")
	return fmt.Sprintf("%s (%s)", space.Name(), about)
}
