//go:build !linux

package devtest

func fakeDevices() []Device { return nil }
