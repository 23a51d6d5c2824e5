package xdmf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fieldstone-io/fieldstone/internal/nonfinite"
)

// A Series is what one .xmf file describes: a field or several at one or more
// times.
type Series struct {
	Name  string
	Steps []Step
}

// A Step is the state at one time. All its arrays lie on the same grid.
type Step struct {
	Name    string
	Time    float64
	Size    [3]int     // cells along x, y and z
	Origin  [3]float64 // position of the first cell's point
	Spacing [3]float64
	Arrays  []Array
}

// An Array is a field in a file of little-endian float64, x fastest, without
// padding.
type Array struct {
	Name string

	// Path is the file's, relative to the directory of the .xmf file and with
	// forward slashes; see [Relative].
	Path string

	// Offset is where the first cell starts, in bytes.
	Offset int64

	// Complex tells that each cell is two numbers, the real and the imaginary
	// part.
	Complex bool

	// Slab says that the file is an HDF5 file, and where the field is in it. There
	// is no offset then, and the field is real.
	Slab *Slab
}

// A Slab is one entry along the first axis of an HDF5 dataset of float64. The other
// axes are z, y and x.
type Slab struct {
	Dataset string // path from the root of the file, such as "unknowns/phi"
	Extent  int    // of the first axis
	Index   int    // along it, from 0
}

// Relative returns the path of file as an .xmf file at the path xmf has to
// name it.
func Relative(xmf, file string) (string, error) {
	p, err := filepath.Rel(filepath.Dir(xmf), file)
	if err != nil {
		return "", fmt.Errorf("xdmf: %w", err)
	}
	return filepath.ToSlash(p), nil
}

// Write writes s as an XDMF file. The same series gives the same bytes. They
// go to w in a single call, and only once the series has been found valid.
func Write(w io.Writer, s Series) error {
	var b bytes.Buffer
	if err := s.encode(&b); err != nil {
		return fmt.Errorf("xdmf: series %q: %w", s.Name, err)
	}
	n, err := w.Write(b.Bytes())
	if err == nil && n < b.Len() {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("xdmf: series %q: write: %w", s.Name, err)
	}
	return nil
}

func (s Series) encode(b *bytes.Buffer) error {
	if err := checkText(s.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if len(s.Steps) == 0 {
		return errors.New("no steps")
	}
	b.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Xdmf Version=\"3.0\">\n  <Domain>\n")
	fmt.Fprintf(b, "    <Grid Name=\"%s\" GridType=\"Collection\" CollectionType=\"Temporal\">\n", escaped(s.Name))
	for _, step := range s.Steps {
		if err := step.encode(b); err != nil {
			return fmt.Errorf("step %q: %w", step.Name, err)
		}
	}
	b.WriteString("    </Grid>\n  </Domain>\n</Xdmf>\n")
	return nil
}

func (s Step) encode(b *bytes.Buffer) error {
	if err := s.check(); err != nil {
		return err
	}
	dimensions := fmt.Sprintf("%d %d %d", s.Size[2], s.Size[1], s.Size[0])
	fmt.Fprintf(b, "      <Grid Name=\"%s\" GridType=\"Uniform\">\n", escaped(s.Name))
	fmt.Fprintf(b, "        <Time Value=\"%s\"/>\n", number(s.Time))
	fmt.Fprintf(b, "        <Topology TopologyType=\"3DCoRectMesh\" Dimensions=\"%s\"/>\n", dimensions)
	b.WriteString("        <Geometry GeometryType=\"ORIGIN_DXDYDZ\">\n")
	for _, v := range [][3]float64{s.Origin, s.Spacing} {
		fmt.Fprintf(b, "          <DataItem Dimensions=\"3\" NumberType=\"Float\" Precision=\"8\" Format=\"XML\">%s %s %s</DataItem>\n",
			number(v[2]), number(v[1]), number(v[0]))
	}
	b.WriteString("        </Geometry>\n")
	for _, a := range s.Arrays {
		kind := "Scalar"
		if a.Complex {
			kind = "Vector"
		}
		fmt.Fprintf(b, "        <Attribute Name=\"%s\" AttributeType=\"%s\" Center=\"Node\">\n", escaped(a.Name), kind)
		a.encode(b, dimensions)
		b.WriteString("        </Attribute>\n")
	}
	b.WriteString("      </Grid>\n")
	return nil
}

