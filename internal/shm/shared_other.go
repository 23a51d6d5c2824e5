//go:build !linux

package shm

func createShared(kind Kind, size, ranks int) (*Window, string, error) {
	return nil, "", ErrUnsupported
}

func openShared(name string, size, ranks int) (*Window, error) { return nil, ErrUnsupported }
