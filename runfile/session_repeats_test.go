//go:build hdf5

package runfile

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// A solver that looks at its field before each step, and doesn't note what its kernels
// write, has the device's cells in the files all the same.
func TestFilesHaveTheDevicesCellsThoughNobodyNotedAWrite(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		s := newCellSolver(t, cuts["z"](c.Size())[c.Rank()], 1, true)
		cfg := s.config(dir)
		cfg.Checkpoint.Steps = 1
		run, err := open(ctx, c, cfg, smallDisk(cfg, vfs.OS), time.Now)
		must(t, err)
		s.set(t, 0)
		must(t, run.SaveState(ctx, []float64{0}))
		for !run.Done() {
			view, err := s.phi.View()
			must(t, err)
			next := run.NextTime()
			run.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true})
			fill(t, s.heat, next, heatAt)
			cells := bytes.Clone(pack.Bytes(view))
			numbers, err := pack.View[float64](cells)
			must(t, err)
			for c := range s.phi.Owned().Cells() {
				g := s.phi.Global(c[0], c[1], c[2])
				numbers[s.phi.Index(c[0], c[1], c[2])] = phiAt(next, g[0], g[1], g[2])
			}
			must(t, errors.Join(s.phi.Stream().CopyToDevice(s.phi.DevicePtr(), cells), s.phi.Stream().Synchronize()))
			must(t, run.SaveState(ctx, []float64{next}))
			_, err = run.Checkpoint(ctx, []float64{next}, nil)
			must(t, err)
		}
		must(t, run.Close(ctx))
		s.free(t)
		if c.Rank() == 0 {
			checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
		}
	})
}

// A field that has changed from checkpoint to checkpoint, and then doesn't, is warned of
// once in a session; not where it never changed, is declared constant, or the session is
// another one.
func TestASessionWarnsOfFieldsThatHaveStoppedChanging(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		for _, tt := range []struct {
			name      string
			phi, heat []float64 // the times that their cells are of, at each checkpoint
			constant  []string
			want      string
		}{
			{"phi stops", []float64{1, 2, 2, 2, 3}, []float64{1, 2, 3, 4, 5}, nil, `fields=[phi] time="3 s" before="2 s"`},
			{"both stop", []float64{1, 2, 2, 3, 3}, []float64{1, 2, 2, 3, 3}, nil, `fields="[phi heat]" time="3 s" before="2 s"`},
			{"heat never changes", []float64{1, 2, 3, 4, 5}, []float64{1, 1, 1, 1, 1}, nil, ""},
			{"phi may stop", []float64{1, 2, 2, 2, 3}, []float64{1, 2, 3, 4, 5}, []string{"phi"}, ""},
			{"between two of them", []float64{1, 2, 1, 2, 1}, []float64{1, 2, 3, 4, 5}, nil, ""},
		} {
			ctx, dir := t.Context(), t.TempDir()+"/"+strings.ReplaceAll(tt.name, " ", "-")
			s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 1, false)
			var log bytes.Buffer
			cfg := s.config(dir)
			cfg.Checkpoint.Steps, cfg.Checkpoint.ConstantFields = 1, tt.constant
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			run, err := open(ctx, c, cfg, smallDisk(cfg, vfs.OS), time.Now)
			must(t, err)
			s.set(t, 0)
			must(t, run.SaveState(ctx, []float64{0}))
			for i := range tt.phi {
				must(t, s.step(ctx, t, run))
				fill(t, s.phi, tt.phi[i], phiAt)
				fill(t, s.heat, tt.heat[i], heatAt)
				_, err := run.Checkpoint(ctx, []float64{run.time}, nil)
				must(t, err)
			}
			must(t, run.Close(ctx))
			s.free(t)
			n, want := strings.Count(log.String(), "equal those of the one before"), int(boolFlag(tt.want != "" && c.Rank() == 0))
			if n != want || want > 0 && !strings.Contains(log.String(), tt.want) {
				t.Errorf("%s: %d warnings, want %d with %q:\n%s", tt.name, n, want, tt.want, log.String())
			}
		}
	})
}

func TestConstantFieldsOfASession(t *testing.T) {
	s := newCellSolver(t, seriesDomain.Box(), 1, false)
	defer s.free(t)
	for text, names := range map[string][]string{
		`Checkpoint.ConstantFields: the layout has no field "phj"`: {"phi", "phj"},
		`Checkpoint.ConstantFields: the layout has no field "E"`:   {"E"}, // a scalar
		`Checkpoint.ConstantFields: "phi" is there twice`:          {"phi", "heat", "phi"},
	} {
		cfg := s.config(t.TempDir())
		cfg.Checkpoint.ConstantFields = names
		_, err := open(t.Context(), comm.Self(), cfg, smallDisk(cfg, vfs.OS), time.Now)
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), text) {
			t.Errorf("%q: error %v", names, err)
		}
	}
}
