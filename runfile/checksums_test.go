//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// sumsPython runs the script about checksums.
func sumsPython(t *testing.T, args ...string) string {
	t.Helper()
	return runScript(t, "checksums.py", args...)
}

// summed makes files of every kind: outputs with everything, fields in several chunks
// among them, a checkpoint, and those of sessions, with fields in the files and in bundles.
func summed(t *testing.T) map[string]string {
	t.Helper()
	ctx, dir := t.Context(), t.TempDir()
	planes := func(o *options) error { o.chunkBytes = box.Size[0] * box.Size[1] * 8; return nil }
	files := map[string]string{}
	for name, opts := range map[string][]Option{"output": {planes}, "extendible output": {Extendible()}} {
		files[name] = filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".h5")
		if err := WriteOutput(ctx, files[name], everything(t, 3), append(opts, Fields(fieldValues))...); err != nil {
			t.Fatal(err)
		}
	}
	k := checkpointAt(t, 2.5)
	k.NonFinite = map[string]int64{"phi": 3}
	if err := WriteCheckpoint(ctx, dir, "alone", k, Fields(fieldValues), planes); err != nil {
		t.Fatal(err)
	}
	files["checkpoint"] = CheckpointFile(dir, "alone")
	sub := filepath.Join(dir, "session")
	if _, _, err := sessionFiles(sub); err != nil {
		t.Fatal(err)
	}
	files["segment"], files["checkpoint with bundles"] = SegmentFile(sub, "run", 1), CheckpointFile(sub, "run")
	cells := filepath.Join(dir, "cells")
	s := newCellSolver(t, seriesDomain.Box(), 0, false)
	cfg := s.config(cells)
	store := smallDisk(cfg, vfs.OS)
	store.chunkBytes *= 4 // a last chunk that is not full
	run, err := open(ctx, comm.Self(), cfg, store, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	s.advance(ctx, t, run)
	s.free(t)
	files["segment with cells"], files["checkpoint with cells"] = SegmentFile(cells, "run", 1), CheckpointFile(cells, "run")
	return files
}

// Every value of a good file has a checksum, which another program finds right too.
func TestEverythingHasAChecksum(t *testing.T) {
	closed(t)
	files := summed(t)
	for name, path := range files {
		i, faults, err := Faults(t.Context(), path, noWarnings(t))
		if err != nil || faults != nil {
			t.Errorf("%s: %v, %v", name, faults, err)
		}
		if i.ChecksumAlgorithm != "CRC-64/NVME" || i.Checksums < 10 || i.Unsummed != nil {
			t.Errorf("%s: %d checksums of %q, none of %q", name, i.Checksums, i.ChecksumAlgorithm, i.Unsummed)
		}
		sumsPython(t, "check", path)
	}
}

// Files with checksums that were made once stay readable, and right.
func TestGoldenChecksums(t *testing.T) {
	closed(t)
	const output, checkpoint = "testdata/golden/ours-output-sums.0.0.5.h5", "testdata/golden/ours-checkpoint-sums.0.0.5.h5"
	s, err := ReadOutput(t.Context(), []string{output}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "output", s, everything(t, 2))
	k, err := ReadState(t.Context(), checkpoint, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "checkpoint", k, checkpointAt(t, 2.5))
	for path, want := range map[string]int{output: 37, checkpoint: 17} {
		i, faults, err := Faults(t.Context(), path, noWarnings(t))
		if err != nil || faults != nil || i.Unsummed != nil || i.Checksums != want {
			t.Errorf("%s: %v, %v, %d checksums, none of %q", path, faults, err, i.Checksums, i.Unsummed)
		}
		sumsPython(t, "check", path)
	}
}

