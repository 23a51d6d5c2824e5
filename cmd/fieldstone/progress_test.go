package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func TestBarIsDrawnAndRemoved(t *testing.T) {
	var b bytes.Buffer
	a := &app{err: &b, bars: true}
	bar := a.start("verify step_40\x1b[2J", 4*barFrom)
	for range 4 {
		bar.add(barFrom)
	}
	bar.end()
	out := b.String()
	for _, want := range []string{`verify step_40\x1b[2J`, "100%"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in %q", want, out)
		}
	}
	// The line is empty and the cursor at its beginning: what follows begins there.
	const clear = "\x1b[2K\r"
	if !strings.HasSuffix(out, clear) || strings.Contains(out, "\n") {
		t.Errorf("%q doesn't end with %q", out, clear)
	}
}

func TestNoBar(t *testing.T) {
	for _, c := range []struct {
		name  string
		bars  bool
		bytes int64
	}{
		{"where standard error is no terminal", false, 4 * barFrom},
		{"where there is little to do", true, barFrom - 1},
		{"where there is nothing to do", true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			a := &app{err: &b, bars: c.bars}
			bar := a.start("x", c.bytes)
			bar.add(c.bytes)
			bar.end()
			if b.Len() > 0 {
				t.Errorf("%q", b.String())
			}
		})
	}
}

func TestFilesAndBuffersAreNoTerminals(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/f")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if isTerminal(f) || isTerminal(new(bytes.Buffer)) {
		t.Error("taken for a terminal")
	}
}
