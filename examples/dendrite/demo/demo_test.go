//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/publish"
)

// The test binary plays solvers that misbehave.
const role = "DEMO_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		status := m.Run()
		if solverDir != "" {
			_ = os.RemoveAll(solverDir)
		}
		os.Exit(status)
	case "hangs":
		fmt.Printf("@ rank=0 pid=%d\nready\n", os.Getpid())
		time.Sleep(time.Hour)
	case "restarts elsewhere":
		fmt.Printf("@ rank=0 pid=%d\n@ restart=10 bundle=somewhere/step_10\n", os.Getpid())
	case "does not resume":
		fmt.Printf("@ rank=0 pid=%d\n@ segment=1 start=0\n", os.Getpid())
	case "is not killed":
		fmt.Printf("@ rank=0 pid=%d\n", os.Getpid())
	case "fails":
		fmt.Println("no space left on device")
		os.Exit(3)
	}
}

// bundle publishes a small bundle whose cells are their own number, after a
// change.
func bundle(t *testing.T, increment int64, change func(phi []float64)) string {
	t.Helper()
	d := grid.Domain{Size: [3]int{5, 4, 1}, Spacing: [3]float64{1, 1, 1}}
	phi, err := field.New[float64](d, d.Box())
	if err != nil {
		t.Fatal(err)
	}
	temp, err := field.New[float64](d, d.Box())
	if err != nil {
		t.Fatal(err)
	}
	cells, err := phi.MutableView()
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		cells[i] = float64(i)
	}
	cells[3] = math.NaN()
	change(cells)
	path := filepath.Join(t.TempDir(), "bundle")
	err = publish.SaveBundle(t.Context(), comm.Self(), path, publish.State{
		Fields:    []field.Named{{ID: "phi", Field: phi}, {ID: "T", Field: temp}},
		Time:      0.5,
		Increment: increment,
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestComparisonFindsEveryBit(t *testing.T) {
	plain := bundle(t, 7, func([]float64) {})
	for _, tc := range []struct {
		name   string
		change func(phi []float64)
		want   string // empty: equal
	}{
		{"equal, with a NaN", func([]float64) {}, ""},
		{"last bit of one cell", func(phi []float64) { phi[11] = math.Nextafter(phi[11], 0) },
			"field phi differs in 1 cells, first in [1 2 0]: 11 and 10.999999999999998"},
		{"sign of zero", func(phi []float64) { phi[0] = math.Copysign(0, -1) },
			"field phi differs in 1 cells, first in [0 0 0]: 0 and -0"},
		{"payload of a NaN", func(phi []float64) { phi[3] = math.Float64frombits(math.Float64bits(phi[3]) ^ 1) },
			"field phi differs in 1 cells, first in [3 0 0]: NaN and NaN"},
		{"two cells", func(phi []float64) { phi[18], phi[19] = 0, 0 },
			"field phi differs in 2 cells, first in [3 3 0]: 18 and 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			diffs, err := compareBundles(t.Context(), plain, bundle(t, 7, tc.change))
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, d := range diffs {
				got += d.String()
			}
			if got != tc.want {
				t.Errorf("difference is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestComparisonRefuses(t *testing.T) {
	plain := bundle(t, 7, func([]float64) {})
	for _, tc := range []struct {
		name  string
		other func(t *testing.T) string
		want  func(error) bool
	}{
		{"a bundle of another increment", func(t *testing.T) string { return bundle(t, 8, func([]float64) {}) },
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "increments 7 and 8") }},
		{"a bundle that isn't there", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none") },
			func(err error) bool { return errors.Is(err, os.ErrNotExist) }},
		{"a bit that was flipped in the file", func(t *testing.T) string {
			path := bundle(t, 7, func([]float64) {})
			flipBit(t, filepath.Join(path, "fields", "T.bin"))
			return path
		}, func(err error) bool { return errors.Is(err, publish.ErrChecksum) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := compareBundles(t.Context(), plain, tc.other(t)); !tc.want(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func flipBit(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(file, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		line string
		want event // nil: none
	}{
		{"step 5 of 10", nil},
		{"@", nil},
		{"@ rank=2 pid=17", event{"rank": "2", "pid": "17"}},
		{"@ saved=5 nanoseconds=9 bundle=a dir/step_5=x", event{"saved": "5", "nanoseconds": "9", "bundle": "a dir/step_5=x"}},
	} {
		got, ok := parseEvent(tc.line)
		if ok != (tc.want != nil) || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: %v, %v; want %v", tc.line, got, ok, tc.want)
		}
	}
	e := event{"saved": "5", "bundle": "x"}
	if e.number("saved") != 5 || e.number("bundle") != -1 || e.number("pid") != -1 {
		t.Errorf("numbers of %v: %d, %d, %d", e, e.number("saved"), e.number("bundle"), e.number("pid"))
	}
}

func play(t *testing.T, r string) (*launch, options) {
	t.Helper()
	t.Setenv(role, r)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{name: "test run", ranks: 1, log: filepath.Join(t.TempDir(), "log"), event: func(event) {}, line: func(string) {}}
	return l, options{mpi: "none", solver: self, limit: 5 * time.Minute}
}

// mustBeGone looks for the process, which without a launcher is the only rank.
func (l *launch) mustBeGone(t *testing.T, o options) {
	t.Helper()
	if p := (proc{pid: l.cmd.Process.Pid}); p.alive(o.solver) {
		t.Error("the run is over and its rank is alive")
	}
}

func TestHangIsAFailure(t *testing.T) {
	l, o := play(t, "hangs")
	o.limit = 500 * time.Millisecond
	err := l.run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "no end within 500ms") {
		t.Errorf("error is %v", err)
	}
	l.mustBeGone(t, o)
}

func TestInterruptedDemoEndsItsRun(t *testing.T) {
	l, o := play(t, "hangs")
	ctx, cancel := context.WithCancel(t.Context())
	l.line = func(string) { cancel() }
	if err := l.run(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if len(l.procs) != 1 || l.procs[0].pid != l.cmd.Process.Pid {
		t.Errorf("ranks are %+v, want process %d", l.procs, l.cmd.Process.Pid)
	}
	l.mustBeGone(t, o)
}

func TestFailureKeepsWhatWasPrinted(t *testing.T) {
	l, o := play(t, "fails")
	var lines []string
	l.line = func(text string) { lines = append(lines, text) }
	err := l.run(t.Context(), o)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !strings.Contains(err.Error(), l.log) {
		t.Errorf("error is %v", err)
	}
	log, err := os.ReadFile(l.log)
	if err != nil {
		t.Fatal(err)
	}
	if want := "no space left on device"; !strings.Contains(string(log), want) || !reflect.DeepEqual(lines, []string{want}) {
		t.Errorf("log %q, lines %q", log, lines)
	}
}

func TestSharedMemoryOfAProcessIsFound(t *testing.T) {
	f, err := os.CreateTemp("/dev/shm", "fieldstone-demo-test.*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	m, err := syscall.Mmap(int(f.Fd()), 0, 4096, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(m) }()
	if got := sharedFiles(os.Getpid()); !reflect.DeepEqual(got, []string{f.Name()}) {
		t.Errorf("files are %q, want %q", got, f.Name())
	}
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	if got := sharedFiles(os.Getpid()); len(got) > 0 {
		t.Errorf("files without a name are %q", got)
	}
}

func TestLeftoverIsChecked(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T, dir string)
		want string // empty: as it must be
	}{
		{"a first field in staging, a good bundle before", func(*testing.T, string) {}, ""},
		{"the final path", func(t *testing.T, dir string) { must(t, os.Mkdir(filepath.Join(dir, "step_40"), 0o777)) },
			"though its publication was killed"},
		{"nothing in staging", func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, "step_40.publishing"))) },
			"left no first field"},
		{"a bundle in staging", func(t *testing.T, dir string) {
			must(t, os.RemoveAll(filepath.Join(dir, "step_40.publishing")))
			must(t, os.Rename(bundle(t, 40, func([]float64) {}), filepath.Join(dir, "step_40.publishing")))
		}, "opens as a bundle"},
		{"a bundle before that is too short", func(t *testing.T, dir string) {
			must(t, os.Truncate(filepath.Join(dir, "step_20", "fields", "T.bin"), 100))
		}, "the newest bundle is not good"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			must(t, os.Rename(bundle(t, 20, func([]float64) {}), filepath.Join(dir, "step_20")))
			fields := filepath.Join(dir, "step_40.publishing", "fields")
			must(t, os.MkdirAll(fields, 0o777))
			must(t, os.WriteFile(filepath.Join(fields, "phi.bin"), nil, 0o666))
			tc.make(t, dir)
			left, err := (&story{out: new(bytes.Buffer)}).checkLeftover(dir, 40, 20)
			switch {
			case tc.want == "" && (err != nil || left != "phi.bin (0.00 MB), no metadata.json"):
				t.Errorf("left is %q, error %v", left, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestExpectationsAreChecked(t *testing.T) {
	p := part{name: "test", ranks: 1, px: 1, py: 1, halo: 1}
	for _, tc := range []struct {
		role string
		tell func(ctx context.Context, s *story, dir string) error
		want string
	}{
		{"restarts elsewhere", func(ctx context.Context, s *story, dir string) error {
			_, err := s.restart(ctx, p, dir, "picture", 20)
			return err
		}, "restarted from increment 10, but the newest good bundle is step_20"},
		{"is not killed", func(ctx context.Context, s *story, dir string) error {
			_, err := s.killInPublication(ctx, p, dir, 40)
			return err
		}, "did not come to field:T of step 40"},
		{"does not resume", func(ctx context.Context, s *story, dir string) error {
			_, err := s.resume(ctx, p, dir, 20)
			return err
		}, "job 2 is segment 1 and begins at step 0, not segment 2 at step 20"},
		{"is not killed", func(ctx context.Context, s *story, dir string) error {
			must(t, os.Mkdir(filepath.Join(dir, "step_40.publishing"), 0o777))
			_, err := s.undisturbed(ctx, p, dir)
			return err
		}, "step_40.publishing is left over"},
	} {
		t.Run(tc.role+" "+tc.want, func(t *testing.T) {
			_, o := play(t, tc.role)
			o.dir = t.TempDir()
			err := tc.tell(t.Context(), &story{o: o, out: new(bytes.Buffer)}, t.TempDir())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error is %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestToolIsFoundNearTheSolver(t *testing.T) {
	above := t.TempDir()
	solver := filepath.Join(above, "openmpi", "dendrite")
	must(t, os.MkdirAll(filepath.Join(filepath.Dir(solver), "fieldstone"), 0o777)) // a directory is none
	if got := toolNear(solver); got != "" {
		t.Errorf("tool is %q, there is none", got)
	}
	want := filepath.Join(above, "fieldstone")
	must(t, os.WriteFile(want, nil, 0o777))
	if got := toolNear(solver); got != want {
		t.Errorf("tool is %q, want %q", got, want)
	}
}

func TestDifferentHistoriesAreFound(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for step, change := range map[int64]func([]float64){
		20: func([]float64) {},
		30: func(phi []float64) { phi[2] = -phi[2] },
	} {
		name := publish.StepName(step)
		must(t, os.Rename(bundle(t, step, func([]float64) {}), filepath.Join(a, name)))
		must(t, os.Rename(bundle(t, step, change), filepath.Join(b, name)))
	}
	s := &story{o: options{steps: 30, every: 20}, out: new(bytes.Buffer)}
	if _, err := s.compare(t.Context(), a, b); err == nil || !strings.Contains(err.Error(), "step_30 of the two histories: field phi differs in 1 cells, first in [2 0 0]") {
		t.Errorf("error is %v", err)
	}
	if n, err := s.compare(t.Context(), a, a); n != 2 || err != nil {
		t.Errorf("%d bundles, error %v", n, err)
	}
}

// The whole story, on one rank and a small grid.
func TestStory(t *testing.T) {
	o := storyOptions(t)
	var out bytes.Buffer
	if err := demo(t.Context(), o, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"SIGKILL to 1 rank at field:T of publication 2",
		"restarted from " + filepath.Join(o.dir, "interrupted", "step_20"),
		"4 bundles of both, verified: phi and T equal bit for bit",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if _, err := os.Stat(filepath.Join(o.dir, "dendrite.png")); err != nil {
		t.Error(err)
	}
	want := "there is no HDF5 here: no run files"
	if h5.Enabled {
		// 18 saved times, every 4 steps from 0 to 68, and the end.
		want = "the last 2 joined  19  70  equal to the first, bit for bit"
	}
	if words := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(words, strings.Join(strings.Fields(want), " ")) {
		t.Errorf("%q is not in:\n%s", want, out.String())
	}
}

// solverDir is where the solver was built, empty if it wasn't.
var solverDir string

// buildSolver builds the solver once for all tests.
var buildSolver = sync.OnceValues(func() (path string, err error) {
	if solverDir, err = os.MkdirTemp("", "dendrite"); err != nil {
		return "", err
	}
	path = filepath.Join(solverDir, "dendrite")
	if out, err := exec.Command("go", "build", "-o", path, "..").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func storyOptions(t *testing.T) options {
	t.Helper()
	solver, err := buildSolver()
	if err != nil {
		t.Fatal(err)
	}
	return options{
		solver: solver, mpi: "none", dir: filepath.Join(t.TempDir(), "a demo"),
		cells: 30, steps: 70, every: 20, killAt: 2, limit: 5 * time.Minute,
	}
}
