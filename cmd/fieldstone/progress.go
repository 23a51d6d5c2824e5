package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// barFrom is the number of bytes from which on a bar is worth it.
const barFrom = 32 << 20

// isTerminal reports whether w is a terminal that understands carriage returns
// and escape sequences.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// progress is a bar over the bytes of a long operation, or nothing.
type progress struct{ bar *progressbar.ProgressBar }

// start begins a bar if standard error is a terminal and there is much to do.
// The caller ends it before anything else is written.
func (a *app) start(what string, bytes int64) *progress {
	if !a.bars || bytes < barFrom {
		return &progress{}
	}
	return &progress{progressbar.NewOptions64(bytes,
		progressbar.OptionSetWriter(a.err),
		progressbar.OptionSetDescription(oneLine(what)),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionShowBytes(true),
		progressbar.OptionShowTotalBytes(true),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionSetWidth(24),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionSetRenderBlankState(true),
	)}
}

// add counts bytes as done.
func (p *progress) add(bytes int64) {
	if p.bar != nil {
		// What fails is writing to the terminal, and there is nowhere to say so.
		_ = p.bar.Add64(bytes)
	}
}

// end removes the bar from the terminal.
func (p *progress) end() {
	if p.bar != nil {
		_ = p.bar.Clear()
		_ = p.bar.Exit()
	}
}