// encode writes where the numbers are that make up a mesh of the dimensions.
func (a Array) encode(b *bytes.Buffer, dimensions string) {
	if a.Slab == nil {
		shape := dimensions
		if a.Complex {
			shape += " 2"
		}
		fmt.Fprintf(b, "          <DataItem Dimensions=\"%s\" NumberType=\"Float\" Precision=\"8\" Format=\"Binary\" Endian=\"Little\" Seek=\"%d\">%s</DataItem>\n",
			shape, a.Offset, escaped(a.Path))
		return
	}
	fmt.Fprintf(b, "          <DataItem ItemType=\"HyperSlab\" Dimensions=\"%s\">\n", dimensions)
	// Start, stride and count along each axis.
	fmt.Fprintf(b, "            <DataItem Dimensions=\"3 4\" NumberType=\"Int\" Precision=\"8\" Format=\"XML\">%d 0 0 0 1 1 1 1 1 %s</DataItem>\n",
		a.Slab.Index, dimensions)
	fmt.Fprintf(b, "            <DataItem Dimensions=\"%d %s\" NumberType=\"Float\" Precision=\"8\" Format=\"HDF\">%s:/%s</DataItem>\n",
		a.Slab.Extent, dimensions, escaped(a.Path), escaped(a.Slab.Dataset))
	b.WriteString("          </DataItem>\n")
}

func (s Step) check() error {
	if err := checkText(s.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if !nonfinite.Finite(s.Time) {
		return fmt.Errorf("time is %v", s.Time)
	}
	for a := range 3 {
		if s.Size[a] <= 0 {
			return fmt.Errorf("size along %c is %d, want 1 or more", "xyz"[a], s.Size[a])
		}
		if !nonfinite.Finite(s.Origin[a]) {
			return fmt.Errorf("origin along %c is %v", "xyz"[a], s.Origin[a])
		}
		if !nonfinite.Finite(s.Spacing[a]) || s.Spacing[a] <= 0 {
			return fmt.Errorf("spacing along %c is %v, want a finite number above 0", "xyz"[a], s.Spacing[a])
		}
	}
	seen := make(map[string]bool, len(s.Arrays))
	for _, a := range s.Arrays {
		if err := a.check(); err != nil {
			return fmt.Errorf("array %q: %w", a.Name, err)
		}
		if seen[a.Name] {
			return fmt.Errorf("array %q: listed twice", a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

func (a Array) check() error {
	if a.Name == "" {
		return errors.New("no name")
	}
	if err := checkText(a.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if err := checkText(a.Path); err != nil {
		return fmt.Errorf("path %q: %w", a.Path, err)
	}
	switch {
	case a.Path == "":
		return errors.New("no path")
	case path.IsAbs(a.Path):
		return fmt.Errorf("path %q is not relative", a.Path)
	case strings.TrimSpace(a.Path) != a.Path:
		// Readers strip it, and then look for another file.
		return fmt.Errorf("path %q begins or ends with white space", a.Path)
	case strings.Contains(a.Path, "|"):
		// The XDMF library takes it for the start of the next file's path.
		return fmt.Errorf("path %q contains a |", a.Path)
	case a.Offset < 0:
		return fmt.Errorf("offset is %d", a.Offset)
	case a.Slab != nil:
		return a.checkSlab()
	}
	return nil
}

func (a Array) checkSlab() error {
	s := a.Slab
	if err := checkText(s.Dataset); err != nil {
		return fmt.Errorf("dataset %q: %w", s.Dataset, err)
	}
	switch {
	case s.Dataset == "":
		return errors.New("no dataset")
	case strings.HasPrefix(s.Dataset, "/"):
		return fmt.Errorf("dataset %q begins with a /", s.Dataset)
	case strings.TrimSpace(s.Dataset) != s.Dataset, strings.Contains(s.Dataset, "|"):
		return fmt.Errorf("dataset %q contains a | or ends with white space", s.Dataset)
	case strings.Contains(a.Path+s.Dataset, ":"):
		// It separates the two, and readers differ in which one they take.
		return fmt.Errorf("path %q and dataset %q contain a colon", a.Path, s.Dataset)
	case a.Offset != 0 || a.Complex:
		return errors.New("a dataset has no offset and is not complex")
	case s.Index < 0 || s.Index >= s.Extent:
		return fmt.Errorf("index %d of %d", s.Index, s.Extent)
	}
	return nil
}

// number is the shortest text that reads back as v.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

// checkText refuses what XML 1.0 has no way to write. Line breaks and tabs
// could be written, but not every reader keeps them.
func checkText(s string) error {
	if !utf8.ValidString(s) {
		return errors.New("not valid UTF-8")
	}
	for _, r := range s {
		if r < 0x20 || r == 0x7f || r == 0xfffe || r == 0xffff {
			return fmt.Errorf("contains the character %U", r)
		}
	}
	return nil
}

func escaped(s string) string {
	var b strings.Builder
	// A strings.Builder takes every write.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
