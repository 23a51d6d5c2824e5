// Command fieldstone looks at checkpoint bundles: it shows, lists, verifies and
// compares them. It needs no MPI, and changes nothing.
//
//	fieldstone show results/ckpt/step_40
//	fieldstone ls results/ckpt
//	fieldstone verify results/ckpt
//	fieldstone diff results/ckpt/step_40 other/ckpt/step_40
//
// docs/cli.md describes the output, the JSON keys and the exit statuses.
package main

import (
	"context"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	// The first interrupt ends the work in order, a second one the process.
	context.AfterFunc(ctx, stop)
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
