//go:build !linux

package shm

func createShared(kind Kind, size int) (*Window, string, error) { return nil, "", ErrUnsupported }

func openShared(name string, size int) (*Window, error) { return nil, ErrUnsupported }
