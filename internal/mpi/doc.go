// Package mpi owns the MPI library: its life from initialisation to finalize,
// communicators of its own with errors that are returned, waits that end at a
// limit, and collective files.
//
// It needs the build tag mpi and cgo. Without the tag the same functions exist
// and return ErrUnavailable, so that what imports it builds anywhere.
package mpi
