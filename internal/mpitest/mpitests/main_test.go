package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What leads to MPI by any way is chosen, and nothing else.
func TestChosen(t *testing.T) {
	files := map[string]string{
		"a_test.go": `package a
func TestDirect(t *testing.T) { mpitest.Run(t, []int{2}, nil) }
func TestByAHelper(t *testing.T) { helper(t) }
func helper(t *testing.T) { launch() }
func launch() { j := mpitest.Start(nil, 2, "x", nil); j.Wait() }
func TestByAMethod(t *testing.T) { (kit{}).start() }
type kit struct{}
func (kit) start() { launch() }
func TestByATable(t *testing.T) { for _, c := range cases { c.run() } }
var cases = []struct{ run func() }{{launch}}
func TestByAnArgument(t *testing.T) { each(launch) }
func each(f func()) { f() }
func TestOfTheWorld(t *testing.T) { comm.World() }
func TestWithTheTag(t *testing.T) { if mpi.Enabled { return } }
func ExampleOfAJob() { launch() }
func TestOnGoroutines(t *testing.T) { comm.Run(2, body) }
func TestWithAMethodOfTheSameNameAsAFunction(t *testing.T) { t.launch() }
func body(t *mpitest.T) {}
func TestWithAnArgument(t *testing.T) { body(nil) }
func TestMain(m *testing.M) { mpitest.Main(m) }
`,
		"mpi_test.go":     "//go:build mpi && !hdf5\n\npackage a\nfunc TestTagged(t *testing.T) {}\n",
		"without_test.go": "//go:build !mpi && !hdf5\n\npackage a\nfunc TestWithout(t *testing.T) {}\n",
		"hdf5_test.go":    "//go:build hdf5\n\npackage a_test\nfunc TestOfHDF5(t *testing.T) {}\n",
		"either_test.go":  "//go:build hdf5 || mpi\n\npackage a_test\nfunc TestEither(t *testing.T) {}\n",
	}
	tests, dir := newTests(), t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := tests.read(path); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"ExampleOfAJob", "TestByAHelper", "TestByAMethod", "TestByATable", "TestByAnArgument",
		"TestDirect", "TestOfTheWorld", "TestTagged", "TestWithTheTag"}
	got := tests.chosen(false)
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("chosen are %q, want %q", got, want)
	}
	if all := tests.chosen(true); len(all) != 15 {
		t.Errorf("%d of a package that calls MPI, want all: %q", len(all), all)
	}
}

// The packages of this module: what launches ranks is there.
func TestOfThisModule(t *testing.T) {
	got, packages, err := choose([]string{"../../../grid", "../../../publish", "../../mpitest", "../../mpi"})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{module + "/internal/mpi", module + "/internal/mpitest", module + "/publish"}; !slices.Equal(slices.Sorted(slices.Values(packages)), want) {
		t.Errorf("packages are %q, want %q", packages, want)
	}
	for _, want := range []string{"TestAKilledJobLeavesNoPartialBundleAndTheNextGoesOn", "TestKill", "TestLinkedToOneMPI"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
	if unwanted := "TestACrashAfterAnyCallLosesNothing"; slices.Contains(got, unwanted) {
		t.Errorf("%s launches nothing", unwanted)
	}
}
