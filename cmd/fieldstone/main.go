// Command fieldstone looks at checkpoint bundles and at the files of runs: it shows,
// lists, verifies and compares them. It needs no MPI, and changes none of them. What it
// says of files of runs takes the tag hdf5.
//
//	fieldstone show results/ckpt/step_40
//	fieldstone ls results/ckpt
//	fieldstone verify results/ckpt
//	fieldstone diff results/ckpt/step_40 other/ckpt/step_40
//	fieldstone segments results decay
//	fieldstone join results/decay.segment*.h5 -o decay.h5
//
// docs/cli.md and docs/cli-run-files.md describe the output, the JSON keys and the exit
// statuses.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	endureLimits()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first interrupt ends the work in order, a second one the process.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
