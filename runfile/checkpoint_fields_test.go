//go:build hdf5

package runfile

import (
	"fmt"
	"maps"
	"math"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// The fields of a checkpoint that begins as a clone keep their places in the file, and all
// ranks overwrite their cells there; so do the counts of those that aren't finite.
func TestFieldsOfClonedCheckpoints(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
		cfg := s.config(dir)
		cfg.Checkpoint.Steps, cfg.Logger = 1, silent
		d := smallDisk(cfg, vfs.OS)
		run, err := open(ctx, c, cfg, d, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		s.set(t, 0)
		must(t, run.SaveState(ctx, []float64{0}))
		size := int64(0)
		for i := 1; i <= 5; i++ {
			phi, heat, e := 0, 0, float64(i)
			switch i {
			case 2:
				phi = 4
			case 3:
				phi, heat, e = 3, 5, math.Inf(1)
			}
			bad := phi != 0
			if bad {
				must(t, s.spoiltStep(t, run, phi, heat, e))
			} else {
				must(t, s.step(ctx, t, run))
				_, err := run.Checkpoint(ctx, []float64{e}, nil)
				must(t, err)
			}
			if c.Rank() != 0 {
				continue
			}
			what := fmt.Sprint("checkpoint ", i)
			if clone := d.writer.last.places != nil; clone != (i > 1) {
				t.Errorf("%s is a clone: %v", what, clone)
			}
			path := CheckpointFile(dir, "run")
			if size == 0 {
				size = sizeOf(t, path)
			} else if now := sizeOf(t, path); now > size+size/4 {
				t.Errorf("%s has %d bytes, the first %d", what, now, size)
			}
			k, err := ReadState(ctx, path)
			must(t, err)
			if k.Time != float64(i) || k.State[0] != e {
				t.Errorf("%s has the time %v and the state %v", what, k.Time, k.State)
			}
			want := map[string]int64{"phi": spoilt(phi), "heat": spoilt(heat), "E": boolFlag(math.IsInf(e, 0))}
			maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
			if !maps.Equal(k.NonFinite, want) {
				t.Errorf("%s counts %v, want %v", what, k.NonFinite, want)
			}
			cells := make([]float64, seriesDomain.Cells())
			for name, at := range map[string]func(time float64, x, y, z int) float64{"phi": phiAt, "heat": heatAt} {
				must(t, k.ReadField(ctx, name, seriesDomain.Box(), cells))
				n := int64(0)
				for i, got := range cells {
					if bad {
						n += boolFlag(math.IsNaN(got) || math.IsInf(got, 0))
					} else if want := at(k.Time, i%7, i/7%5, i/35); got != want {
						t.Fatalf("%s: cell %d of %s is %v, want %v", what, i, name, got, want)
					}
				}
				if n != want[name] {
					t.Errorf("%s: %d cells of %s are not finite, want %d", what, n, name, want[name])
				}
			}
		}
		must(t, run.Close(ctx))
		s.free(t)
	})
}
