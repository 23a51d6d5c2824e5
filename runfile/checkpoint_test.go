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
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func withFS(fsys vfs.FS) Option {
	return func(o *options) error { o.fsys = fsys; return nil }
}

// checkpointAt is a checkpoint with all that one can hold.
func checkpointAt(t *testing.T, time float64) *Checkpoint {
	t.Helper()
	s := everything(t, 1)
	return &Checkpoint{
		Settings: s.Settings, Layout: s.Layout, Time: time, State: s.States[0],
		Segment: 3, SavedCount: 17,
		Summary:    Summary{Attempted: 9, Accepted: 7, NonlinearIterations: 20, LinearIterations: 200, WallTime: 1.5},
		Stepper:    mustRecord(t, "type", "bdf", "step_length", 0.25, "history", everyKind(t)),
		HasStepper: true,
		Updates:    []UpdateState{{"flux", []float64{1, 2, 3}}, {"mean", []float64{4}}},
	}
}

// smallCheckpoint is one whose time tells it from others.
func smallCheckpoint(time float64) *Checkpoint {
	return &Checkpoint{
		Layout: Layout{Unknowns: []Unknown{{Name: "n", Kind: Scalar}}},
		Time:   time, State: []float64{time},
	}
}

func TestCheckpointsAreReadAsWritten(t *testing.T) {
	for name, change := range map[string]func(k *Checkpoint){
		"with everything":        func(*Checkpoint) {},
		"without a stepper":      func(k *Checkpoint) { k.HasStepper, k.Stepper = false, smallCheckpoint(0).Stepper },
		"with an empty stepper":  func(k *Checkpoint) { k.Stepper = smallCheckpoint(0).Stepper },
		"without updates":        func(k *Checkpoint) { k.Updates = nil },
		"with an empty update":   func(k *Checkpoint) { k.Updates[1].State = nil },
		"with a field elsewhere": func(k *Checkpoint) { k.Bundles = map[string]string{"phi": "bundles/step_7"} },
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			dir := t.TempDir()
			k := checkpointAt(t, 2.5)
			change(k)
			if err := WriteCheckpoint(t.Context(), dir, "run", k, Fields(fieldValues)); err != nil {
				t.Fatal(err)
			}
			got, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "checkpoint", got, k)
			if got.Previous {
				t.Error("it is said to be the previous one")
			}
			state, err := ReadState(t.Context(), CheckpointFile(dir, "run"), noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			same(t, "state", state, k)
			values, want := make([]float64, box.Cells()), make([]float64, box.Cells())
			err = got.ReadField(t.Context(), "phi", box.Box(), values)
			if k.Bundles != nil {
				if !errors.Is(err, ErrNoState) || !strings.Contains(err.Error(), "bundles/step_7") {
					t.Errorf("the field of a bundle: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := fieldValues(t.Context(), "phi", 0, box.Box(), want); err != nil {
				t.Fatal(err)
			}
			same(t, "field", values, want)
		})
	}
}

// begin makes files as a run may find them. last and previous are the times of the
// checkpoints that can be read, 0 for none.
var begin = map[string]struct {
	last, previous float64
	make           func(t *testing.T, dir string)
}{
	"nothing there": {0, 0, func(*testing.T, string) {}},
	"one checkpoint": {1, 0, func(t *testing.T, dir string) {
		put(t, dir, 1)
	}},
	"two checkpoints": {2, 1, func(t *testing.T, dir string) {
		put(t, dir, 1)
		put(t, dir, 2)
	}},
	"killed between the renames": {0, 1, func(t *testing.T, dir string) {
		put(t, dir, 1)
		move(t, CheckpointFile(dir, "run"), PreviousFile(dir, "run"))
	}},
	"killed with the previous one aside": {1, 0, func(t *testing.T, dir string) {
		put(t, dir, 1)
		move(t, CheckpointFile(dir, "run"), temporary(PreviousFile(dir, "run")))
		put(t, dir, 1)
	}},
	"the last one is not HDF5": {0, 1, func(t *testing.T, dir string) {
		put(t, dir, 1)
		move(t, CheckpointFile(dir, "run"), PreviousFile(dir, "run"))
		spoil(t, CheckpointFile(dir, "run"), []byte("not HDF5"))
	}},
	"the last one is cut": {0, 1, func(t *testing.T, dir string) {
		put(t, dir, 1)
		put(t, dir, 2)
		if err := os.Truncate(CheckpointFile(dir, "run"), 900); err != nil {
			t.Fatal(err)
		}
	}},
	"a temporary file was left": {1, 0, func(t *testing.T, dir string) {
		put(t, dir, 1)
		spoil(t, temporary(CheckpointFile(dir, "run")), []byte("half a fi"))
	}},
}

