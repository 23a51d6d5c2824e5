//go:build hdf5

package runfile

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// inspect makes an error of the first fault.
func inspect(ctx context.Context, path string, opts ...Option) (*Info, error) {
	i, faults, err := Inspect(ctx, path, opts...)
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	return i, err
}

func TestInspectTellsWhatAnOutputHolds(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := everything(t, 2)
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	i, err := inspect(t.Context(), path, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	if stat, err := os.Stat(path); err != nil || i.Bytes != stat.Size() {
		t.Errorf("%d bytes, %v", i.Bytes, err)
	}
	if i.Version != FormatVersion || !i.Ours || i.Writer != "fieldstone "+Version || i.CodeVersion != Version || i.State != nil {
		t.Errorf("got %+v", i)
	}
	same(t, "layout", i.Layout, s.Layout)
	same(t, "times", i.Times, s.Times)
	same(t, "statistics", i.Statistics, s.Statistics.filled())
	same(t, "updates", i.Updates, []UpdateInfo{{"flux", 2}, {"mean", 2}})
	if !i.Settings.Equal(s.Settings) {
		t.Error("the settings are others")
	}
	shapes := map[string][]int{
		"unknowns/current": {2}, "unknowns/E": {2, 3, 1}, "unknowns/ions": {2, 3, 5}, "unknowns/f": {2, 3, 2, 4},
		"unknowns/hot/radius_1": {2, 2, 4}, "unknowns/hot/radius_2": {2, 3, 2}, "unknowns/hot/radius_3": {2, 3, 2},
		"unknowns/phi": {2, 2, 3, 4},
	}
	for _, u := range i.Unknowns {
		for _, d := range u.Datasets {
			if !slices.Equal(d.Shape, shapes[d.Path]) || d.Bytes == 0 {
				t.Errorf("%s has the shape %v and %d bytes, want %v", d.Path, d.Shape, d.Bytes, shapes[d.Path])
			}
			delete(shapes, d.Path)
		}
		if !u.HasUnit {
			t.Errorf("%s has no unit", u.Name)
		}
	}
	if len(shapes) > 0 {
		t.Errorf("not told of: %v", shapes)
	}
}

func TestInspectTellsWhatACheckpointHolds(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	k := checkpointAt(t, 2.5)
	k.Bundles = map[string]string{"phi": "results/step_4"}
	if err := WriteCheckpoint(t.Context(), dir, "run", k); err != nil {
		t.Fatal(err)
	}
	i, err := inspect(t.Context(), CheckpointFile(dir, "run"), noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	k.State = nil
	same(t, "state", i.State, k)
	last := i.Unknowns[len(i.Unknowns)-1]
	if last.Name != "phi" || last.Bundle != "results/step_4" || last.Datasets != nil {
		t.Errorf("got %+v", last)
	}
	if _, ok := i.Segment(); ok {
		t.Error("a checkpoint is no segment")
	}
}

func TestInspectReadsEveryVersion(t *testing.T) {
	closed(t)
	for _, version := range formats {
		for _, kind := range []string{"output", "checkpoint"} {
			i, err := inspect(t.Context(), filepath.Join("testdata/golden", kind+"."+version+".h5"), noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			want := foreign(t, version, false)
			same(t, version+" layout", i.Layout, want.Layout)
			if i.Version != version || i.Ours || i.Writer != "" || i.CodeVersion != "0.3.0" || len(i.Unknowns) != 4 {
				t.Errorf("got %+v", i)
			}
			if (i.State != nil) != (kind == "checkpoint") {
				t.Errorf("%s %s: state %v", kind, version, i.State)
			}
			for _, u := range i.Unknowns {
				if u.HasUnit != (version >= "0.0.5") || len(u.Datasets) == 0 {
					t.Errorf("%s %s: %+v", kind, version, u)
				}
			}
			if n, ok := i.Segment(); ok != (kind == "output") || ok && n != 2 {
				t.Errorf("%s %s is of segment %d, %v", kind, version, n, ok)
			}
		}
	}
}

// What can be read of a bad file is told.
func TestInspectTellsWhatItCan(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	for name, c := range map[string]struct {
		do   edit
		want error
		told func(i *Info) bool
	}{
		"torn": {func(f *h5.File) error { return f.DeleteAttribute("/", "complete") }, ErrTorn,
			func(i *Info) bool { return i.Version == FormatVersion && i.Writer != "" && i.Bytes > 0 }},
		"a newer version": {attribute("/", "format_version", "0.0.6"), ErrVersion,
			func(i *Info) bool { return i.Version == "0.0.6" && i.Writer != "" }},
		"another kind of file": {func(f *h5.File) error { return f.DeleteAttribute("/", "format_version") }, ErrNotRunFile,
			func(i *Info) bool { return i.Bytes > 0 }},
		"no settings": {unlink("settings"), nil,
			func(i *Info) bool { return len(i.Times) == 2 && len(i.Unknowns) == 6 && i.Statistics.Attempts() == 3 }},
		"an unknown is missing": {unlink("unknowns/E"), nil,
			func(i *Info) bool { return len(i.Unknowns) == 6 && len(i.Updates) == 2 }},
	} {
		t.Run(name, func(t *testing.T) {
			if err := WriteOutput(t.Context(), path, everything(t, 2), Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			apply(t, path, c.do)
			i, err := inspect(t.Context(), path)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
			if !c.told(i) {
				t.Errorf("got %+v", i)
			}
		})
	}
}

func TestFaultsNamesEveryObject(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(t.Context(), path, hashed(t), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	apply(t, path,
		str("settings/run/name", "b"), floats("settings/system/tolerance", []float64{1e-9}),
		unlink("unknowns/E"), unlink("unknowns/phi"), unlink("unknowns/hot/radius_2"),
		floats("solver_statistics/time", []float64{1}, 1), group("update_states/flux"))
	_, faults, err := Faults(t.Context(), path, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"unknowns/E", "unknowns/hot/radius_2", "unknowns/phi", "solver_statistics", "update_states/flux", "settings/system", "settings/run"}
	for i, fault := range faults {
		if i >= len(want) || !strings.Contains(fault.Error(), path+": "+want[i]) {
			t.Errorf("fault %d: %v", i, fault)
		}
	}
	if len(faults) != len(want) {
		t.Errorf("%d faults, want %d", len(faults), len(want))
	}
}

// hashed is everything with settings that have hashes.
func hashed(t *testing.T) *Solution {
	t.Helper()
	system, run := mustRecord(t, "tolerance", 1e-8), mustRecord(t, "name", "a")
	hashes, err := record.Hashes(mustRecord(t, "system", system, "run", run), "system", "run")
	if err != nil {
		t.Fatal(err)
	}
	s := everything(t, 2)
	s.Settings = mustRecord(t, "system", system, "run", run, "hashes", hashes, "setup_hash", hashes.Hash())
	return s
}

func TestFaultsOfACheckpointAreToldOnce(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	path := CheckpointFile(dir, "run")
	apply(t, path, unlink("settings"), unlink("unknowns/n"))
	_, faults, err := Faults(t.Context(), path, noWarnings(t))
	if err != nil || len(faults) != 2 {
		t.Errorf("%v, %v", faults, err)
	}
	put(t, dir, 1)
	apply(t, path, unlink("checkpoint/summary"))
	_, faults, err = Faults(t.Context(), path, noWarnings(t))
	if err != nil || len(faults) != 1 || !strings.Contains(faults[0].Error(), path+": checkpoint/summary") {
		t.Errorf("%v, %v", faults, err)
	}
}

// A field whose numbers are not in the file is noticed, though they are not read.
func TestFieldsMustBeInTheFile(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	const phi = "unknowns/phi"
	for name, do := range map[string]edit{
		"without its chunks": replace(phi, func(f *h5.File) error {
			return h5.CreateDataset[float64](f, phi, h5.Layout{Shape: []int{2, 2, 3, 4}, Chunk: []int{1, 2, 3, 4}})
		}),
		"of another type": replace(phi, func(f *h5.File) error { return h5.Write(f, phi, make([]float32, 48), 2, 2, 3, 4) }),
	} {
		if err := WriteOutput(t.Context(), path, everything(t, 2), Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
		apply(t, path, do)
		_, faults, err := Faults(t.Context(), path, noWarnings(t))
		if err != nil || len(faults) != 1 || !strings.Contains(faults[0].Error(), path+": "+phi) {
			t.Errorf("%s: %v, %v", name, faults, err)
		}
	}
}

func TestWhatCannotBeJudgedIsNoFault(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	newer := filepath.Join(dir, "newer.h5")
	if err := WriteOutput(t.Context(), newer, everything(t, 1), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	apply(t, newer, attribute("/", "format_version", "1.0.0"))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		path string
		want error
	}{
		"nothing there":   {t.Context(), filepath.Join(dir, "none.h5"), os.ErrNotExist},
		"a newer version": {t.Context(), newer, ErrVersion},
		"interrupted":     {cancelled, newer, context.Canceled},
	} {
		i, faults, err := Faults(c.ctx, c.path)
		if i == nil || len(faults) > 0 || !errors.Is(err, c.want) {
			t.Errorf("%s: %v, %v", name, faults, err)
		}
	}
	for _, name := range []string{dir, "inspect_test.go"} {
		if _, faults, err := Faults(t.Context(), name); err != nil || len(faults) != 1 || !strings.Contains(faults[0].Error(), name) {
			t.Errorf("%s: %v, %v", name, faults, err)
		}
	}
}

func TestACheckpointMustCountStatesThatItsSegmentHas(t *testing.T) {
	closed(t)
	// The segment is the second one, with the states at 0 and 0.5 s after 3 others.
	for name, c := range map[string]struct {
		segment, saved int
		time           float64
		object, text   string // empty: nothing is wrong
	}{
		"the last state":            {2, 5, 0.5, "", ""},
		"a step after it":           {2, 5, 0.75, "", ""},
		"an earlier state":          {2, 4, 0.25, "", ""},
		"none of its own":           {2, 3, -1, "", ""},
		"of no segment":             {0, 99, 0.5, "", ""},
		"a state too many":          {2, 6, 0.75, "checkpoint/saved_count", "it is 6"},
		"fewer than are before":     {2, 2, 0.5, "checkpoint/saved_count", "it is 2"},
		"a state from its future":   {2, 5, 0.25, "checkpoint/saved_count", "0.25 s"},
		"a state that is left out":  {2, 4, 0.75, "checkpoint/saved_count", "0.75 s"},
		"a segment that is missing": {7, 5, 0.5, "checkpoint/segment", "segment0007.h5"},
		"a segment that is bad":     {1, 5, 0.5, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := everything(t, 2)
			s.Settings = mustRecord(t, "segment", mustRecord(t, "index", 2, "saved_before", 3))
			if err := WriteOutput(t.Context(), SegmentFile(dir, "run", 2), s, Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			spoil(t, SegmentFile(dir, "run", 1), []byte("torn"))
			k := checkpointAt(t, c.time)
			k.Segment, k.SavedCount = c.segment, c.saved
			if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			last, previous := CheckpointFile(dir, "run"), PreviousFile(dir, "run")
			for _, path := range []string{last, previous} {
				if path == previous {
					move(t, last, previous)
				}
				_, faults, err := Faults(t.Context(), path, noWarnings(t))
				switch {
				case err != nil:
					t.Error(err)
				case c.object == "" && len(faults) > 0:
					t.Errorf("%v", faults)
				case c.object != "" && (len(faults) != 1 || !strings.Contains(faults[0].Error(), path+": "+c.object) || !strings.Contains(faults[0].Error(), c.text)):
					t.Errorf("%v", faults)
				}
			}
		})
	}
}

// What is wrong with a segment is said of it, and not of its checkpoints.
func TestACheckpointBesideABadSegment(t *testing.T) {
	closed(t)
	for name, do := range map[string]edit{
		"without an unknown": unlink("unknowns/E"),
		"without settings":   unlink("settings"),
		"of a newer version": attribute("/", "format_version", "0.0.6"),
		"torn":               func(f *h5.File) error { return f.DeleteAttribute("/", "complete") },
		"without times":      unlink("time"),
	} {
		dir := t.TempDir()
		s := everything(t, 2)
		s.Settings = mustRecord(t, "segment", mustRecord(t, "index", 2, "saved_before", 3))
		if err := WriteOutput(t.Context(), SegmentFile(dir, "run", 2), s, Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
		apply(t, SegmentFile(dir, "run", 2), do)
		k := checkpointAt(t, 0.5)
		k.Segment, k.SavedCount = 2, 5
		if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
		if _, faults, err := Faults(t.Context(), CheckpointFile(dir, "run"), noWarnings(t)); err != nil || len(faults) > 0 {
			t.Errorf("%s: %v, %v", name, faults, err)
		}
	}
}

// A copy of a checkpoint, put away without the output of its run, is as good.
func TestACheckpointByItselfIsGood(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	if err := WriteCheckpoint(t.Context(), dir, "run", checkpointAt(t, 2.5), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	if _, faults, err := Faults(t.Context(), CheckpointFile(dir, "run"), noWarnings(t)); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}

func TestFaultsStreamsLargeUnknowns(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	const n = transferBytes / 8 / 2
	s := &Solution{Layout: Layout{R: []float64{0, 1}, Unknowns: []Unknown{{Name: "n", Kind: Radial, Components: n}}}}
	for i := range 5 {
		s.Times, s.States = append(s.Times, float64(i)), append(s.States, make([]float64, n))
	}
	if err := WriteOutput(t.Context(), path, s); err != nil {
		t.Fatal(err)
	}
	if _, faults, err := Faults(t.Context(), path); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}

func TestOutlineIsTheOutputWithoutStates(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a.h5"), filepath.Join(dir, "b.h5")}
	for i, file := range files {
		s := everything(t, 3)
		start := float64(i) * 0.75 // the state at 1 s is repeated
		for k := range s.Times {
			s.Times[k] += start + float64(i)*0.25
		}
		s.Settings = mustRecord(t, "segment", mustRecord(t, "index", i+1, "start_time", start))
		if err := WriteOutput(t.Context(), file, s, Fields(fieldValues)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := ReadOutput(t.Context(), files, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Outline(t.Context(), files, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	for i, state := range got.States {
		if state != nil {
			t.Errorf("state %d is in memory", i)
		}
	}
	got.States = want.States
	same(t, "outline", got, want)
	origins := []origin{{files[0], 0, ""}, {files[0], 1, ""}, {files[1], 0, ""}, {files[1], 1, ""}, {files[1], 2, ""}}
	for i, o := range origins {
		if file, n := got.Origin(i); file != o.file || n != o.index {
			t.Errorf("state %d is number %d of %s, want %v", i, n, file, o)
		}
	}
	for _, i := range []int{-1, 5} {
		if file, _ := got.Origin(i); file != "" {
			t.Errorf("state %d is in %s", i, file)
		}
	}
	value := make([]float64, 1)
	if err := got.ReadField(t.Context(), "phi", 3, grid.Box{Size: [3]int{1, 1, 1}}, value); err != nil || value[0] != 1 {
		t.Errorf("a cell of phi: %v, %v", value, err)
	}

	// What was joined is of no segment, though it has the settings of one.
	joined := filepath.Join(dir, "joined.h5")
	if err := WriteOutput(t.Context(), joined, want); err != nil {
		t.Fatal(err)
	}
	for file, number := range map[string]int{files[0]: 1, files[1]: 2, joined: 0} {
		i, err := inspect(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if n, ok := i.Segment(); n != number || ok != (number > 0) {
			t.Errorf("%s is of segment %d, %v", file, n, ok)
		}
	}
}

func TestOutlineRefusesWhatReadOutputDoes(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	sound := filepath.Join(dir, "sound.h5")
	if err := WriteOutput(t.Context(), sound, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(dir, "broken.h5")
	if err := WriteOutput(t.Context(), broken, everything(t, 2), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	apply(t, broken, unlink("unknowns/ions"))
	for name, c := range map[string]struct {
		files []string
		want  error
	}{
		"none":           {nil, ErrInput},
		"a checkpoint":   {[]string{CheckpointFile(dir, "run")}, ErrNotOutput},
		"one twice":      {[]string{sound, sound}, ErrNotOneRun},
		"a broken one":   {[]string{broken}, os.ErrNotExist},
		"a hostile one":  {[]string{"testdata/hostile/huge_time.h5"}, h5.ErrTooLarge},
		"a missing file": {[]string{filepath.Join(dir, "none.h5")}, os.ErrNotExist},
	} {
		if _, err := Outline(t.Context(), c.files, noWarnings(t)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := ReadOutput(t.Context(), c.files, noWarnings(t)); !errors.Is(err, c.want) {
			t.Errorf("%s is read: %v", name, err)
		}
	}
}

func TestHostileFilesHaveFaults(t *testing.T) {
	closed(t)
	files, err := filepath.Glob("testdata/hostile/*.h5")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		_, faults, err := Faults(t.Context(), file)
		if err != nil {
			t.Errorf("%s can't be judged: %v", file, err)
		}
		if sound := strings.HasSuffix(file, "sound.h5"); sound != (len(faults) == 0) {
			t.Errorf("%s: %v", file, faults)
		}
		for _, f := range faults {
			var named *FileError
			if !errors.As(f, &named) || named.File != file || named.Object == "" && !errors.Is(f, h5.ErrFormat) {
				t.Errorf("%v: found %+v", f, named)
			}
		}
	}
}

func TestRunOf(t *testing.T) {
	for file, want := range map[string]string{
		"a.checkpoint.h5": "./a", "x/y/a b.checkpoint.prev.h5": "x/y//a b", "/a.checkpoint.h5": "//a",
		"a.h5": "", ".checkpoint.h5": "", "a.segment0001.h5": "", "a.checkpoint.h5.tmp": "",
	} {
		got := ""
		if dir, name, ok := runOf(file); ok {
			got = dir + "/" + name
		}
		if got != want {
			t.Errorf("%s is of %q, want %q", file, got, want)
		}
	}
}

func TestPrecedes(t *testing.T) {
	if precedes(nil, 1) || precedes([]float64{1}, 1) || !precedes([]float64{0.5, 2}, 1) || precedes([]float64{0}, math.NaN()) {
		t.Error("a time is before a start if it is less")
	}
}
