//go:build hdf5

package runfile

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// scalars is a run with many scalar unknowns, each saved at every step.
func scalars(dir string, n, states int) Config {
	cfg := Config{
		Directory: dir, Name: "run", Resume: true,
		Initial:    make([]float64, n),
		Checkpoint: CheckpointConfig{Steps: 1},
	}
	for i := range n {
		cfg.Layout.Unknowns = append(cfg.Layout.Unknowns, Unknown{Name: fmt.Sprintf("s%04d", i), Kind: Scalar, Unit: "A", Scale: 2})
	}
	for i := range states + 1 {
		cfg.TimePoints = append(cfg.TimePoints, float64(i))
	}
	return cfg
}

// cpuSeconds is the processor time of this process.
func cpuSeconds(t testing.TB) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	s := func(v syscall.Timeval) float64 { return float64(v.Sec) + float64(v.Usec)*1e-6 }
	return s(r.Utime) + s(r.Stime)
}

// BenchmarkCheckpointOfScalars is the processor time of a checkpoint with one new state,
// segment and checkpoint together.
func BenchmarkCheckpointOfScalars(b *testing.B) {
	for _, n := range []int{10, 100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, err := Open(b.Context(), comm.Self(), scalars(b.TempDir(), n, 1<<16))
			if err != nil {
				b.Fatal(err)
			}
			state := make([]float64, n)
			step := func() {
				if err := s.SaveState(b.Context(), state); err != nil {
					b.Fatal(err)
				}
				next := s.NextTime()
				for i := range state {
					state[i] = next + float64(i)
				}
				s.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true})
				if err := s.SaveState(b.Context(), state); err != nil {
					b.Fatal(err)
				}
				if _, err := s.Checkpoint(b.Context(), state, nil); err != nil {
					b.Fatal(err)
				}
			}
			step()
			step()
			before := cpuSeconds(b)
			k := 0
			for b.Loop() {
				step()
				k++
			}
			b.ReportMetric((cpuSeconds(b)-before)*1e3/float64(k), "cpu-ms/op")
			if err := s.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