func put(t *testing.T, dir string, time float64, opts ...Option) {
	t.Helper()
	if err := WriteCheckpoint(t.Context(), dir, "run", smallCheckpoint(time), opts...); err != nil {
		t.Fatal(err)
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func spoil(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// times gives the times of the checkpoints that can be read under the two names, and
// what ReadCheckpoint makes of them.
func checkpointTimes(t *testing.T, dir string) (last, previous, read float64) {
	t.Helper()
	at := func(path string) float64 {
		k, err := ReadState(t.Context(), path)
		if err != nil {
			return 0
		}
		return k.Time
	}
	k, err := ReadCheckpoint(t.Context(), dir, "run", Warn(func(string) {}))
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	if k != nil {
		read = k.Time
	}
	return at(CheckpointFile(dir, "run")), at(PreviousFile(dir, "run")), read
}

// A program that is killed makes no further call: from one on, all of them fail.
func TestKilledAtAnyStepACheckpointIsLeft(t *testing.T) {
	for name, b := range begin {
		t.Run(name, func(t *testing.T) {
			closed(t)
			for i := 1; ; i++ {
				dir := t.TempDir()
				b.make(t, dir)
				in := vfs.NewInject(vfs.OS)
				in.FailFrom(i, syscall.EIO)
				err := WriteCheckpoint(t.Context(), dir, "run", smallCheckpoint(3), withFS(in))
				last, previous, read := checkpointTimes(t, dir)
				what := fmt.Sprintf("killed at step %d, %s: last %v, previous %v, read %v", i, strings.Join(in.Trace(), "; "), last, previous, read)
				if newest := max(b.last, b.previous); read != newest && read != 3 {
					t.Fatalf("%s; the newest before was %v", what, newest)
				}
				if last == 3 && b.last != 0 && previous != b.last {
					t.Fatalf("%s; %v should be the previous one", what, b.last)
				}
				if err == nil {
					if i < 6 || read != 3 {
						t.Fatalf("%s: no error", what)
					}
					break
				}
				// The next checkpoint gets through, and takes what was left away.
				put(t, dir, 4)
				if _, _, read := checkpointTimes(t, dir); read != 4 {
					t.Fatalf("%s; after the next one %v is read", what, read)
				}
				for _, left := range []string{temporary(CheckpointFile(dir, "run")), temporary(PreviousFile(dir, "run"))} {
					if _, err := os.Lstat(left); err == nil {
						t.Fatalf("%s; %s is left", what, left)
					}
				}
			}
		})
	}
}

// If just one call fails, both files stay, or the new one is there.
func TestAFailureLeavesBothCheckpoints(t *testing.T) {
	for name, b := range begin {
		t.Run(name, func(t *testing.T) {
			closed(t)
			for i := 1; ; i++ {
				dir := t.TempDir()
				b.make(t, dir)
				in := vfs.NewInject(vfs.OS)
				in.FailAt(i, syscall.ENOSPC)
				err := WriteCheckpoint(t.Context(), dir, "run", smallCheckpoint(3), withFS(in))
				if err == nil {
					if i < 6 {
						t.Fatalf("only %d calls", i)
					}
					break
				}
				if !errors.Is(err, syscall.ENOSPC) {
					t.Fatalf("step %d: %v", i, err)
				}
				last, previous, _ := checkpointTimes(t, dir)
				if last != 3 && (last != b.last || previous != b.previous) {
					t.Fatalf("%s: last %v, previous %v; they were %v and %v", strings.Join(in.Trace(), "; "), last, previous, b.last, b.previous)
				}
				if left, err := os.Lstat(temporary(CheckpointFile(dir, "run"))); err == nil && last == 3 {
					t.Fatalf("step %d: %s is left", i, left.Name())
				}
			}
		})
	}
}

func TestWhatIsWrittenTwiceRotates(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	for i := 1.0; i <= 3; i++ {
		put(t, dir, i)
		last, previous, read := checkpointTimes(t, dir)
		if last != i || previous != i-1 || read != i {
			t.Errorf("after %v: last %v, previous %v, read %v", i, last, previous, read)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

func TestThePreviousCheckpointIsTakenWithAWarning(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	put(t, dir, 2)
	spoil(t, CheckpointFile(dir, "run"), []byte("not HDF5"))
	var warnings []string
	k, err := ReadCheckpoint(t.Context(), dir, "run", Warn(func(s string) { warnings = append(warnings, s) }))
	if err != nil {
		t.Fatal(err)
	}
	if k.Time != 1 || !k.Previous || k.File != PreviousFile(dir, "run") {
		t.Errorf("got %+v", k)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], CheckpointFile(dir, "run")) {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestNoCheckpointIsNoneAndUnreadableOnesAreAnError(t *testing.T) {
	closed(t)
	k, err := ReadCheckpoint(t.Context(), filepath.Join(t.TempDir(), "missing"), "run")
	if k != nil || err != nil {
		t.Errorf("where no directory is: %v, %v", k, err)
	}
	for name, b := range map[string]struct {
		files []string
		link  bool
	}{
		"last":             {files: []string{"run.checkpoint.h5"}},
		"previous":         {files: []string{"run.checkpoint.prev.h5"}},
		"both":             {files: []string{"run.checkpoint.h5", "run.checkpoint.prev.h5"}},
		"last dangles":     {files: []string{"run.checkpoint.h5"}, link: true},
		"previous dangles": {files: []string{"run.checkpoint.prev.h5"}, link: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range b.files {
				path := filepath.Join(dir, f)
				if !b.link {
					spoil(t, path, []byte("not HDF5"))
				} else if err := os.Symlink("nowhere", path); err != nil {
					t.Fatal(err)
				}
			}
			k, err := ReadCheckpoint(t.Context(), dir, "run")
			if k != nil || err == nil {
				t.Fatalf("got %v, %v", k, err)
			}
			for _, f := range b.files {
				if !strings.Contains(err.Error(), filepath.Join(dir, f)) {
					t.Errorf("%v does not name %s", err, f)
				}
			}
		})
	}
}

func TestACheckpointThatCantBeLookedAtIsAnError(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	in := vfs.NewInject(vfs.OS)
	in.FailFrom(1, syscall.EACCES)
	if k, err := ReadCheckpoint(t.Context(), dir, "run", withFS(in)); k != nil || !errors.Is(err, syscall.EACCES) {
		t.Errorf("got %v, %v", k, err)
	}
}

// The states of a segment are saved states to resume from.
func TestSavedStates(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	s := everything(t, 3)
	s.Settings = mustRecord(t, "segment", mustRecord(t, "index", 2, "saved_before", 10))
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	for number, want := range map[int]int{0: 0, 1: 1, 2: 2, -1: 2, -3: 0} {
		got, err := ReadState(t.Context(), path, State(number), noWarnings(t))
		if err != nil {
			t.Fatal(err)
		}
		k := &Checkpoint{
			Settings: s.Settings, Layout: s.Layout, Time: s.Times[want], State: s.States[want], Segment: 2, SavedCount: 11 + want,
			Summary: Summary{notKnown, notKnown, notKnown, notKnown, notKnown}, // the file doesn't say what was before it
			Updates: []UpdateState{{"flux", s.Updates[0].States[want]}, {"mean", s.Updates[1].States[want]}},
		}
		same(t, fmt.Sprint("state ", number), got, k)
		one := make([]float64, 1)
		b := box.Box()
		b.Size = [3]int{1, 1, 1}
		if err := got.ReadField(t.Context(), "phi", b, one); err != nil || one[0] != value(want, 0, 0, 0) {
			t.Errorf("field of state %d: %v, %v", number, one, err)
		}
	}
	for _, number := range []int{3, -4} {
		if _, err := ReadState(t.Context(), path, State(number)); !errors.Is(err, ErrNoState) || !strings.Contains(err.Error(), path) {
			t.Errorf("state %d: %v", number, err)
		}
	}
}

func TestCheckpointsThatCantBeWritten(t *testing.T) {
	for name, change := range map[string]func(k *Checkpoint){
		"state too long":   func(k *Checkpoint) { k.State = append(k.State, 1) },
		"two updates":      func(k *Checkpoint) { k.Updates = []UpdateState{{Name: "u"}, {Name: "u"}} },
		"bundle, no field": func(k *Checkpoint) { k.Bundles = map[string]string{"n": "bundles/1"} },
	} {
		t.Run(name, func(t *testing.T) {
			closed(t)
			dir := t.TempDir()
			put(t, dir, 1)
			k := smallCheckpoint(2)
			change(k)
			if err := WriteCheckpoint(t.Context(), dir, "run", k); !errors.Is(err, ErrInput) {
				t.Errorf("got %v", err)
			}
			if last, previous, _ := checkpointTimes(t, dir); last != 1 || previous != 0 {
				t.Errorf("last %v, previous %v", last, previous)
			}
		})
	}
	if err := WriteCheckpoint(t.Context(), t.TempDir(), "a/b", smallCheckpoint(1)); !errors.Is(err, ErrInput) {
		t.Errorf("a run named a/b: %v", err)
	}
}

// A failure in the middle of writing leaves the path as it was.
func TestAtomicOutputKeepsTheOldFile(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "run.h5")
	s := everything(t, 1)
	if err := WriteOutput(t.Context(), path, s, Fields(fieldValues), Atomic()); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; ; i++ {
		in := vfs.NewInject(vfs.OS)
		in.FailAt(i, syscall.EIO)
		err := WriteOutput(t.Context(), path, everything(t, 2), Fields(fieldValues), Atomic(), withFS(in))
		if err == nil {
			if i < 6 {
				t.Fatalf("only %d calls", i)
			}
			break
		}
		after, rerr := os.ReadFile(path)
		if rerr != nil {
			t.Fatal(rerr)
		}
		// After the rename only the sync of the directory can fail.
		renamed := strings.Contains(strings.Join(in.Trace(), "; "), "syncdir")
		if slices.Equal(before, after) == renamed {
			t.Fatalf("%s: the file has changed: %v", strings.Join(in.Trace(), "; "), !slices.Equal(before, after))
		}
		if renamed {
			spoil(t, path, before)
		}
	}
	// So does a field that can't be had.
	old, _ := os.ReadFile(path)
	if err := WriteOutput(t.Context(), path, everything(t, 2), Atomic()); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "unknowns/phi") {
		t.Errorf("without values of the field: %v", err)
	}
	if now, _ := os.ReadFile(path); !slices.Equal(now, old) {
		t.Error("the file has changed")
	}
	if _, err := os.Lstat(temporary(path)); err == nil {
		t.Error("the temporary file is left")
	}
}

// What is written in place and fails is refused by readers.
func TestAnUnfinishedFileIsTorn(t *testing.T) {
	closed(t)
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(t.Context(), path, everything(t, 1)); err == nil {
		t.Fatal("nothing gives the field, and no error")
	}
	_, err := ReadOutput(t.Context(), []string{path})
	if !errors.Is(err, ErrTorn) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if h5.OpenObjects() != 0 {
		t.Error("something is open")
	}
}

// What a rename makes the content of a path is on the disk before, and the rename
// afterwards.
func TestTheStepsOfACheckpoint(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	put(t, dir, 1)
	put(t, dir, 2)
	in := vfs.NewInject(vfs.OS)
	put(t, dir, 3, withFS(in))
	var steps []string
	for _, op := range in.Ops() {
		if op.Kind.Reads() || op.Kind == vfs.OpClose || op.Kind == vfs.OpOpen {
			continue
		}
		step := string(op.Kind) + " " + filepath.Base(op.Name)
		if op.To != "" {
			step += " " + filepath.Base(op.To)
		}
		steps = append(steps, step)
	}
	want := []string{
		"remove run.checkpoint.h5.tmp", "create run.checkpoint.h5.tmp", "sync run.checkpoint.h5.tmp",
		"remove run.checkpoint.prev.h5.tmp",
		"rename run.checkpoint.prev.h5 run.checkpoint.prev.h5.tmp",
		"rename_noreplace run.checkpoint.h5 run.checkpoint.prev.h5",
		"rename_noreplace run.checkpoint.h5.tmp run.checkpoint.h5",
		"remove run.checkpoint.prev.h5.tmp",
		"syncdir " + filepath.Base(dir),
	}
	if !slices.Equal(steps, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(steps, "\n"), strings.Join(want, "\n"))
	}
}

// Whether the last checkpoint becomes the previous one depends on the file alone.
func TestWhatIsACheckpoint(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	newer, torn := filepath.Join(dir, "newer.h5"), filepath.Join(dir, "torn.h5")
	for path, edit := range map[string]func(f *h5.File) error{
		newer: attribute("/", "format_version", "0.0.6"),
		torn:  func(f *h5.File) error { return f.DeleteAttribute("/", "complete") },
	} {
		data, err := os.ReadFile("testdata/golden/ours-checkpoint.0.0.5.h5")
		if err == nil {
			err = os.WriteFile(path, data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
		apply(t, path, edit)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no HDF5"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want bool
		err  error
	}{
		{"testdata/golden/checkpoint.0.0.5.h5", true, nil},
		{"testdata/golden/output.0.0.5.h5", false, nil},
		{newer, true, nil},
		{torn, false, nil},
		{text, false, nil},
		{filepath.Join(dir, strings.Repeat("n", 300)), false, syscall.ENAMETOOLONG},
	} {
		if got, err := isCheckpoint(cancelled, c.path); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v; want %v, %v", c.path, got, err, c.want, c.err)
		}
	}
}
