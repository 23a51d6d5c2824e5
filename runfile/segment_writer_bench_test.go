//go:build hdf5

package runfile

import (
	"os"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
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

// BenchmarkSaveStateOfAField saves 128 MiB of cells, which are not synced yet. TMPDIR chooses the filesystem.
func BenchmarkSaveStateOfAField(b *testing.B) {
	domain := grid.Domain{Size: [3]int{256, 256, 256}, Spacing: [3]float64{1, 1, 1}}
	f, err := field.New[float64](domain, domain.Box(), field.Halo(2))
	if err != nil {
		b.Fatal(err)
	}
	cfg := Config{
		Directory: b.TempDir(), Name: "run",
		Layout:     Layout{Unknowns: []Unknown{{Name: "phi", Kind: Field, Domain: domain}}},
		Fields:     []field.Named{{ID: "phi", Field: f}},
		Checkpoint: CheckpointConfig{Off: true},
	}
	for i := range 1 << 16 {
		cfg.TimePoints = append(cfg.TimePoints, float64(i))
	}
	s, err := Open(b.Context(), comm.Self(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(domain.Cells() * 8)
	for b.Loop() {
		if err := s.SaveState(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		s.Attempt(Attempt{Time: s.NextTime(), Accepted: true})
	}
	if err := s.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}
