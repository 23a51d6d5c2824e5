//go:build hdf5

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/xdmf"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// python is the interpreter that Debian's python3-h5py belongs to.
const python = "/usr/bin/python3"

var resolver = absolute("../../internal/xdmf/testdata/resolve.py")

func TestXDMFGolden(t *testing.T) {
	runs(t)
	golden(t, "run.xmf", mustRun(t, 0, "xdmf", segment1, segment2, "-o", "-").out)
}

// shownStep is what a visualisation program shows at a time.
type shownStep struct {
	Time            float64
	Origin, Spacing []float64
	Values          map[string][]float64
}

func resolve(t *testing.T, paths []string) (files [][]shownStep) {
	t.Helper()
	if err := exec.Command(python, "-c", "import h5py").Run(); err != nil {
		if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
			t.Fatal("h5py is required:", err)
		}
		t.Skip("no h5py to compare with:", err)
	}
	cmd := exec.Command(python, append([]string{resolver}, paths...)...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &files)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errors.String())
	}
	return files
}

// An independent reader finds the values of every saved state at their points, whatever
// leads from the XDMF file to the run files. The state that is dropped is not shown.
func TestXDMFShowsTheFields(t *testing.T) {
	runs(t)
	if err := os.Mkdir("view", 0o777); err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args  []string
		path  string
		times []float64
	}{
		{[]string{segment1, segment2, "-o", "results/run.xmf"}, "results/run.xmf", []float64{0, 0.25, 0.5, 0.75, 1}},
		{[]string{segment1, segment2, "-o", "view/run.xmf"}, "view/run.xmf", []float64{0, 0.25, 0.5, 0.75, 1}},
		{[]string{filepath.Join(here, segment2), "-o", "view/one.xmf"}, "view/one.xmf", []float64{0.75, 1}},
		{[]string{segment1}, "results/decay.segment0001.xmf", []float64{0, 0.25, 0.5, 0.75}},
		{[]string{lastCheckpoint, "--field", "phi"}, "results/decay.checkpoint.xmf", []float64{1}},
	}
	var paths []string
	for _, c := range cases {
		mustRun(t, 0, append([]string{"xdmf"}, c.args...)...)
		paths = append(paths, c.path)
	}
	files := resolve(t, paths)
	for n, c := range cases {
		steps := files[n]
		if len(steps) != len(c.times) {
			t.Fatalf("%q: %d times, want %v", c.args, len(steps), c.times)
		}
		for i, s := range steps {
			if s.Time != c.times[i] || s.Origin[2] != runDomain.Origin[0] || s.Origin[0] != runDomain.Origin[2] || s.Spacing[1] != runDomain.Spacing[1] {
				t.Errorf("%q: %+v", c.args, s)
			}
			cell := 0
			for z := range runDomain.Size[2] {
				for y := range runDomain.Size[1] {
					for x := range runDomain.Size[0] {
						if got, want := s.Values["phi"][cell], value(s.Time, x, y, z); got != want {
							t.Errorf("%q: cell (%d, %d, %d) at %v s is %v, want %v", c.args, x, y, z, s.Time, got, want)
						}
						cell++
					}
				}
			}
			if len(s.Values) != 1 || len(s.Values["phi"]) != cell {
				t.Errorf("%q: %d fields, %d cells", c.args, len(s.Values), len(s.Values["phi"]))
			}
		}
	}
}

// What the command wrote it may write again, and nothing else.
func TestXDMFReplacesOnlyItsOwn(t *testing.T) {
	runs(t)
	const out = "results/decay.segment0001.xmf"
	mustRun(t, 0, "xdmf", segment1)
	first := read(t, out)
	says(t, mustRun(t, 0, "xdmf", segment1, segment2, "-o", out).out, out+": phi at 5 times\n")
	if string(read(t, out)) == string(first) {
		t.Error("it was not written again")
	}
	s, err := xdmf.Read(read(t, out))
	if err != nil || s.Name != "decay.segment0001" || len(s.Steps) != 5 {
		t.Errorf("%+v, %v", s, err)
	}
	edited := strings.Replace(string(first), "<Domain>", "<Domain><!-- mine -->", 1)
	write(t, out, []byte(edited))
	o := mustRun(t, 2, "xdmf", segment1)
	if want := "fieldstone: xdmf: " + out + ": exists (--overwrite replaces it)\n"; o.errors != want || string(read(t, out)) != edited {
		t.Errorf("%q, want %q", o.errors, want)
	}
	mustRun(t, 0, "xdmf", "--overwrite", segment1)
	if string(read(t, out)) != string(first) {
		t.Error("it was not replaced")
	}
	for path, want := range map[string]string{
		"/dev/full": "exists, and is no regular file", "results": "exists, and is no regular file",
		segment1: "is one of the files that are read", "no/where.xmf": "there is no directory no\n",
	} {
		says(t, mustRun(t, 2, "xdmf", segment1, "--overwrite", "-o", path).errors, "fieldstone: xdmf: "+path+": "+want)
	}
	if names := listed(t, "results"); len(names) != 5 {
		t.Errorf("left over: %v", names)
	}
}

func TestXDMFChoosesFields(t *testing.T) {
	runs(t)
	s, fields := firstSegment()
	psi, coarse := s.Layout.Unknowns[3], s.Layout.Unknowns[3]
	psi.Name, coarse.Name = "psi", "coarse"
	coarse.Domain.Size = [3]int{2, 2, 2}
	s.Layout.Unknowns = append(s.Layout.Unknowns, psi, coarse)
	save(t, "many.h5", s, fields)
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{nil, 2, "the fields phi and coarse have different grids: choose with --field"},
		{[]string{"--field", "coarse"}, 0, "many.xmf: coarse at 4 times"},
		{[]string{"--field", "psi", "--field", "phi"}, 0, "many.xmf: phi, psi at 4 times"},
		{[]string{"--field", "T"}, 2, `no field "T", the fields are: phi, psi, coarse`},
	} {
		o := mustRun(t, c.status, append([]string{"xdmf", "many.h5"}, c.args...)...)
		says(t, o.out+o.errors, c.says)
	}
	says(t, mustRun(t, 2, "xdmf", "theirs.h5").errors, "fieldstone: xdmf: there is no field in the file\n")
	none, fields := output(s.Settings)
	save(t, "none.h5", none, fields)
	says(t, mustRun(t, 2, "xdmf", "none.h5").errors, "fieldstone: xdmf: there is no saved state\n")
	// A field in a bundle is not in the checkpoint.
	k, _ := checkpoint(1, 2, 5)
	k.Bundles = map[string]string{"phi": "results/ckpt/step_4"}
	if err := runfile.WriteCheckpoint(t.Context(), "results", "decay", k); err != nil {
		t.Fatal(err)
	}
	says(t, mustRun(t, 2, "xdmf", lastCheckpoint).errors, "there is no field in the file")
	// Readers take a colon for the end of the path.
	write(t, "a:b.h5", read(t, segment1))
	says(t, mustRun(t, 2, "xdmf", "a:b.h5").errors, "contain a colon")
}
