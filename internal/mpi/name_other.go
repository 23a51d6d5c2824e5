//go:build mpi && !linux

package mpi

// libraryName gives a file a name that every library can open: see the version
// for Linux. Elsewhere there is no other name than the path.
func libraryName(path string) (name string, release func()) { return path, func() {} }
