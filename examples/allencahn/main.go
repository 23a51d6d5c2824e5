package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
)

func main() { os.Exit(command(os.Args[1:])) }

// command returns the exit status: 0, 1 for a run that failed, 2 for a wrong
// command line.
func command(args []string) int {
	// Every rank comes to the same verdict about the command line, before MPI.
	set, err := parse(args, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "allencahn:", err)
		return 2
	}

	c, err := comm.World()
	if err != nil {
		fmt.Fprintln(os.Stderr, "allencahn:", err)
		return 1
	}
	err = run(context.Background(), c, set, os.Stdout)
	var agreed *comm.RankError
	switch {
	case err == nil:
	case errors.As(err, &agreed):
		// All ranks have the same error, so they all come here.
		if c.Rank() == 0 {
			fmt.Fprintln(os.Stderr, "allencahn:", err)
		}
	default:
		// The others don't know of it, and would wait for this rank.
		fmt.Fprintf(os.Stderr, "allencahn: rank %d: %v\n", c.Rank(), err)
		c.Abort(1)
	}
	if end := errors.Join(c.Free(), comm.Finalize()); end != nil {
		fmt.Fprintln(os.Stderr, "allencahn:", end)
		err = end
	}
	if err != nil {
		return 1
	}
	return 0
}
