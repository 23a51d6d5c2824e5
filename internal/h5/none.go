//go:build !hdf5

package h5

// Enabled says whether the program was built with the library.
const Enabled = false

// Version names the library.
func Version() string { return "none" }

// OpenObjects counts what the library has open: nothing.
func OpenObjects() int { return 0 }

func enter(call func() error) error { return call() }

func createFile(name string, truncate bool) (handle, error) { return nil, ErrUnsupported }

func openFile(name string, writable bool) (handle, error) { return nil, ErrUnsupported }
