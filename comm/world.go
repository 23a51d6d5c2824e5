package comm

import (
	"fmt"
	"os"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// World is the communicator of the whole MPI job. Collective.
//
// It initialises MPI if the process hasn't, asking for MPI_THREAD_MULTIPLE and
// working with less; then Finalize is the program's duty at its end. If MPI is
// initialised already, World leaves its life to the host program. The
// communicator is a duplicate, so its messages meet no one else's.
//
// A program built without the tag mpi is a group of one rank. World returns
// ErrNoMPI when the environment says that it was launched as one of several,
// for then each of them would take itself for the whole; and likewise when the
// program was built with another MPI than the one that launched it.
func World(opts ...Option) (*Comm, error) {
	s, err := apply(opts)
	if err != nil {
		return nil, fmt.Errorf("world communicator: %w", err)
	}
	if !mpi.Enabled {
		if name, n := launchedRanks(os.Getenv); n > 1 {
			return nil, fmt.Errorf("world communicator: %w: built without the tag mpi, but %s says that this is one of %d ranks", ErrNoMPI, name, n)
		}
		return newJob(1).comm(0, s), nil
	}
	m, err := mpi.World(s.watch)
	if err != nil {
		return nil, fmt.Errorf("world communicator: %w", err)
	}
	if name, n := launchedRanks(os.Getenv); n > 1 && m.Size() == 1 {
		return nil, fmt.Errorf("world communicator: %w: built with %s, which sees one rank, but %s says that this is one of %d", ErrNoMPI, mpi.Implementation(), name, n)
	}
	return overMPI(m, s), nil
}

// FromFortran makes a communicator of the ranks of the MPI communicator with the
// given Fortran handle (MPI_Comm_c2f), as a host program passes it. The host
// initialises and finalizes MPI. The communicator is a duplicate. Collective
// over the handle's ranks. Without the tag mpi it returns ErrNoMPI.
func FromFortran(handle int, opts ...Option) (*Comm, error) {
	s, err := apply(opts)
	if err != nil {
		return nil, fmt.Errorf("communicator from handle %d: %w", handle, err)
	}
	m, err := mpi.FromFortran(handle, s.watch)
	if err != nil {
		return nil, fmt.Errorf("communicator from handle %d: %w", handle, err)
	}
	return overMPI(m, s), nil
}

// Finalize ends MPI if World initialised it, and does nothing otherwise. Call it
// once, on every rank, as the last use of MPI. Collective.
func Finalize() error {
	if err := mpi.Finalize(); err != nil {
		return fmt.Errorf("finalize: %w", err)
	}
	return nil
}

// launchedRanks is the number of ranks that an MPI launcher put into the
// environment, and the variable that says so; 0 if there is none.
func launchedRanks(getenv func(string) string) (name string, ranks int) {
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} {
		if n, err := strconv.Atoi(getenv(name)); err == nil && n > 0 {
			return name, n
		}
	}
	// PMIx names no size, but a rank above 0 does not come alone.
	if n, err := strconv.Atoi(getenv("PMIX_RANK")); err == nil && n > 0 {
		return "PMIX_RANK", n + 1
	}
	return "", 0
}