// A value that changes in a file is found out by those who read it, and named.
func TestEveryChangedValueIsFound(t *testing.T) {
	closed(t)
	ctx := t.Context()
	for name, path := range summed(t) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			tried := 0
			for line := range strings.Lines(sumsPython(t, "damage", path, dir)) {
				number, object, _ := strings.Cut(strings.TrimSpace(line), " ")
				if strings.HasSuffix(object, "/nan") {
					continue // in records one NaN is as good as another
				}
				ofSums := strings.HasPrefix(object, sumsGroup)
				copied := filepath.Join(dir, number+".h5")
				_, faults, err := Faults(ctx, copied, Warn(func(string) {}))
				if err != nil {
					t.Errorf("%s: %v", object, err)
				}
				found := slices.ContainsFunc(faults, func(f error) bool { return errors.Is(f, ErrChecksum) })
				named := slices.ContainsFunc(faults, func(f error) bool { return namesObject(f, object) })
				if len(faults) == 0 || !named && !ofSums {
					t.Errorf("%s: the faults are %v", object, faults)
				}
				// Others may see first that the value is an impossible one.
				if strings.HasPrefix(object, "unknowns/") || strings.HasPrefix(object, "update_states/") || strings.HasPrefix(object, fieldSumsGroup) {
					if !found || !strings.Contains(errors.Join(faults...).Error(), "saved state ") {
						t.Errorf("%s: the faults are %v", object, faults)
					}
				}
				if isScale := !strings.Contains(object, "/") && object != "time"; !isScale && !strings.Contains(object, "unknowns/phi") && !strings.Contains(object, "unknowns/heat") && !ofSums {
					if err := readWhole(ctx, copied, strings.HasPrefix(name, "checkpoint")); err == nil {
						t.Errorf("%s: the file is read", object)
					}
				}
				tried++
			}
			if tried < 10 {
				t.Errorf("%d datasets were changed", tried)
			}
		})
	}
}

// namesObject reports whether an error names an object, or the record that has it.
func namesObject(err error, object string) bool {
	for path := object; path != ""; path = parentName(path) {
		if strings.Contains(err.Error(), ": "+path+": ") || strings.Contains(err.Error(), ": "+path+"/") {
			return true
		}
	}
	return false
}

func readWhole(ctx context.Context, path string, checkpoint bool) error {
	quiet := Warn(func(string) {})
	if checkpoint {
		_, err := ReadState(ctx, path, quiet)
		return err
	}
	_, err := ReadOutput(ctx, []string{path}, quiet)
	return err
}

// flip changes a byte of a number of a dataset in a file, the last one of saved state k.
func flip(t testing.TB, path, object string, k int) {
	t.Helper()
	f, err := h5.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := f.Pieces(object, k, 1)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	p := pieces[len(pieces)-1]
	n := int64(1)
	for axis, m := range p.Count {
		if axis > 0 || p.Start[0] == k {
			n *= int64(m)
		}
	}
	if p.Start[0] < k { // a chunk of several states
		n = int64(k - p.Start[0] + 1)
		for _, m := range p.Count[1:] {
			n *= int64(m)
		}
	} else if len(p.Count) > 0 && p.Count[0] > 1 {
		n /= int64(p.Count[0])
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1)
	at := p.Offset + 8*n - 3
	_, err = file.ReadAt(b, at)
	b[0] ^= 0x10
	if err == nil {
		_, err = file.WriteAt(b, at)
	}
	if err = errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
}

// Chunks of a field are compared when they were read, at once or by parts; a part that is
// read alone isn't.
func TestDamagedCellsAreFound(t *testing.T) {
	closed(t)
	ctx := t.Context()
	path := summed(t)["segment with cells"]
	flip(t, path, "unknowns/phi", 2)
	s, err := ReadOutput(ctx, []string{path}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	whole := seriesDomain.Box()
	cells := make([]float64, whole.Cells())
	read := func(state, low, high int) error {
		b := whole
		b.Low[2], b.Size[2] = low, high-low
		return s.ReadField(ctx, "phi", state, b, cells[:b.Cells()])
	}
	want := path + ": unknowns/phi: the checksum does not match: saved state 2, chunk 1: "
	is := func(what string, err error, want string) {
		t.Helper()
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrChecksum) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", what, err, want)
		}
	}
	is("another state", read(1, 0, 6), "")
	is("the whole", read(2, 0, 6), want)
	is("the chunk", read(2, 3, 6), want)
	is("the other one", read(2, 0, 4), "")
	is("the rest after it", read(2, 4, 6), want)
	is("a part", read(2, 5, 6), "")
	is("a part before it", read(2, 3, 5), "")
	is("the next part", read(2, 5, 6), want)
	is("from within the first chunk", read(2, 2, 6), want)
	corner := grid.Box{Size: [3]int{7, 4, 6}}
	if err := s.ReadField(ctx, "phi", 2, corner, make([]float64, corner.Cells())); err != nil {
		t.Error("a box that is no planes:", err)
	}
	// Joining reads everything, by parts.
	err = WriteOutput(ctx, filepath.Join(t.TempDir(), "joined.h5"), s)
	is("writing it again", err, want)
}

