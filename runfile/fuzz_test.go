//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// sessionFiles runs a short session and returns its segment, which grew from
// checkpoint to checkpoint and holds a field, and its checkpoint, which names a bundle.
func sessionFiles(dir string) (segment, checkpoint []byte, err error) {
	ctx := context.Background()
	domain := grid.Domain{Size: [3]int{5, 4, 3}, Spacing: [3]float64{1, 1, 1}}
	phi, err := field.New[float64](domain, domain.Box())
	if err != nil {
		return nil, nil, err
	}
	s, err := Open(ctx, comm.Self(), Config{
		Directory: dir, Name: "run",
		Layout: Layout{Unknowns: []Unknown{
			{Name: "n", Kind: Scalar, Unit: "m^-3"},
			{Name: "phi", Kind: Field, Domain: domain},
		}},
		Initial:    []float64{1},
		TimePoints: []float64{0, 1, 2, 3},
		Updates:    []string{"mean"},
		Fields:     []field.Named{{ID: "phi", Field: phi}},
		Bundle:     func(context.Context) (string, error) { return "bundles/step_1", nil },
		Checkpoint: CheckpointConfig{Steps: 1},
	})
	if err != nil {
		return nil, nil, err
	}
	s.SetUpdate("mean", []float64{1, 2})
	err = s.SaveState(ctx, []float64{1})
	for i := 1; err == nil && !s.Done(); i++ {
		time := s.NextTime()
		s.Attempt(Attempt{Time: time, StepLength: 1, Outcome: strings.Repeat("too large ", 9*i)})
		s.Attempt(Attempt{Time: time, StepLength: 1, Accepted: true, Iterations: []Iteration{{1, 3}, {1e-3, 4}}})
		state := []float64{1 / time}
		if err = s.SaveState(ctx, state); err == nil {
			_, err = s.Checkpoint(ctx, state, func() (record.Record, error) { return record.Of("length", 1.0) })
		}
	}
	if err = errors.Join(err, s.Close(ctx)); err != nil {
		return nil, nil, err
	}
	segment, err = os.ReadFile(SegmentFile(dir, "run", 1))
	if err != nil {
		return nil, nil, err
	}
	checkpoint, err = os.ReadFile(CheckpointFile(dir, "run"))
	return segment, checkpoint, err
}

// readEverything does with a file all that readers do. It returns what they say about
// it, errors and warnings; part of a field that can be read is.
func readEverything(ctx context.Context, path string) (said []error) {
	warn := Warn(func(text string) { said = append(said, fmt.Errorf("warning: %s", text)) })
	_, err := ReadSettings(ctx, path, warn)
	said = append(said, err)

	for _, files := range [][]string{{path}, {path, path}} {
		s, err := ReadOutput(ctx, files, warn)
		said = append(said, err)
		if err != nil || len(s.Times) == 0 {
			continue
		}
		for _, u := range s.Layout.Unknowns {
			if box, ok := corner(&u); ok {
				said = append(said, s.ReadField(ctx, u.Name, len(s.Times)-1, box, make([]float64, box.Cells())))
			}
		}
	}
	for _, opts := range [][]Option{{warn}, {warn, State(1)}} {
		k, err := ReadState(ctx, path, opts...)
		said = append(said, err)
		if err != nil {
			continue
		}
		for _, u := range k.Layout.Unknowns {
			if box, ok := corner(&u); ok && k.Bundles[u.Name] == "" {
				said = append(said, k.ReadField(ctx, u.Name, box, make([]float64, box.Cells())))
			}
		}
	}
	_, faults, err := Inspect(ctx, path, warn)
	said = append(append(said, err), faults...)
	_, faults, err = Faults(ctx, path, warn)
	said = append(append(said, err), faults...)
	_, err = Verify(ctx, path, warn)
	return append(said, err)
}

// corner is the last part of a field, few cells of it.
func corner(u *Unknown) (box grid.Box, ok bool) {
	if u.Kind != Field {
		return box, false
	}
	for i, n := range u.Domain.Size {
		box.Size[i] = min(n, 8)
		box.Low[i] = n - box.Size[i]
	}
	return box, true
}

// FuzzRead reads whatever bytes a file has. A crash of the library ends the fuzzer, too,
// and leaves the input behind.
func FuzzRead(f *testing.F) {
	golden, err := filepath.Glob("testdata/golden/*.h5")
	if err != nil || len(golden) == 0 {
		f.Fatal("no golden files:", err)
	}
	for _, path := range golden {
		content, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(content)
	}
	segment, checkpoint, err := sessionFiles(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	for _, content := range [][]byte{segment, checkpoint} {
		f.Add(content)
		f.Add(content[:len(content)-1])
		f.Add(content[:len(content)/2])
	}
	f.Add([]byte("\x89HDF\r\n\x1a\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "run.h5")
		spoil(t, path, content)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		said := readEverything(t.Context(), path)
		runtime.ReadMemStats(&after)
		for _, err := range said {
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%v does not name the file", err)
			}
		}
		if n := h5.OpenObjects(); n != 0 {
			t.Errorf("%d objects are open", n)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 512<<20 {
			t.Errorf("%d bytes were allocated for a file of %d", n, len(content))
		}
	})
}

// The seeds that a session wrote are what FuzzRead wants them to be.
func TestSeedsOfASession(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	if _, _, err := sessionFiles(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{SegmentFile(dir, "run", 1), CheckpointFile(dir, "run")} {
		_, faults, err := Faults(t.Context(), path, noWarnings(t))
		if err = errors.Join(append(faults, err)...); err != nil {
			t.Error(err)
		}
	}
	s, err := ReadOutput(t.Context(), []string{SegmentFile(dir, "run", 1)}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Times) != 4 || s.Statistics.Attempts() != 6 || len(s.Statistics.Outcome[4]) != 270 {
		t.Errorf("the segment has the times %v and the outcomes %q", s.Times, s.Statistics.Outcome)
	}
	k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
	if err != nil || k.Bundles["phi"] == "" || !k.HasStepper {
		t.Errorf("the checkpoint is %+v, %v", k, err)
	}
}
