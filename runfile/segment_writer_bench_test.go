//go:build hdf5

package runfile

import (
	"os"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// BenchmarkCheckpoint is the time of a checkpoint with one new state of 256 KiB, after
// some number of saved states; "whole" writes the output anew instead, as it is at that
// time. TMPDIR chooses the filesystem.
func BenchmarkCheckpoint(b *testing.B) {
	const size = 32 << 10
	for _, bench := range []struct {
		name  string
		saved float64
	}{{"10", 10}, {"100", 100}, {"1000", 1000}} {
		dir := b.TempDir()
		s, err := Open(b.Context(), comm.Self(), series(dir, 1<<16, size))
		if err != nil {
			b.Fatal(err)
		}
		for n := min(100, bench.saved); n <= bench.saved; n += 100 {
			checkpointNow(b, s, advanceSeries(b, s, n))
		}
		w := s.file.(*segmentWriter)
		b.Run("saved="+bench.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				state := advanceSeries(b, s, s.NextTime())
				b.StartTimer()
				checkpointNow(b, s, state)
			}
			info, err := os.Stat(w.path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(info.Size())/1e6, "MB-file")
			b.ReportMetric(1, strings.ReplaceAll(string(w.cloned), " ", "-"))
		})
		b.Run("whole="+bench.name, func(b *testing.B) {
			out, err := ReadOutput(b.Context(), []string{w.path})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if err := WriteOutput(b.Context(), w.path+".whole", out, Atomic(), Extendible()); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := s.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
	}
}
