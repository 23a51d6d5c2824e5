package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A run that keeps few bundles takes the oldest away while the tool looks.
func TestABundleThatLeavesTheDirectoryMeanwhileIsNoDamage(t *testing.T) {
	dir, away := t.TempDir(), t.TempDir()
	fields := []sampleField{{"phi", func(c int) float64 { return float64(c) }}}
	sample{fields: fields, increment: 20}.save(t, filepath.Join(dir, "step_20"))
	old := filepath.Join(dir, "step_10")
	sample{fields: fields, increment: 10}.save(t, old)
	for round := range 60 {
		for _, args := range [][]string{{"verify", dir}, {"ls", "--verify", dir}, {"show", "--stats", dir}} {
			gone := filepath.Join(away, fmt.Sprint(round, args[0]))
			done := make(chan error)
			go func() {
				time.Sleep(time.Duration(round*20) * time.Microsecond)
				done <- os.Rename(old, gone)
			}()
			o := run(t, args...)
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if o.status != 0 || o.errors != "" {
				t.Errorf("%q: status %d\n%s%s", args, o.status, o.out, o.errors)
			}
			if err := os.Rename(gone, old); err != nil {
				t.Fatal(err)
			}
		}
	}
}
