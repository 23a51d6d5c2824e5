//go:build hdf5

package runfile

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

// python is the interpreter that Debian's python3-h5py belongs to.
const python = "/usr/bin/python3"

func runPython(t *testing.T, args ...string) {
	t.Helper()
	runScript(t, "runfile.py", args...)
}

// runScript runs a script of the tests, where there is h5py, and returns what it prints.
func runScript(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := tryScript(script, args...)
	switch {
	case errors.Is(err, errNoPython):
		t.Skip("no h5py to compare with:", err)
	case err != nil:
		t.Fatal(err)
	}
	return out
}

var errNoPython = errors.New("no h5py")

// tryPython runs the script of the tests where there is h5py.
func tryPython(args ...string) error {
	_, err := tryScript("runfile.py", args...)
	return err
}

func tryScript(script string, args ...string) (string, error) {
	if err := exec.Command(python, "-c", "import h5py").Run(); err != nil {
		if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
			return "", fmt.Errorf("h5py is required: %w", err)
		}
		return "", fmt.Errorf("%w: %w", errNoPython, err)
	}
	out, err := exec.Command(python, append([]string{filepath.Join("testdata", script)}, args...)...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return string(out), nil
}

func TestPythonReadsOurOutput(t *testing.T) {
	closed(t)
	for name, opts := range map[string][]Option{"plain": nil, "extendible": {Extendible()}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "run.h5")
			if err := WriteOutput(t.Context(), path, everything(t, 3), append(opts, Fields(fieldValues))...); err != nil {
				t.Fatal(err)
			}
			runPython(t, "check", path)
		})
	}
}

