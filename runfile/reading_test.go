//go:build hdf5 && !mpi

package runfile

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/grid"
)

// pageSolution is the run of README.md and docs/reading-run-files.md.
func pageSolution(t *testing.T) (*Solution, FieldReader) {
	t.Helper()
	domain := grid.Domain{Size: [3]int{4, 3, 2}, Spacing: [3]float64{0.5, 0.5, 0.5}}
	s := &Solution{
		Settings: mustRecord(t, "segment", mustRecord(t, "index", 1, "status", "completed")),
		Layout: Layout{R: []float64{0, 0.5, 1}, Unknowns: []Unknown{
			{Name: "psi", Kind: Field, Unit: "1", Domain: domain},
			{Name: "temperature", Kind: Radial, Unit: "K", Components: 1},
			{Name: "solid_fraction", Kind: Scalar, Unit: "1"},
		}},
		Times:  []float64{0, 1, 2},
		States: [][]float64{{0, 0.5, 0}, {1, 1.5, 0.25}, {2, 2.5, 0.5}},
		Statistics: Statistics{
			Time: []float64{1, 2}, StepLength: []float64{1, 1}, Accepted: []bool{true, true}, Outcome: []string{"converged", "converged"},
			IterationAttempt: []int64{1, 2, 2}, IterationResidual: []float64{0, 1, 0},
		},
	}
	return s, func(_ context.Context, _ string, state int, b grid.Box, dst []float64) error {
		for i := range dst {
			x, y, z := b.Low[0]+i%b.Size[0], b.Low[1]+i/b.Size[0]%b.Size[1], b.Low[2]+i/(b.Size[0]*b.Size[1])
			dst[i] = float64(state) + float64(x+10*y+100*z)/100
		}
		return nil
	}
}

// blocks are those of a language on a page, each with the block of text behind it.
func blocks(page, language string) (list [][2]string) {
	for {
		_, rest, ok := strings.Cut(page, "```"+language+"\n")
		if !ok {
			return list
		}
		code, rest, _ := strings.Cut(rest, "```")
		_, text, _ := strings.Cut(rest, "```text\n")
		text, _, _ = strings.Cut(text, "```")
		list = append(list, [2]string{code, text})
		page = rest
	}
}

// trimmed is a text without spaces at the ends of lines.
func trimmed(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// What the pages show in Python works, with what `scripts/deps` installs.
func TestPagesForReadersAreRight(t *testing.T) {
	closed(t)
	dir := t.TempDir()
	s, fields := pageSolution(t)
	if err := os.Mkdir(filepath.Join(dir, "results"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"dendrite.h5", SegmentFile("results", "dendrite", 1)} {
		if err := WriteOutput(t.Context(), filepath.Join(dir, file), s, Fields(fields)); err != nil {
			t.Fatal(err)
		}
	}
	var list [][2]string
	for _, page := range []string{"../README.md", "../docs/reading-run-files.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		own := blocks(string(text), "python")
		if len(own) == 0 {
			t.Errorf("%s shows nothing in Python", page)
		}
		list = append(list, own...)
	}
	shown := map[string]bool{"h5py": false, "xarray": false, "pandas": false}
	for _, block := range list {
		module := ""
		for name := range shown {
			// h5py is of use to pandas too.
			if strings.Contains(block[0], "import "+name) && (module == "" || module == "h5py") {
				module = name
			}
		}
		if _, ok := shown[module]; !ok {
			t.Fatalf("a block imports none of the packages:\n%s", block[0])
		}
		shown[module] = true
		t.Run(module, func(t *testing.T) {
			need := module
			if module == "xarray" {
				need = "xarray, h5netcdf"
			}
			if err := exec.Command(python, "-c", "import "+need).Run(); err != nil {
				if os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
					t.Fatalf("%s is required: %v", need, err)
				}
				t.Skipf("no %s: %v", need, err)
			}
			var out, complaints bytes.Buffer
			cmd := exec.Command(python, "-c", block[0])
			cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &complaints
			if err := cmd.Run(); err != nil || trimmed(out.String()) != block[1] {
				t.Errorf("%v\n%s\nit prints\n%s\nthe page has\n%s", err, complaints.String(), out.String(), block[1])
			}
		})
	}
	for name, ok := range shown {
		if !ok {
			t.Errorf("no page shows %s", name)
		}
	}
}
