//go:build hdf5

package h5_test

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// HDF5 itself takes the scales for attached, however many axes they have.
func TestScales(t *testing.T) {
	f, name := create(t)
	must(t, h5.CreateDataset[float64](f, "time", h5.Layout{Shape: []int{2}, Chunk: []int{8}, Extendible: true}))
	must(t, h5.Write(f, "axes/x", []float64{0.5, 1.5, 2.5}, 3))
	must(t, f.MakeScale("time"))
	must(t, f.MakeScale("axes/x"))
	// A list of this many doesn't fit into the header of an object.
	const n = 4200
	var list []h5.Scaled
	for i := range n {
		path := fmt.Sprintf("many/d%d", i)
		must(t, h5.CreateDataset[float64](f, path, h5.Layout{Shape: []int{2, 3}}))
		list = append(list, h5.Scaled{Dataset: path, Scales: []string{"time", "axes/x"}})
	}
	must(t, f.AttachScales(list[:1])) // the second list comes in place of the first
	must(t, f.AttachScales(list))
	must(t, f.Close())

	f, err := h5.OpenReadWrite(name)
	must(t, err)
	must(t, f.Extend("time", 5))
	must(t, f.Close())
	runPython(t, "scales", name)
}

func TestScalesThatCannotBe(t *testing.T) {
	f, _ := create(t)
	must(t, h5.Write(f, "x", []float64{0, 1, 2}, 3))
	must(t, h5.Write(f, "y", []float64{0, 1}, 2))
	must(t, h5.Write(f, "plane", make([]float64, 6), 2, 3))
	must(t, h5.Write(f, "number", []float64{1}))
	must(t, f.CreateGroup("group"))
	attach := func(dataset string, scales ...string) error {
		return f.AttachScales([]h5.Scaled{{Dataset: dataset, Scales: scales}})
	}
	for name, tc := range map[string]struct {
		err, want error
		text      string
	}{
		"a scale of two axes":      {f.MakeScale("plane"), h5.ErrShape, "plane"},
		"a scale that is a number": {f.MakeScale("number"), h5.ErrShape, "number"},
		"a group as a scale":       {f.MakeScale("group"), h5.ErrKind, "group"},
		"no scale":                 {f.MakeScale("z"), fs.ErrNotExist, "z"},
		"too few":                  {attach("plane", "x"), h5.ErrShape, "plane"},
		"another length":           {attach("plane", "x", "y"), h5.ErrShape, "scale x is 3 long, for axis 0"},
		"attached to a number":     {attach("number"), h5.ErrShape, "number"},
		"attached to a group":      {attach("group", "x"), h5.ErrKind, "group"},
		"attached to nothing":      {attach("z", "x"), fs.ErrNotExist, "z"},
		"two axes attached":        {attach("x", "plane"), h5.ErrShape, "plane"},
		"nothing attached":         {attach("x", "z"), fs.ErrNotExist, "z"},
	} {
		if !errors.Is(tc.err, tc.want) || !strings.Contains(tc.err.Error(), tc.text) {
			t.Errorf("%s: error is %v, want %v with %q", name, tc.err, tc.want, tc.text)
		}
	}
	must(t, attach("plane", "y", "x")) // nothing of that was a failure of the file
	names, err := f.Attributes("plane")
	must(t, err)
	if !slices.Equal(names, []string{"DIMENSION_LIST"}) {
		t.Errorf("attributes are %q", names)
	}
	must(t, f.Close())
}