func TestPythonReadsOurCheckpoint(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	if err := WriteCheckpoint(t.Context(), dir, "run", checkpointAt(t, 2.5), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	runPython(t, "checkpoint", CheckpointFile(dir, "run"))
}

// h5dump shows shapes in C order, time first.
func TestDumpShowsTheShapes(t *testing.T) {
	closed(t)
	dump, err := exec.LookPath("h5dump")
	if err != nil {
		if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
			t.Fatal("h5dump is required:", err)
		}
		t.Skip("no h5dump to compare with:", err)
	}
	path := filepath.Join(t.TempDir(), "run.h5")
	if err := WriteOutput(t.Context(), path, everything(t, 3), Fields(fieldValues)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(dump, "-H", "-g", "/unknowns", "-g", "/update_states", path).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, shape := range map[string]string{
		"current": "( 3 )", "E": "( 3, 3, 1 )", "ions": "( 3, 3, 5 )", "f": "( 3, 3, 2, 4 )",
		"radius_2": "( 3, 3, 2 )", "phi": "( 3, 2, 3, 4 )", "flux": "( 3, 2 )",
	} {
		_, rest, _ := strings.Cut(string(out), fmt.Sprintf("DATASET %q {", name))
		if rest, _, _ = strings.Cut(rest, "}"); !strings.Contains(rest, "H5T_IEEE_F64LE") || !strings.Contains(rest, "SIMPLE { "+shape) {
			t.Errorf("%s is no float64 of %s: %s", name, shape, rest)
		}
	}
}

// formats are the versions that are read.
var formats = []string{"0.0.1", "0.0.2", "0.0.3", "0.0.4", "0.0.5"}

// Files that were made once stay readable.
func TestGoldenFiles(t *testing.T) {
	readFormats(t, "testdata/golden", false)
}

// So do those that WriteOutput and WriteCheckpoint made, type for type.
func TestOurGoldenFiles(t *testing.T) {
	closed(t)
	want := everything(t, 2)
	got, err := ReadOutput(t.Context(), []string{"testdata/golden/ours-output.0.0.5.h5"}, noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "output", got, want)
	if got.Settings.Hash() != want.Settings.Hash() {
		t.Error("the hash of the settings is another one")
	}
	k, err := ReadState(t.Context(), "testdata/golden/ours-checkpoint.0.0.5.h5", noWarnings(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "checkpoint", k, checkpointAt(t, 2.5))
}

// The script that made them still makes them so.
func TestWeReadWhatPythonWrites(t *testing.T) {
	dir := t.TempDir()
	runPython(t, "make", dir)
	readFormats(t, dir, true)
}

// readFormats reads the files of each version. Those that have hashes have every section.
func readFormats(t *testing.T, dir string, hashes bool) {
	for _, version := range formats {
		t.Run(version, func(t *testing.T) {
			closed(t)
			want := foreign(t, version, hashes)
			path := filepath.Join(dir, "output."+version+".h5")
			got, err := ReadOutput(t.Context(), []string{path}, noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			if got.Version != version {
				t.Errorf("version %s", got.Version)
			}
			same(t, "output", got, want)
			sameUnits(t, got.units, version)

			k, err := ReadState(t.Context(), filepath.Join(dir, "checkpoint."+version+".h5"), noWarnings(t))
			if err != nil {
				t.Fatal(err)
			}
			history := mustBuild(t, record.NewBuilder(record.AnyKeys()).Floats("1", []float64{1, 2}).Floats("2", []float64{3}))
			stepper := mustBuild(t, record.NewBuilder(record.AnyKeys()).Text("type", "bdf").Float("step_length", 0.125).Record("history", history))
			same(t, "checkpoint", k, &Checkpoint{
				Settings: want.Settings, Layout: want.Layout, Time: 0.25, State: foreignState(0), Segment: 2, SavedCount: 6,
				Summary: Summary{Attempted: 9, Accepted: 7, WallTime: 1.5},
				Stepper: stepper, HasStepper: true,
				Updates: []UpdateState{{"flux", []float64{0, 7}}},
			})
			sameUnits(t, k.Units(), version)
		})
	}
}

func sameUnits(t *testing.T, got map[string]string, version string) {
	t.Helper()
	want := map[string]string{}
	if version == "0.0.5" {
		want = map[string]string{"I": "A", "n": "m^-3", "f": "", "hot": "1/m"}
	}
	same(t, "stored units", got, want)
}

func mustBuild(t *testing.T, b *record.Builder) record.Record {
	t.Helper()
	r, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func foreignState(t int) []float64 {
	var state []float64
	for k, n := range []int{1, 6, 8, 4, 3} {
		for i := range n {
			state = append(state, float64(100*k+t)+float64(i)/1024)
		}
	}
	return state
}

// foreign is what the script writes: every group reads as a record, and what a version
// lacks has its default.
func foreign(t *testing.T, version string, hashes bool) *Solution {
	t.Helper()
	any := func() *record.Builder { return record.NewBuilder(record.AnyKeys()) }
	terms := mustBuild(t, any().
		Record("drift", mustRecord(t, "name", "drift", "order_of", 2)).
		Record("advection", mustRecord(t, "name", "advection", "upwind", false)))
	points := mustBuild(t, any().Floats("1", []float64{1, 2}).Ints("2", []int64{1, 2, 3, 4}, 2, 2))
	system := mustBuild(t, any().Float("tolerance", 1e-8).Int("iterations", 20).Bool("adaptive", true).
		Record("terms", terms).Record("points", points).Texts("names", []string{"E", "f"}))
	segment := mustRecord(t, "index", 2, "start_time", 0.0, "saved_before", 5)
	grids := mustRecord(t, "grid_1", mustRecord(t, "p_faces", []float64{0, 1, 2}, "xi_faces", []float64{-1, 0, 1}))

	s := &Solution{
		Times: []float64{0, 0.5}, States: [][]float64{foreignState(0), foreignState(1)},
		Updates: []UpdateStates{{"flux", [][]float64{{0, 7}, {1, 7}}}},
	}
	s.Layout = Layout{
		R: []float64{0, 0.5, 1},
		Grids: []MomentumGrid{
			{Name: "grid_1", P: []float64{0, 1, 2}, Xi: []float64{-1, 0, 1}},
			{Name: "grid_2", P: []float64{0, 1, 2, 3}, Xi: []float64{-1, 1}},
		},
		Unknowns: []Unknown{
			{Name: "I", Kind: Scalar, Scale: 1e6},
			{Name: "n", Kind: Radial, Scale: 1, Components: 3},
			{Name: "f", Kind: Kinetic, Scale: 1, Grids: []string{"grid_1"}},
			{Name: "hot", Kind: Kinetic, Scale: 1, Grids: []string{"grid_1", "grid_2"}},
		},
	}
	unknown := math.NaN()
	s.Statistics = Statistics{
		Time: []float64{0.5, 0.25, 0.5}, StepLength: []float64{0.5, 0.25, 0.25},
		Accepted: []bool{false, false, false}, NonlinearIterations: []int64{0, 0, 0}, LinearIterations: []int64{0, 0, 0},
		ErrorEstimate: []float64{unknown, unknown, unknown}, WallTime: []float64{unknown, unknown, unknown},
		Outcome: []string{"unknown", "unknown", "unknown"},
	}
	if version >= "0.0.2" {
		s.Statistics.Accepted, s.Statistics.NonlinearIterations = []bool{false, true, true}, []int64{3, 2, 1}
	}
	if version >= "0.0.3" {
		s.Statistics.Outcome = []string{"rejected", "converged", "converged"}
		s.Statistics.IterationAttempt = []int64{1, 1, 1, 2, 2, 3}
		s.Statistics.IterationResidual = []float64{1, 0.5, 0.25, 1, 1e-9, 0}
		segment = mustRecord(t, "index", 2, "start_time", 0.0, "saved_before", 5, "attempts_before", 4)
	}
	if version >= "0.0.4" {
		s.Statistics.ErrorEstimate, s.Statistics.WallTime = []float64{2, 0.5, 0.25}, []float64{0.1, 0.2, 0.3}
		s.Layout.Unknowns[1].Groups = []int{0, 2}
		s.Layout.Unknowns[1].Lower = &LowerLimit{Tolerance: 0.5, Value: 2, Reference: "I"}
		s.Layout.Unknowns[2].Lower = &LowerLimit{Tolerance: 0.25}
	}
	if version >= "0.0.5" {
		for i, unit := range []string{"A", "m^-3", "", "1/m"} {
			s.Layout.Unknowns[i].Unit = unit
		}
	}
	if !hashes {
		s.Settings = mustBuild(t, any().Record("grids", grids).Record("system", system).
			Text("setup_hash", "a hash of another writer").Record("segment", segment))
		return s
	}
	b := any()
	for _, name := range sections {
		switch name {
		case "grids":
			b.Record(name, grids)
		case "system":
			b.Record(name, system)
		default:
			b.Record(name, mustRecord(t, "of", name))
		}
	}
	s.Settings = mustBuild(t, b.Record("hashes", hashesOfOthers(t)).Text("setup_hash", hashOfOthers("setup")).Record("segment", segment))
	return s
}

// sections are those of the settings that have a hash.
var sections = []string{"grids", "layout", "system", "updates", "prescribed", "solver", "time", "run"}

// hashOfOthers is a hash that only its writer can compute.
func hashOfOthers(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

func hashesOfOthers(t *testing.T) record.Record {
	t.Helper()
	b := record.NewBuilder()
	for _, name := range sections {
		b.Text(name, hashOfOthers(name))
	}
	return mustBuild(t, b)
}

// The order of the records of a list is known from files of others too.
func TestListsOfOthersAreInTheirOrder(t *testing.T) {
	closed(t)
	s, err := ReadSettings(t.Context(), "testdata/golden/output.0.0.5.h5")
	if err != nil {
		t.Fatal(err)
	}
	terms, err := s.Record("system/terms")
	if err != nil {
		t.Fatal(err)
	}
	if keys := terms.Keys(); !slices.Equal(keys, []string{"drift", "advection"}) {
		t.Errorf("got %v", keys)
	}
}