// Files without checksums, and with those of others, are as good as before, and verify
// says so.
func TestFilesWithoutChecksums(t *testing.T) {
	closed(t)
	ctx := t.Context()
	for _, path := range []string{"testdata/golden/output.0.0.5.h5", "testdata/golden/ours-output.0.0.5.h5", "testdata/golden/checkpoint.0.0.3.h5"} {
		i, faults, err := Faults(ctx, path, noWarnings(t))
		if err != nil || faults != nil || i.ChecksumAlgorithm != "" || i.Checksums != 0 {
			t.Errorf("%s: %v, %v, %d of %q", path, faults, err, i.Checksums, i.ChecksumAlgorithm)
		}
		for _, object := range []string{"settings", "layout", "time", "unknowns/f"} {
			if !slices.Contains(i.Unsummed, object) {
				t.Errorf("%s: no word of %s in %q", path, object, i.Unsummed)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(ctx, path, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	editFile(t, path, func(f *h5.File) error {
		return errors.Join(f.SetAttributeString(sumsGroup, algorithmAttribute, "MD5"), h5.Write(f, sumsGroup+"/others", []int8{1}))
	})
	flip(t, path, "unknowns/current", 1)
	i, faults, err := Faults(ctx, path, noWarnings(t))
	if err != nil || faults != nil || i.ChecksumAlgorithm != "MD5" || i.Checksums != 0 || !slices.Contains(i.Unsummed, "unknowns/phi") {
		t.Errorf("another algorithm: %v, %v, %d of %q, none of %q", faults, err, i.Checksums, i.ChecksumAlgorithm, i.Unsummed)
	}
	// Datasets that another program has added have none.
	if err := WriteOutput(ctx, path, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	editFile(t, path, func(f *h5.File) error {
		return errors.Join(h5.Write(f, "update_states/later", []float64{1, 2}, 2, 1), f.WriteString("settings/note", "x"), f.Unlink(fieldSumsGroup))
	})
	i, faults, err = Faults(ctx, path, noWarnings(t))
	if err != nil || len(faults) != 1 || !strings.Contains(faults[0].Error(), ": settings: the checksum") || !slices.Equal(i.Unsummed, []string{"unknowns/phi", "update_states/later"}) {
		t.Errorf("added: %v, %v, none of %q", faults, err, i.Unsummed)
	}
}

// editFile changes a file that is complete.
func editFile(t testing.TB, path string, do func(f *h5.File) error) {
	t.Helper()
	if err := change(path, do); err != nil {
		t.Fatal(err)
	}
}

// What has a checksum and is gone is found out.
func TestWhatIsGoneIsFound(t *testing.T) {
	closed(t)
	ctx := t.Context()
	files := summed(t)
	for _, object := range []string{"settings/record", "layout", "update_states/flux", "solver_statistics/wall_time", "checkpoint/stepper", "checkpoint/update_states/flux", "non_finite/phi", "non_finite"} {
		from := files["output"]
		if strings.HasPrefix(object, "checkpoint") || strings.HasPrefix(object, "non_finite") {
			from = files["checkpoint"]
		}
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "copy.h5")
		spoil(t, path, content)
		editFile(t, path, func(f *h5.File) error { return f.Unlink(object) })
		_, faults, err := Faults(ctx, path, Warn(func(string) {}))
		if err != nil || !slices.ContainsFunc(faults, func(f error) bool { return namesObject(f, object) }) {
			t.Errorf("%s: %v, %v", object, faults, err)
		}
	}
}

// Groups of checksums that nobody could have written are faults or of no meaning.
func TestOddChecksums(t *testing.T) {
	closed(t)
	ctx := t.Context()
	first := filepath.Join(t.TempDir(), "first.h5")
	if err := WriteOutput(ctx, first, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	put := func(path string, write func(f *h5.File) error) func(f *h5.File) error {
		return func(f *h5.File) error { return errors.Join(f.Unlink(path), write(f)) }
	}
	numbers := func(path string, n ...int) func(f *h5.File) error {
		return put(path, func(f *h5.File) error {
			size := 1
			for _, m := range n {
				size *= m
			}
			return h5.Write(f, path, make([]uint64, size), n...)
		})
	}
	// named replaces the first of some names.
	named := func(path, name string) func(f *h5.File) error {
		return func(f *h5.File) error {
			list, err := f.ReadStrings(path)
			if err != nil {
				return err
			}
			list[0] = name
			return errors.Join(f.Unlink(path), f.WriteStrings(path, list, h5.Fixed))
		}
	}
	for name, tc := range map[string]struct {
		edit func(f *h5.File) error
		want string // "" is no fault
	}{
		"a record that is the root":  {named(recordNamesPath, "/"), recordNamesPath},
		"a record of no name":        {named(recordNamesPath, "settings/"), recordNamesPath},
		"a record that is a dataset": {named(recordNamesPath, "time"), recordNamesPath},
		"a column of the root":       {named(stateNamesPath, "/"), stateNamesPath},
		"a column of a record":       {named(stateNamesPath, "settings"), stateNamesPath},
		"a column of a field":        {named(stateNamesPath, "unknowns/phi"), stateNamesPath},
		"a column of nothing":        {named(stateNamesPath, "unknowns/nothing"), "unknowns/nothing"},
		"a dataset":                  {numbers(sumsGroup, 3), ""},
		"no algorithm":               {func(f *h5.File) error { return f.DeleteAttribute(sumsGroup, algorithmAttribute) }, ""},
		"a number as algorithm":      {func(f *h5.File) error { return h5.SetAttribute(f, sumsGroup, algorithmAttribute, []int64{1}) }, ""},
		"states of a line":           {numbers(stateSumsPath, 4), stateSumsPath},
		"states of other columns":    {numbers(stateSumsPath, 2, 3), stateSumsPath},
		"fewer states":               {numbers(stateSumsPath, 0, 9), ""},
		"states that are floats":     {put(stateSumsPath, func(f *h5.File) error { return h5.Write(f, stateSumsPath, make([]float64, 2), 2, 1) }), stateSumsPath},
		"a scalar":                   {numbers(stateSumsPath), stateSumsPath},
		"a group":                    {put(stateSumsPath, func(f *h5.File) error { return f.CreateGroup(stateSumsPath) }), stateSumsPath},
		"never written": {put(stateSumsPath, func(f *h5.File) error {
			return h5.CreateDataset[uint64](f, stateSumsPath, h5.Layout{Shape: []int{1 << 20, 9}, Chunk: []int{1, 9}})
		}), stateSumsPath},
		"names that are numbers": {numbers(stateNamesPath, 9), stateNamesPath},
		"a name twice": {put(stateNamesPath, func(f *h5.File) error {
			return f.WriteStrings(stateNamesPath, slices.Repeat([]string{"time"}, 9), h5.Fixed)
		}), stateNamesPath},
		"rows of statistics of one column": {numbers(statisticRowsPath, 1, 1), statisticRowsPath},
		"more rows of statistics":          {numbers(statisticRowsPath, 2, 2), statisticRowsPath},
		"statistics end earlier":           {numbers(statisticRowsPath, 1, 2), "solver_statistics"},
		"other records":                    {numbers(recordSumsPath, 1), recordSumsPath},
		"fields of a line":                 {numbers(fieldSumsGroup+"/phi", 2), fieldSumsGroup + "/phi"},
		"fields of more chunks":            {numbers(fieldSumsGroup+"/phi", 2, 9), fieldSumsGroup + "/phi"},
		"fields of fewer states":           {numbers(fieldSumsGroup+"/phi", 1, 1), "unknowns/phi"},
		"no column at all":                 {func(f *h5.File) error { return errors.Join(f.Unlink(stateNamesPath), f.Unlink(stateSumsPath)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.h5")
			spoil(t, path, content)
			editFile(t, path, tc.edit)
			_, faults, err := Faults(ctx, path, noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" && len(faults) > 0 && name != "fewer states" {
				t.Errorf("faults %v", faults)
			}
			if tc.want != "" && !slices.ContainsFunc(faults, func(f error) bool { return errors.Is(f, ErrChecksum) && strings.Contains(f.Error(), tc.want) }) {
				t.Errorf("faults %v, none of %s", faults, tc.want)
			}
			for _, err := range readEverything(ctx, path) {
				if err != nil && !strings.Contains(err.Error(), path) {
					t.Errorf("%v does not name the file", err)
				}
			}
		})
	}
}

// A run passes over a checkpoint of which a value has changed, and the damaged one never
// takes the place of the one that it went on from.
func TestResumePassesOverADamagedValue(t *testing.T) {
	for _, object := range []string{"unknowns/E", "unknowns/phi", "unknowns/heat"} {
		t.Run(object, func(t *testing.T) {
			mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
				ctx, dir := t.Context(), t.TempDir()
				s := newCellSolver(t, cuts["as it is done"](c.Size())[c.Rank()], 1, false)
				cfg := s.config(dir)
				begin := func() (*Session, error) { return open(ctx, c, cfg, smallDisk(cfg, vfs.OS), newClock().now) }
				run, err := begin()
				if err != nil {
					t.Fatal(err)
				}
				s.advance(ctx, t, run)
				onRoot(t, c, func() { flip(t, CheckpointFile(dir, "run"), object, 0) })
				run, err = begin()
				if err != nil {
					t.Fatal(err)
				}
				if start := run.Start(); !start.Resumed || start.Time != 4 || filepath.Base(start.File) != "run.checkpoint.prev.h5" {
					t.Fatalf("the run goes on from %v s of %s", start.Time, start.File)
				}
				s.check(t, "resumed", 4)
				s.advance(ctx, t, run)
				onRoot(t, c, func() {
					for _, path := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run"), SegmentFile(dir, "run", 1), SegmentFile(dir, "run", 2)} {
						if _, err := Verify(ctx, path, noMPIWarnings(t)); err != nil && !errors.Is(err, os.ErrNotExist) {
							t.Error(err)
						}
					}
					if _, err := os.Stat(PreviousFile(dir, "run")); err != nil {
						t.Error("there is no checkpoint before the last one:", err)
					}
					checkCellsIn(t, dir, 0, 1, 2, 3, 4, 5)
				})
				s.free(t)
			})
		})
	}
}

func noMPIWarnings(t *mpitest.T) Option {
	return Warn(func(text string) { t.Errorf("warning: %s", text) })
}

// onRoot does something on rank 0, while the others wait.
func onRoot(t *mpitest.T, c *comm.Comm, do func()) {
	t.Helper()
	if c.Rank() == 0 {
		do()
	}
	if err := c.Agree(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// Where all checkpoints are damaged all ranks have the error, and no file changes.
func TestAllCheckpointsAreDamaged(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 0, false)
		cfg := s.config(dir)
		run, err := open(ctx, c, cfg, smallDisk(cfg, vfs.OS), newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		s.advance(ctx, t, run)
		for n, objects := range [][2]string{{"unknowns/phi", "unknowns/heat"}, {"unknowns/E", "unknowns/E"}} {
			onRoot(t, c, func() {
				flip(t, CheckpointFile(dir, "run"), objects[0], 0)
				flip(t, PreviousFile(dir, "run"), objects[1], 0)
			})
			_, err = open(ctx, c, cfg, smallDisk(cfg, vfs.OS), newClock().now)
			if !errors.Is(err, ErrChecksum) || !errors.Is(err, ErrResume) && !errors.Is(err, ErrUnreadable) {
				t.Errorf("%d: %v", n, err)
			}
			for _, want := range append(objects[:], "run.checkpoint.h5", "run.checkpoint.prev.h5") {
				if !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("%d: no word of %s: %v", n, want, err)
				}
			}
			sameOnAllRanks(t, c, "open", err)
		}
		s.free(t)
	})
}

// Checkpoints that begin as clones of those before have the checksums of what they have,
// whatever changes from one to the next.
func TestChecksumsOfClonedCheckpoints(t *testing.T) {
	closed(t)
	ctx, dir := t.Context(), t.TempDir()
	o, err := newOptions([]Option{noWarnings(t)})
	if err != nil {
		t.Fatal(err)
	}
	w := newCheckpointWriter(dir, "run", o)
	for n, change := range []func(k *Checkpoint){
		func(*Checkpoint) {},
		func(k *Checkpoint) { k.NonFinite = map[string]int64{} },
		func(k *Checkpoint) { k.NonFinite = map[string]int64{"E": 2, "f": 0} },
		func(k *Checkpoint) { k.Bundles["phi"] = strings.Repeat("long/", 30) },
		func(k *Checkpoint) { k.Updates[0].State = []float64{1, 2, 3, 4} },
		func(k *Checkpoint) { k.Stepper = mustRecord(t, "other", []int64{4, 5}, "text", "x") },
		func(k *Checkpoint) { k.HasStepper = false },
		func(*Checkpoint) {},
	} {
		k := checkpointAt(t, 2.5+float64(n))
		k.Bundles = map[string]string{"phi": "bundles/step_1"}
		k.SavedCount += n
		for i := range k.State {
			k.State[i] += float64(n)
		}
		change(k)
		if err := w.write(ctx, k); err != nil {
			t.Fatal(n, err)
		}
		i, faults, err := Faults(ctx, CheckpointFile(dir, "run"), noWarnings(t))
		if err != nil || faults != nil || i.Unsummed != nil || i.Checksums < 10 {
			t.Errorf("checkpoint %d: %v, %v, %d checksums, none of %q", n, faults, err, i.Checksums, i.Unsummed)
		}
	}
}

// A file has its checksums before it is marked as complete: whatever a kill leaves, no
// file that is complete has values without them.
func TestChecksumsComeBeforeTheMark(t *testing.T) {
	closed(t)
	seen, copied := 0, filepath.Join(t.TempDir(), "copy.h5")
	completing = func(path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spoil(t, copied, content)
		editFile(t, copied, func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []uint8{1}) })
		i, faults, err := Faults(t.Context(), copied, noWarnings(t))
		if err != nil || faults != nil || i.Unsummed != nil || i.ChecksumAlgorithm == "" {
			t.Errorf("%s: %v, %v, none of %q", path, faults, err, i.Unsummed)
		}
		seen++
	}
	defer func() { completing = nil }()
	summed(t)
	if seen < 10 {
		t.Errorf("%d files were completed", seen)
	}
}

// A run doesn't go on after a segment of which a value has changed: the output could not
// be joined.
func TestADamagedSegmentIsNotGoneOnAfter(t *testing.T) {
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, c *comm.Comm) {
		ctx, dir := t.Context(), t.TempDir()
		s := newCellSolver(t, cuts["x"](c.Size())[c.Rank()], 0, false)
		cfg := s.config(dir)
		run, err := open(ctx, c, cfg, smallDisk(cfg, vfs.OS), newClock().now)
		if err != nil {
			t.Fatal(err)
		}
		s.advance(ctx, t, run)
		onRoot(t, c, func() { flip(t, SegmentFile(dir, "run", 1), "unknowns/E", 1) })
		_, err = open(ctx, c, cfg, smallDisk(cfg, vfs.OS), newClock().now)
		if !errors.Is(err, ErrChecksum) || !errors.Is(err, ErrResume) || !strings.Contains(fmt.Sprint(err), "run.segment0001.h5: unknowns/E") {
			t.Error(err)
		}
		sameOnAllRanks(t, c, "open", err)
		s.free(t)
	})
}
