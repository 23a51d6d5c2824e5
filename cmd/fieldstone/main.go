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
	"errors"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	endureLimits()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first interrupt ends the work in order, a second one the process.
	context.AfterFunc(ctx, stop)
	status := execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err := os.Stdout.Close(); status == statusGood && isLoss(err) {
		status = (&app{err: os.Stderr}).finish(outputError(err))
	}
	os.Exit(status)
}

// isLoss reports whether closing a file has found out that something wasn't written: a
// network filesystem may say only then that it had no room. A standard output that never
// was one is no loss.
func isLoss(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EIO)
}
