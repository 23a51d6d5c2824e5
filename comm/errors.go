package comm

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

var (
	// ErrNoMPI says that the program needs MPI and was built without it, or was
	// launched by another MPI than the one it was built with.
	ErrNoMPI = mpi.ErrUnavailable

	// ErrDead says that a wait on other ranks ran out, or that a rank is known
	// never to come. The communicator is of no more use.
	ErrDead = mpi.ErrDead

	// ErrMismatch says that ranks called different collectives, or the same one
	// with contradicting arguments: another length or another root. The text is the
	// same on all ranks. The communicator is of no more use.
	ErrMismatch = errors.New("ranks called different collectives")

	// ErrLeft says that a rank of a Run group returned before the others were
	// done with it.
	ErrLeft = errors.New("a rank has left")

	// ErrFreed is returned by calls on a communicator after its Free.
	ErrFreed = errors.New("communicator was freed")
)

func init() {
	sentinel.RegisterAll("comm", map[string]error{
		"ErrMismatch": ErrMismatch,
		"ErrLeft":     ErrLeft,
		"ErrFreed":    ErrFreed,
	})
}
