//go:build !linux || !(amd64 || arm64)

package main

import "testing"

// fakeGPUs are emulated devices: the fake drivers are for Linux.
func fakeGPUs(*testing.T) gpus { return gpus{first: "emulated", second: "emulated"} }
