package mpi

import "errors"

var (
	// ErrUnavailable says that the program was built without MPI, or launched
	// by another MPI than its own.
	ErrUnavailable = errors.New("MPI is not available")

	// ErrDead says that a wait ran out. Its request is still pending, so the
	// communicator is of no more use.
	ErrDead = errors.New("communicator is dead")
)

// Op is a reduction.
type Op int

// The reductions; the order is that of package comm.
const (
	Sum Op = iota
	Min
	Max
	BitXor
	BitOr
)
