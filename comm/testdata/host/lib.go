//go:build mpi

// Host is a library for a program in C that initialises MPI itself, as a solver
// in Fortran or C++ does, and hands over a communicator.
package main

import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
)

// fieldstone_step agrees on the host's ranks, and on an error of one of them.
//
//export fieldstone_step
func fieldstone_step(handle C.int, failing C.int) C.int {
	if err := step(int(handle), int(failing)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func step(handle, failing int) error {
	ctx := context.Background()
	c, err := comm.FromFortran(handle)
	if err != nil {
		return err
	}
	if err := c.Meet(ctx); err != nil {
		return err
	}
	own := comm.Protect(func() error {
		if c.Rank() == failing {
			var p *int
			*p = 1 // the host's thread, a signal handler of MPI's in between
		}
		return nil
	})
	var re *comm.RankError
	if err := c.Agree(ctx, own); !errors.As(err, &re) || re.Rank != failing {
		return fmt.Errorf("agreed on %w", err)
	}
	if err := c.Free(); err != nil {
		return err
	}
	return comm.Finalize() // the host's MPI goes on
}

func main() {}
