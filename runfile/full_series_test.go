//go:build hdf5 && linux

package runfile

import (
	"errors"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
)

// A disk that is full when a state, a segment or a checkpoint is added leaves what was
// there, whole, and the run goes on from it when there is room.
func TestAFullDiskEndsASeriesOfFields(t *testing.T) {
	inProcess(t, func(t *testing.T) {
		domain := grid.Domain{Size: [3]int{32, 32, 32}, Spacing: [3]float64{1, 1, 1}} // 256 KiB
		for _, size := range []string{"size=1m", "size=1400k", "size=2m", "size=2300k"} {
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", 0, size); err != nil {
				t.Skip("a small filesystem needs root:", err)
			}
			defer unix.Unmount(dir, unix.MNT_DETACH)
			var run *Session
			var f *field.Field[float64]
			begin := func() (err error) {
				if f, err = field.New[float64](domain, domain.Box()); err != nil {
					return err
				}
				run, err = Open(t.Context(), comm.Self(), Config{
					Directory: dir, Name: "run", Resume: true,
					Layout:     Layout{Unknowns: []Unknown{{Name: "phi", Kind: Field, Domain: domain}}},
					TimePoints: []float64{0, 1, 2, 3, 4, 5, 6},
					Fields:     []field.Named{{ID: "phi", Field: f}},
					Checkpoint: CheckpointConfig{Steps: 1},
				})
				return err
			}
			set := func(time float64) error {
				view, err := f.MutableView()
				for i := range view {
					view[i] = time + float64(i)/4096
				}
				return err
			}
			advance := func() error {
				err := set(run.time)
				if err == nil {
					err = run.SaveState(t.Context(), nil)
				}
				for err == nil && !run.Done() {
					next := run.NextTime()
					run.Attempt(Attempt{Time: next, Accepted: true})
					if err = set(next); err == nil {
						err = run.SaveState(t.Context(), nil)
					}
					if err == nil {
						_, err = run.Checkpoint(t.Context(), nil, nil)
					}
				}
				return err
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			if err := advance(); !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: the run ends with %v", size, err)
			}
			reached := run.time
			if err := run.Close(t.Context()); err != nil && !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
			if err != nil {
				t.Fatalf("%s: %v", size, err)
			}
			if k != nil {
				if out := joinedOnDisk(t, dir); len(out.Times) < k.SavedCount {
					t.Fatalf("%s: %d states, the checkpoint counts %d", size, len(out.Times), k.SavedCount)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); left != nil {
				t.Errorf("%s: %q is left", size, left)
			}
			t.Logf("%s: full at %v s, the last checkpoint is %v", size, reached, k != nil)
			if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_REMOUNT, "size=32m"); err != nil {
				t.Fatal(err)
			}
			if err := begin(); err != nil {
				t.Fatal(err)
			}
			view, err := f.View()
			if k != nil && (err != nil || !slices.Equal(view[:2], []float64{k.Time, k.Time + 1./4096})) {
				t.Fatalf("%s: the resumed field begins with %v, %v", size, view[:2], err)
			}
			if err := errors.Join(advance(), run.Close(t.Context())); err != nil {
				t.Fatal(err)
			}
			out := joinedOnDisk(t, dir)
			cells := make([]float64, domain.Cells())
			for i, time := range out.Times {
				err := out.ReadField(t.Context(), "phi", i, domain.Box(), cells)
				for n, got := range cells {
					if want := time + float64(n)/4096; err != nil || got != want || time != float64(i) {
						t.Fatalf("%s: cell %d of state %d at %v s is %v, %v", size, n, i, time, got, err)
					}
				}
			}
			if len(out.Times) != 7 {
				t.Errorf("%s: %d states", size, len(out.Times))
			}
			if err := f.Free(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
