// Package mpi owns the MPI library: its life from initialisation to finalize,
// communicators of its own with errors that are returned, waits that end at a
// limit, and files that each rank has open by itself.
//
// It needs the build tag mpi and cgo. Without the tag the same functions exist
// and return ErrUnavailable, so that what imports it builds anywhere.
//
// The package initialises MPI through github.com/emer/empi and makes that
// package's view of a communicator, [Comm.Empi], for its typed calls. Everything
// that must not wait for ever is done here with non-blocking calls that are
// polled: a few tests in a row, then with sleeps between them that grow with the
// wait, so that more ranks than cores do not take the cores from each other and a
// long wait leaves its core to others.
package mpi
