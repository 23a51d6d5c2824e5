//go:build hdf5

package runfile

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

// ofSession returns settings that name a session, as the check of a clone wants them.
func ofSession(t testing.TB, r record.Record, session string) record.Record {
	t.Helper()
	environment, err := record.Of(sessionKey, session)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = r.With("environment", environment); err != nil {
		t.Fatal(err)
	}
	return r
}

func testWriter(t testing.TB, dir string, fsys vfs.FS) *checkpointWriter {
	t.Helper()
	o, err := newOptions([]Option{withFS(fsys)})
	if err != nil {
		t.Fatal(err)
	}
	return newCheckpointWriter(dir, "run", o)
}

// madeBy counts the groups and datasets that are made.
func madeBy(t testing.TB, do func() error) int64 {
	t.Helper()
	before := h5.Created()
	if err := do(); err != nil {
		t.Fatal(err)
	}
	return h5.Created() - before
}

// forms describes what is in a file, without values: every object with its kind, type,
// shape, order in its group and the attributes.
func forms(t testing.TB, path string) (list []string) {
	t.Helper()
	f, err := h5.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	describe := func(p string) error {
		info, err := f.Stat(p)
		if err != nil {
			return err
		}
		names, err := f.Attributes(p)
		list = append(list, fmt.Sprint(p, " ", info.Kind, " ", info.Type, " ", info.Shape, " ", info.Variable, " ", names))
		return err
	}
	err = describe("/")
	if err == nil {
		err = f.Walk("/", func(p string, _ h5.Entry) error { return describe(p) })
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return list
}

// laterCheckpoints are checkpoints of one session, each with something that another one
// hasn't: what can be overwritten, and what can't.
func laterCheckpoints(t testing.TB) (list []*Checkpoint) {
	t.Helper()
	s := everyThingOf(t)
	segment := func(keysAndValues ...any) record.Record {
		r, err := record.Of(keysAndValues...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	history := segment("name", "a", "times", []float64{1, 2, 3})
	first := segment("type", "bdf", "level", 1, "h", 0.5, "ok", true, "names", []string{"a", "bc"}, "inner", segment("x", 1, "y", "z"),
		"list", []record.Record{history, segment("name", "b", "times", []float64{})}, "end", int64(7))
	with := func(r record.Record, key string, v any) record.Record {
		r, err := r.With(key, v)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	steppers := []record.Record{
		first,
		with(first, "h", 0.25),
		with(first, "type", "of a longer name"),
		with(first, "type", "b"),
		with(first, "level", 2.0),
		with(first, "names", []string{"a", "bc", "d"}),
		with(first, "names", []string{"a long name", ""}),
		with(first, "inner", segment("x", 1)),
		with(first, "inner", segment("y", "z", "x", 1)),
		with(first, "list", []record.Record{with(history, "times", []float64{4, 5})}),
		with(first, "list", []record.Record{segment("name", "b", "times", []float64{}), history}),
		first.Without("ok"),
		with(first, "more", 1),
		first,
		{},
		first,
	}
	for i, stepper := range steppers {
		k := *s
		k.Time = float64(i + 1)
		k.State = slices.Clone(s.State)
		for n := range k.State {
			k.State[n] = k.Time + float64(n)/1024
		}
		k.Segment, k.SavedCount = 3, i
		k.Summary = Summary{Attempted: int64(i), Accepted: int64(2 * i), NonlinearIterations: 3, LinearIterations: 4, WallTime: float64(i) / 3}
		k.Stepper, k.HasStepper = stepper, true
		k.Updates = []UpdateState{{"flux", make([]float64, i%3)}, {"mean", []float64{k.Time}}}
		k.Bundles = map[string]string{"phi": "bundles/" + strings.Repeat("7", i%5+1)}
		switch i % 5 {
		case 1:
			k.NonFinite = map[string]int64{}
		case 2:
			k.NonFinite = map[string]int64{"E": 2, "f": 1}
		case 3:
			k.NonFinite = map[string]int64{"ions": 5, "E": 1}
		}
		status := []string{"running", "completed", "stopped"}[i%3]
		at := segment("index", 3, "status", status, "end_time", k.Time, "checkpoint_written", i > 0)
		if i == 5 {
			at = with(at, "stop_reason", "signal")
		}
		k.Settings = with(ofSession(t, s.Settings, "the session"), segmentSection, at)
		list = append(list, &k)
	}
	return list
}

func everyThingOf(t testing.TB) *Checkpoint {
	t.Helper()
	l := everyUnknown()
	r, err := record.Of("system", int64(1), "names", []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	return &Checkpoint{Settings: r, Layout: l, State: make([]float64, l.Size())}
}

// A checkpoint that begins as a clone is the one that would be written anew: its values,
// its types, and the order of everything.
func TestAClonedCheckpointIsOneWrittenAnew(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	w := testWriter(t, dir, vfs.OS)
	for i, k := range laterCheckpoints(t) {
		what := fmt.Sprintf("checkpoint %d", i)
		all := madeBy(t, func() error { return WriteCheckpoint(t.Context(), t.TempDir(), "run", k) })
		made := madeBy(t, func() error { return w.write(t.Context(), k) })
		if i > 0 && made > all/3 {
			t.Errorf("%s: %d objects are made of %d", what, made, all)
		}
		fresh := t.TempDir()
		if err := WriteCheckpoint(t.Context(), fresh, "run", k); err != nil {
			t.Fatal(err)
		}
		got, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
		if err != nil {
			t.Fatal(err)
		}
		same(t, what, got, k)
		want, err := ReadCheckpoint(t.Context(), fresh, "run", noWarnings(t))
		if err != nil {
			t.Fatal(err)
		}
		for name, r := range map[string][2]record.Record{"settings": {got.Settings, want.Settings}, "stepper": {got.Stepper, want.Stepper}} {
			if r[0].String() != r[1].String() {
				t.Errorf("%s: the %s are\n%v\nand anew\n%v", what, name, r[0], r[1])
			}
		}
		a, b := forms(t, CheckpointFile(dir, "run")), forms(t, CheckpointFile(fresh, "run"))
		// Nothing hangs on where a group is in the root.
		slices.SortStableFunc(a, byRootGroup)
		slices.SortStableFunc(b, byRootGroup)
		if diff := cmp.Diff(b, a); diff != "" {
			t.Errorf("%s: what the file has (-anew +clone)\n%s", what, diff)
		}
		if i > 0 && laterCheckpoints(t)[i-1].NonFinite == nil { // one that isn't finite is not kept
			previous, err := ReadState(t.Context(), PreviousFile(dir, "run"))
			if err != nil {
				t.Fatal(err)
			}
			same(t, what+": the previous one", previous, laterCheckpoints(t)[i-1])
		}
	}
}

func byRootGroup(a, b string) int {
	root := func(s string) string {
		return strings.FieldsFunc(s, func(r rune) bool { return r == '/' || r == ' ' })[0]
	}
	return strings.Compare(root(a), root(b))
}

// stepScalars makes a step of a run of scalars, with a checkpoint.
func stepScalars(t testing.TB, s *Session, outcome string, stepper func() (record.Record, error)) {
	t.Helper()
	next := s.NextTime()
	state := make([]float64, s.cfg.Layout.Size())
	for i := range state {
		state[i] = next + float64(i)
	}
	s.Attempt(Attempt{Time: next, StepLength: 1, Accepted: true, Outcome: outcome})
	if err := s.SaveState(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Checkpoint(t.Context(), state, stepper); err != nil || !out.Written {
		t.Fatal(out, err)
	}
}

func openScalars(t testing.TB, dir string, n, steps int) *Session {
	t.Helper()
	s, err := Open(t.Context(), comm.Self(), scalars(dir, n, steps))
	if err == nil {
		err = s.SaveState(t.Context(), make([]float64, n))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The objects that a checkpoint makes, in its file and the segment, don't depend on how
// many unknowns, settings and time points a run has.
func TestACheckpointMakesNoObjects(t *testing.T) {
	closed(t)
	for _, n := range []int{3, 60} {
		s := openScalars(t, t.TempDir(), n, 40)
		stepper := func() (record.Record, error) {
			return record.Of("type", "euler", "history", []float64{s.time, 1}, "name", fmt.Sprint("at ", s.time))
		}
		all := madeBy(t, func() error { stepScalars(t, s, "converged", stepper); return nil })
		if all < int64(8*n) {
			t.Fatalf("the first checkpoint of %d unknowns makes only %d objects: is it counted?", n, all)
		}
		stepScalars(t, s, "converged", stepper)
		for range 5 { // to a time of one digit
			if made := madeBy(t, func() error { stepScalars(t, s, "converged", stepper); return nil }); made != 0 {
				t.Errorf("%d unknowns: a checkpoint makes %d objects", n, made)
			}
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func sizeOf(t testing.TB, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// The file of the checkpoint doesn't grow with their number, whatever the texts of the
// stepper are; what replaces arrays of other shapes makes it grow, and not without end.
func TestCheckpointsDoNotGrow(t *testing.T) {
	closed(t)
	const steps = 200
	for name, c := range map[string]struct {
		stepper func(i int) (record.Record, error)
		most    float64
	}{
		"texts": {func(i int) (record.Record, error) {
			return record.Of("phase", strings.Repeat("x", i*7%23), "names", []string{strings.Repeat("y", i%5), "z"})
		}, 1.1},
		// The largest is 25 KB.
		"shapes": {func(i int) (record.Record, error) {
			return record.Of("history", make([]float64, 1+i*1300%3100), "text", strings.Repeat("growing", i))
		}, mostGrowth + 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openScalars(t, dir, 5, steps)
			i, first, largest := 0, int64(0), int64(0)
			for ; i < steps; i++ {
				stepScalars(t, s, "converged", func() (record.Record, error) { return c.stepper(i) })
				size := sizeOf(t, CheckpointFile(dir, "run"))
				if i == 20 {
					first = size
				}
				largest = max(largest, size)
			}
			t.Logf("%d bytes after 21 checkpoints, at most %d", first, largest)
			if float64(largest) > c.most*float64(first) {
				t.Errorf("the file has up to %d bytes, after 21 checkpoints %d", largest, first)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			k, err := ReadCheckpoint(t.Context(), dir, "run")
			if err != nil {
				t.Fatal(err)
			}
			want, err := c.stepper(steps - 1)
			if err != nil || !k.Stepper.Equal(want) || k.Time != steps || k.State[4] != steps+4 {
				t.Errorf("the last one has %v, %v, %v", k.Time, k.Stepper, err)
			}
		})
	}
}

// Whatever becomes of the file of the last checkpoint, the next one is what it is to be,
// and has nothing of what others wrote.
func TestAChangedCheckpointIsNotGoneOnWith(t *testing.T) {
	closed(t)
	edit := func(t *testing.T, path string, do func(f *h5.File) error) {
		if err := change(path, do); err != nil {
			t.Fatal(err)
		}
	}
	// kept sets the time of the file back.
	kept := func(t *testing.T, path string, do func()) {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		do()
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	for name, spoilIt := range map[string]func(t *testing.T, path string){
		"a setting more": func(t *testing.T, path string) {
			edit(t, path, func(f *h5.File) error { return f.WriteString("settings/foreign", "x") })
		},
		"another setting, in place": func(t *testing.T, path string) {
			edit(t, path, func(f *h5.File) error {
				_, err := f.OverwriteString("layout/unknowns/s0000/unit", "B")
				return err
			})
		},
		"another session, in place": func(t *testing.T, path string) {
			kept(t, path, func() {
				edit(t, path, func(f *h5.File) error {
					name, err := f.ReadString(sessionPath)
					if err == nil {
						_, err = f.OverwriteString(sessionPath, strings.Repeat("f", len(name)))
					}
					return err
				})
			})
		},
		"torn": func(t *testing.T, path string) {
			kept(t, path, func() {
				edit(t, path, func(f *h5.File) error { return h5.SetAttribute(f, "/", completeAttribute, []uint8{0}) })
			})
		},
		"damaged": func(t *testing.T, path string) {
			kept(t, path, func() {
				f, err := os.OpenFile(path, os.O_RDWR, 0)
				if err == nil {
					_, err = f.WriteAt(make([]byte, 256), 0)
				}
				if err := errors.Join(err, f.Close()); err != nil {
					t.Fatal(err)
				}
			})
		},
		"a copy": func(t *testing.T, path string) {
			data, err := os.ReadFile(path)
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			kept := time.Now().Add(-time.Hour)
			spoil(t, path, data)
			if err := os.Chtimes(path, kept, kept); err != nil {
				t.Fatal(err)
			}
		},
		"removed": func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"of somebody else": func(t *testing.T, path string) {
			must(t, WriteCheckpoint(t.Context(), parentDir(path), "run", smallCheckpoint(7)))
		},
		"no HDF5":              func(t *testing.T, path string) { spoil(t, path, []byte("nothing")) },
		"gone to the previous": func(t *testing.T, path string) { move(t, path, PreviousFile(parentDir(path), "run")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openScalars(t, dir, 20, 5)
			stepScalars(t, s, "", nil)
			stepScalars(t, s, "", nil)
			spoilIt(t, CheckpointFile(dir, "run"))
			made := madeBy(t, func() error { stepScalars(t, s, "", nil); return nil })
			if clone := name == "gone to the previous" || name == "of somebody else"; clone != (made < 100) {
				t.Errorf("%d objects are made", made)
			} else if last := s.store.(*disk).writer.last; clone != (last.places != nil) || !clone && last.first != last.at.Size() {
				t.Errorf("of a file of %d bytes, %d at first, the places are %v", last.at.Size(), last.first, last.places)
			}
			k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
			if err != nil || k.Time != 3 || k.State[19] != 22 || k.Settings.Has("foreign") || k.Layout.Unknowns[0].Unit != "A" {
				t.Fatalf("%+v, %v", k, err)
			}
			if made := madeBy(t, func() error { stepScalars(t, s, "", nil); return nil }); made != 0 {
				t.Errorf("the one after it makes %d objects", made)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t)); err != nil || k.Time != 4 || k.State[19] != 23 {
				t.Fatalf("%+v, %v", k, err)
			}
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func parentDir(path string) string { return strings.TrimSuffix(path, "/run.checkpoint.h5") }

// sessionCheckpoint is a small one of a session.
func sessionCheckpoint(t testing.TB, time float64) *Checkpoint {
	k := smallCheckpoint(time)
	k.Settings = ofSession(t, k.Settings, "the session")
	return k
}

// consistent checks that no checkpoint that can be read mixes two of them.
func consistent(t *testing.T, dir, what string) {
	t.Helper()
	for _, path := range []string{CheckpointFile(dir, "run"), PreviousFile(dir, "run")} {
		if k, err := ReadState(t.Context(), path); err == nil && k.State[0] != k.Time {
			t.Fatalf("%s: %s has the time %v and the state %v", what, path, k.Time, k.State)
		}
	}
}

// What a kill, or a call that fails, leaves of a checkpoint that begins as a clone is what
// it leaves of one that is written anew.
func TestKilledAtAnyStepOfAClonedCheckpoint(t *testing.T) {
	closed(t)
	for _, once := range []bool{false, true} {
		for i := 1; ; i++ {
			dir := t.TempDir()
			in := vfs.NewInject(vfs.OS)
			w := testWriter(t, dir, in)
			for time := 1.0; time <= 2; time++ {
				must(t, w.write(t.Context(), sessionCheckpoint(t, time)))
			}
			calls := len(in.Ops())
			if once {
				in.FailAt(calls+i, syscall.ENOSPC)
			} else {
				in.FailFrom(calls+i, syscall.ENOSPC)
			}
			made := h5.Created()
			err := w.write(t.Context(), sessionCheckpoint(t, 3))
			what := fmt.Sprintf("once %v, step %d, %s", once, i, strings.Join(in.Trace()[calls:], "; "))
			if h5.Created() != made {
				t.Fatalf("%s: it is written anew", what)
			}
			last, previous, read := checkpointTimes(t, dir)
			consistent(t, dir, what)
			if err == nil {
				if last != 3 || previous != 2 {
					t.Fatalf("%s: no error, last %v, previous %v", what, last, previous)
				}
				if len(in.Ops()) < calls+i {
					if i < 20 {
						t.Fatalf("%s: only %d calls", what, i)
					}
					break
				}
				if !once || !strings.Contains(in.Trace()[calls+i-1], "close") { // of what was only read
					t.Fatalf("%s: no error", what)
				}
				continue
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatalf("%s: %v", what, err)
			}
			if read != 2 && read != 3 || last == 3 && previous != 2 || once && last != 3 && (last != 2 || previous != 1) {
				t.Fatalf("%s: last %v, previous %v, read %v", what, last, previous, read)
			}
			// The same session tries again; one that begins after a kill writes anew.
			if !once {
				w = testWriter(t, dir, vfs.OS)
			}
			for time := 4.0; time <= 5; time++ {
				must(t, w.write(t.Context(), sessionCheckpoint(t, time)))
				consistent(t, dir, what)
				if last, _, _ := checkpointTimes(t, dir); last != time {
					t.Fatalf("%s: then %v is the last one, not %v", what, last, time)
				}
			}
			if left := names(t, dir); len(left) != 2 {
				t.Fatalf("%s: then there are %q", what, left)
			}
		}
	}
}

// Before it is published, a file is one that readers refuse: a killed run leaves it so.
func TestAWorkingFileIsTorn(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	w := testWriter(t, dir, vfs.OS)
	for time := 1.0; time <= 3; time++ {
		if _, err := w.prepare(t.Context(), sessionCheckpoint(t, time), false); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadState(t.Context(), w.tmp); !errors.Is(err, ErrTorn) {
			t.Errorf("checkpoint %v: %v", time, err)
		}
		must(t, w.complete(t.Context(), sessionCheckpoint(t, time), nil))
	}
}

// A checkpoint of much data is not copied, only to be replaced.
func TestMuchDataIsNotCopied(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	w := testWriter(t, dir, vfs.OS)
	k := sessionCheckpoint(t, 1)
	k.Layout.R = []float64{0, 1}
	k.Layout.Unknowns = append(k.Layout.Unknowns, Unknown{Name: "f", Kind: Radial, Components: 400_000})
	k.State = make([]float64, 400_001)
	for range 2 {
		must(t, w.write(t.Context(), k))
		if w.last.objects*cloneBytes > 3_200_000 {
			t.Fatalf("%d objects", w.last.objects)
		}
		if w.last.places != nil {
			t.Error("it is a clone")
		}
	}
}

// A checkpoint with other datasets than the one before, or another setup, is written anew.
func TestACheckpointWithOtherDatasets(t *testing.T) {
	closed(t)
	list := laterCheckpoints(t)
	for name, c := range map[string]struct {
		change func(k *Checkpoint)
		clone  bool
	}{
		"nothing else":        {func(*Checkpoint) {}, true},
		"no stepper":          {func(k *Checkpoint) { k.HasStepper, k.Stepper = false, record.Record{} }, false},
		"no updates":          {func(k *Checkpoint) { k.Updates = nil }, false},
		"updates of a name":   {func(k *Checkpoint) { k.Updates = []UpdateState{{"flux", nil}, {"other", nil}} }, false},
		"updates in an order": {func(k *Checkpoint) { k.Updates = []UpdateState{k.Updates[1], k.Updates[0]} }, false},
		"another setting": {func(k *Checkpoint) {
			var err error
			k.Settings, err = k.Settings.With("system", int64(2))
			must(t, err)
		}, false},
		"one setting more": {func(k *Checkpoint) {
			var err error
			k.Settings, err = k.Settings.With("more", true)
			must(t, err)
		}, false},
		"another session": {func(k *Checkpoint) { k.Settings = ofSession(t, k.Settings, "another one") }, false},
		"another unit": {func(k *Checkpoint) {
			k.Layout.Unknowns = slices.Clone(k.Layout.Unknowns)
			k.Layout.Unknowns[0].Unit = "kA"
		}, false},
		"one unknown more": {func(k *Checkpoint) {
			k.Layout.Unknowns = append(slices.Clone(k.Layout.Unknowns), Unknown{Name: "more", Kind: Scalar, Scale: 1})
			k.State = append(slices.Clone(k.State), 1)
		}, false},
		"another field in the bundle": {func(k *Checkpoint) {
			k.Layout.Unknowns = append(slices.Clone(k.Layout.Unknowns), Unknown{Name: "psi", Kind: Field, Scale: 1, Domain: box})
			k.Bundles = map[string]string{"phi": "bundles/9", "psi": "bundles/9"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w := testWriter(t, dir, vfs.OS)
			must(t, w.write(t.Context(), list[0]))
			k := *list[3]
			k.Bundles = list[0].Bundles
			c.change(&k)
			must(t, w.write(t.Context(), &k))
			if clone := w.last.places != nil; clone != c.clone {
				t.Errorf("it is a clone: %v", clone)
			}
			got, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t))
			must(t, err)
			same(t, "checkpoint", got, &k)
		})
	}
	// So is one of whose fields another is in the file.
	dir := t.TempDir()
	w := testWriter(t, dir, vfs.OS)
	must(t, w.write(t.Context(), list[0]))
	k := *list[1]
	k.Bundles = nil
	p, err := w.prepare(t.Context(), &k, true)
	must(t, err)
	if w.next.places != nil || len(p.Fields) != 1 {
		t.Errorf("a clone, with %v", p)
	}
	must(t, w.complete(t.Context(), &k, nil))
	if k, err := ReadCheckpoint(t.Context(), dir, "run", noWarnings(t)); err != nil || k.Bundles != nil || k.Time != 2 {
		t.Errorf("%+v, %v", k, err)
	}
}

// A file that has grown too much, of what was replaced, is written anew.
func TestWhatHasGrownIsWrittenAnew(t *testing.T) {
	closed(t)
	w := testWriter(t, t.TempDir(), vfs.OS)
	for i := range 4 {
		must(t, w.write(t.Context(), sessionCheckpoint(t, float64(i))))
		if anew := i%2 == 0; anew != (w.last.places == nil) {
			t.Errorf("checkpoint %d: anew is %v", i, !anew)
		}
		if i == 1 {
			w.last.first = w.last.at.Size()/mostGrowth - 1
		}
	}
}

// The numbers of a state that are NaN or infinite come and go, and files keep them apart.
func TestNonFiniteComesAndGoes(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	cfg := scalars(dir, 3, 9)
	cfg.Logger = silent
	s, err := Open(t.Context(), comm.Self(), cfg)
	must(t, err)
	must(t, s.SaveState(t.Context(), make([]float64, 3)))
	for i, state := range [][]float64{{1, 2, 3}, {math.NaN(), 2, 3}, {1, math.Inf(1), math.NaN()}, {1, 2, math.NaN()}, {1, 2, 3}} {
		s.Attempt(Attempt{Time: s.NextTime(), Accepted: true})
		must(t, s.SaveState(t.Context(), state))
		out, err := s.Checkpoint(t.Context(), state, nil)
		if err != nil || !out.Written {
			t.Fatal(out, err)
		}
		k, err := ReadState(t.Context(), CheckpointFile(dir, "run"))
		must(t, err)
		same(t, fmt.Sprint("counts of state ", i), k.NonFinite, s.cfg.Layout.nonFinite(state))
	}
	must(t, s.Close(t.Context()))
}

// Outcomes of steps take the same room in each checkpoint, and longer ones find room.
func TestOutcomesOfAnyLength(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	s := openScalars(t, dir, 1, 400)
	path := SegmentFile(dir, "run", 1)
	var want []string
	step := func(outcome string) int64 {
		before := int64(0)
		if s.written {
			before = sizeOf(t, path)
		}
		stepScalars(t, s, outcome, nil)
		want = append(want, outcome)
		return sizeOf(t, path) - before
	}
	check := func(variable bool, length int) {
		t.Helper()
		f, err := h5.Open(path)
		must(t, err)
		info, err := f.Stat("solver_statistics/outcome")
		must(t, errors.Join(err, f.Close()))
		if info.Variable != variable || !variable && info.Length != length {
			t.Errorf("strings of %d bytes, of any length %v; want %d, %v", info.Length, info.Variable, length, variable)
		}
		out, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
		must(t, err)
		if !slices.Equal(out.Statistics.Outcome, want) {
			t.Errorf("got %q, want %q", out.Statistics.Outcome, want)
		}
	}
	step("ok")
	grown := int64(0)
	for i := range 100 {
		grown += step(fmt.Sprint("outcome ", i))
	}
	t.Logf("%d bytes for each of 100 checkpoints", grown/100)
	if grown/100 > 256 {
		t.Errorf("the segment grows by %d bytes for each of 100 checkpoints", grown/100)
	}
	check(false, 16)
	step("grüße, und länger")
	check(false, 32)
	step("short")
	step(strings.Repeat("z", 129))
	check(false, 256)
	step(strings.Repeat("z", 257))
	check(true, 0)
	step("after it")
	check(true, 0)
	must(t, s.Close(t.Context()))
	check(true, 0)
}

// What is marked as complete has everything: segment, checkpoint with and without fields,
// anew and as a clone, and output.
func TestTheMarkComesLast(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	type snapshot struct{ path, copied string }
	var marked []snapshot
	completing = func(path string) {
		s := snapshot{path, fmt.Sprint(dir, "/copy", len(marked))}
		from, err := os.Open(path)
		if err == nil {
			var to *os.File
			if to, err = os.Create(s.copied); err == nil {
				_, err = io.Copy(to, from)
				err = errors.Join(err, to.Close())
			}
			err = errors.Join(err, from.Close())
		}
		if err != nil {
			t.Error(err)
		}
		marked = append(marked, s)
	}
	t.Cleanup(func() { completing = nil })
	// check compares files with what they had when they got the mark.
	check := func(what string, paths ...string) {
		t.Helper()
		if len(marked) != len(paths) {
			t.Fatalf("%s: %d files are marked, want %q: %v", what, len(marked), paths, marked)
		}
		for i, m := range marked {
			if !strings.HasPrefix(m.path, paths[i]) {
				t.Fatalf("%s: %s is marked, want %s", what, m.path, paths[i])
			}
			sameBut(t, what+": "+m.path, m.copied, paths[i])
		}
		marked = nil
	}
	cfg, f := fieldRun(t, dir)
	cfg.Logger = silent
	s, err := Open(t.Context(), comm.Self(), cfg)
	must(t, err)
	state := []float64{0}
	setCells(t, f, 0)
	must(t, s.SaveState(t.Context(), state))
	for i := range 3 {
		state[0] = s.NextTime()
		setCells(t, f, state[0])
		if i != 1 { // there are counts of what isn't finite
			view, err := f.MutableView()
			must(t, err)
			view[f.Index(1, 2, 1)] = math.NaN()
		}
		s.Attempt(Attempt{Time: state[0], Accepted: true, Outcome: fmt.Sprint("step ", i), Iterations: []Iteration{{1, 2}}})
		must(t, s.SaveState(t.Context(), state))
		if _, err := s.Checkpoint(t.Context(), state, nil); err != nil {
			t.Fatal(err)
		}
		check(fmt.Sprint("checkpoint ", i), SegmentFile(dir, "run", 1), CheckpointFile(dir, "run"))
	}
	must(t, s.Close(t.Context()))
	check("close", SegmentFile(dir, "run", 1))
	out := everything(t, 2)
	path := dir + "/output.h5"
	must(t, WriteOutput(t.Context(), path, out, Fields(fieldValues)))
	check("output", path)
	must(t, WriteOutput(t.Context(), path, out, Fields(fieldValues), Atomic(), Extendible()))
	check("atomic output", path)
	k := checkpointAt(t, 1)
	must(t, WriteCheckpoint(t.Context(), dir, "other", k, Fields(fieldValues)))
	check("a checkpoint by itself", CheckpointFile(dir, "other"))
}

// sameBut compares all values of two files; the first one lacks the mark.
func sameBut(t *testing.T, what, before, after string) {
	t.Helper()
	a, b := valuesIn(t, before), valuesIn(t, after)
	if _, ok := a[" "+completeAttribute]; ok || b[" "+completeAttribute] == "" {
		t.Errorf("%s: the mark is %q, and %q afterwards", what, a[" "+completeAttribute], b[" "+completeAttribute])
	}
	delete(b, " "+completeAttribute)
	for path, v := range b {
		if a[path] != v {
			t.Errorf("%s: %s is %.100s, and was %.100s when the file was marked", what, path, v, a[path])
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s: %d values, and %d when it was marked", what, len(b), len(a))
	}
}

// valuesIn is all that a file has, as text.
func valuesIn(t *testing.T, path string) map[string]string {
	t.Helper()
	all := map[string]string{}
	f, err := h5.Open(path)
	must(t, err)
	has, err := f.HasAttribute("/", completeAttribute)
	must(t, err)
	if has {
		mark, _, err := h5.Attribute[uint8](f, "/", completeAttribute)
		must(t, err)
		all[" "+completeAttribute] = fmt.Sprint(mark)
	}
	must(t, f.Walk("/", func(p string, e h5.Entry) error {
		all[p] = e.Kind.String()
		if e.Kind != h5.Dataset {
			return nil
		}
		info, err := f.Stat(p)
		if err != nil {
			return err
		}
		var v any
		switch {
		case info.Type == h5.String && info.Shape == nil:
			v, err = f.ReadString(p)
		case info.Type == h5.String:
			v, err = f.ReadStrings(p)
		case info.Type == h5.Bool:
			v, _, err = h5.Read[bool](f, p)
		case info.Type == h5.Float64:
			v, _, err = h5.Read[float64](f, p)
		case info.Type == h5.Uint64:
			v, _, err = h5.Read[uint64](f, p)
		case info.Type == h5.Float32:
			v, _, err = h5.ReadAs[float64](f, p)
		default:
			v, _, err = h5.ReadAs[int64](f, p)
		}
		all[p] += fmt.Sprint(info.Shape, v)
		return err
	}))
	must(t, f.Close())
	return all
}
