package xdmf

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// python is the interpreter that Debian's python3-h5py belongs to.
const python = "/usr/bin/python3"

func runPython(t *testing.T, args ...string) []byte {
	t.Helper()
	if err := exec.Command(python, "-c", "import h5py").Run(); err != nil {
		if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
			t.Fatal("h5py is required:", err)
		}
		t.Skip("no h5py to compare with:", err)
	}
	var errors bytes.Buffer
	cmd := exec.Command(python, args...)
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errors.Bytes())
	}
	return out
}

// A reader that knows XDMF and HDF5 finds every value of a hyperslab at its point.
func TestPythonResolvesHyperslabs(t *testing.T) {
	dir := t.TempDir()
	const make = `
import sys, h5py, numpy as np
t, z, y, x = np.mgrid[0:4, 0:3, 0:4, 0:5]
with h5py.File(sys.argv[1], "w") as f:
    f["unknowns/phi"] = t * 1000. + z * 100 + y * 10 + x
    f["unknowns/T"] = -(t * 1000. + z * 100 + y * 10 + x)
`
	if err := os.Mkdir(filepath.Join(dir, "sub dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	runPython(t, "-c", make, filepath.Join(dir, "sub dir", "run.h5"))
	indices := []int{3, 1}
	s := Series{Name: "run"}
	for _, i := range indices {
		s.Steps = append(s.Steps, step(i, slab("phi", "sub dir/run.h5", 4, i), slab("T", "sub dir/run.h5", 4, i)))
	}
	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "run.xmf")
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	var files [][]struct {
		Time            float64
		Origin, Spacing []float64
		Values          map[string][]float64
	}
	if err := json.Unmarshal(runPython(t, "testdata/resolve.py", path), &files); err != nil {
		t.Fatal(err)
	}
	shown := files[0]
	if len(shown) != len(indices) {
		t.Fatalf("%d times", len(shown))
	}
	for n, i := range indices {
		want := s.Steps[n]
		got := shown[n]
		if got.Time != want.Time || got.Origin[0] != want.Origin[2] || got.Origin[2] != want.Origin[0] || got.Spacing[0] != want.Spacing[2] || got.Spacing[2] != want.Spacing[0] {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if len(got.Values["phi"]) != 60 || len(got.Values["T"]) != 60 {
			t.Fatalf("%d and %d values", len(got.Values["phi"]), len(got.Values["T"]))
		}
		for cell := range 60 {
			x, y, z := cell%5, cell/5%4, cell/20
			value := float64(i*1000 + z*100 + y*10 + x)
			if got.Values["phi"][cell] != value || got.Values["T"][cell] != -value {
				t.Errorf("cell (%d, %d, %d) at time %d: %v and %v, want %v", x, y, z, i, got.Values["phi"][cell], got.Values["T"][cell], value)
			}
		}
	}
}
