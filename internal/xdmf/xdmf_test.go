package xdmf

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func step(index int, arrays ...Array) Step {
	return Step{
		Name:    fmt.Sprintf("step %d", index),
		Time:    float64(index) * 0.25,
		Size:    [3]int{5, 4, 3},
		Origin:  [3]float64{-1, 0.5, 1e-9},
		Spacing: [3]float64{0.1, 0.25, 1. / 3},
		Arrays:  arrays,
	}
}

func slab(name, path string, extent, index int) Array {
	return Array{Name: name, Path: path, Slab: &Slab{Dataset: "unknowns/" + name, Extent: extent, Index: index}}
}

func TestGoldenFiles(t *testing.T) {
	for _, c := range []struct {
		name   string
		series Series
	}{
		{"one_field", Series{Name: "psi", Steps: []Step{step(10, Array{Name: "psi", Path: "psi_0010.bin"})}}},
		{"several_fields", Series{Name: "bundle", Steps: []Step{step(7,
			Array{Name: "phi", Path: "fields/phi.bin"},
			Array{Name: "T", Path: "fields/T.bin", Offset: 480},
			Array{Name: "psi_k", Path: "../dumps/psi_k.bin", Complex: true},
		)}}},
		{"a_series", Series{Name: "psi", Steps: []Step{
			step(0, Array{Name: "psi", Path: "psi_0000.bin"}),
			step(1, Array{Name: "psi", Path: "psi_0001.bin"}),
			step(20, Array{Name: "psi", Path: "psi_0020.bin"}),
		}}},
		{"two_dimensions", Series{Name: "flat", Steps: []Step{{
			Name: "0", Size: [3]int{300, 200, 1}, Spacing: [3]float64{0.03, 0.03, 1},
			Arrays: []Array{{Name: "phi", Path: "phi.bin"}},
		}}}},
		{"names_to_escape", Series{Name: `<&"'>`, Steps: []Step{step(1,
			Array{Name: `Φ & "T" <x>`, Path: `a <b> & "c" ü/d'e.bin`},
		)}}},
		{"hyperslabs", Series{Name: "run", Steps: []Step{
			step(0, slab("phi", "run.segment0001.h5", 2, 0), slab(`T <"&">`, "run.segment0001.h5", 2, 0)),
			step(1, slab("phi", "run.segment0001.h5", 2, 1), slab(`T <"&">`, "run.segment0001.h5", 2, 1)),
			step(2, slab("phi", "../more & more/run.segment0002.h5", 5, 3)),
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got bytes.Buffer
			if err := Write(&got, c.series); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", c.name+".xmf")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("got\n%s\nwant\n%s", got.Bytes(), want)
			}
		})
	}
}

// The document as a reader sees it.
type document struct {
	XMLName xml.Name `xml:"Xdmf"`
	Version string   `xml:"Version,attr"`
	Series  struct {
		Name           string     `xml:"Name,attr"`
		GridType       string     `xml:"GridType,attr"`
		CollectionType string     `xml:"CollectionType,attr"`
		Grids          []gridNode `xml:"Grid"`
	} `xml:"Domain>Grid"`
}

type gridNode struct {
	Name     string `xml:"Name,attr"`
	GridType string `xml:"GridType,attr"`
	Time     struct {
		Value float64 `xml:"Value,attr"`
	} `xml:"Time"`
	Topology struct {
		Type       string `xml:"TopologyType,attr"`
		Dimensions string `xml:"Dimensions,attr"`
	} `xml:"Topology"`
	Geometry struct {
		Type  string     `xml:"GeometryType,attr"`
		Items []dataItem `xml:"DataItem"`
	} `xml:"Geometry"`
	Attributes []struct {
		Name   string   `xml:"Name,attr"`
		Type   string   `xml:"AttributeType,attr"`
		Center string   `xml:"Center,attr"`
		Item   dataItem `xml:"DataItem"`
	} `xml:"Attribute"`
}

type dataItem struct {
	Dimensions string `xml:"Dimensions,attr"`
	NumberType string `xml:"NumberType,attr"`
	Precision  int    `xml:"Precision,attr"`
	Format     string `xml:"Format,attr"`
	Endian     string `xml:"Endian,attr"`
	Seek       int64  `xml:"Seek,attr"`
	Content    string `xml:",chardata"`
}

func numbers[T any](t *testing.T, text string, parse func(string) (T, error)) []T {
	t.Helper()
	var out []T
	for _, word := range strings.Fields(text) {
		v, err := parse(word)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func parseFloat(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// read returns the numbers of a binary item, the last axis fastest.
func (d dataItem) read(t *testing.T, dir string) ([]float64, []int) {
	t.Helper()
	if d.NumberType != "Float" || d.Precision != 8 || d.Format != "Binary" || d.Endian != "Little" {
		t.Fatalf("got %+v", d)
	}
	shape := numbers(t, d.Dimensions, strconv.Atoi)
	n := 1
	for _, s := range shape {
		n *= s
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(d.Content)))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values := make([]float64, n)
	if err := binary.Read(io.NewSectionReader(f, d.Seek, int64(8*n)), binary.LittleEndian, values); err != nil {
		t.Fatal(err)
	}
	return values, shape
}

// A field whose value says where its point is must be found there by a reader
// that knows only the document.
func TestAReaderFindsEveryValueAtItsPoint(t *testing.T) {
	dir := t.TempDir()
	scalar := Array{Name: `real "part" & more`, Path: "sub dir/räal.bin", Offset: 24}
	pair := Array{Name: "complex", Path: "complex.bin", Complex: true}
	s := Series{Name: "series", Steps: []Step{step(3, scalar, pair), step(4, pair)}}
	size, origin, spacing := s.Steps[0].Size, s.Steps[0].Origin, s.Steps[0].Spacing

	value := func(x, y, z float64) float64 { return x + 100*y + 10000*z }
	reals, complexes := make([]float64, 3), []float64(nil) // 24 bytes of something else
	for k := range size[2] {
		for j := range size[1] {
			for i := range size[0] {
				v := value(
					origin[0]+float64(i)*spacing[0],
					origin[1]+float64(j)*spacing[1],
					origin[2]+float64(k)*spacing[2])
				reals = append(reals, v)
				complexes = append(complexes, v, -v)
			}
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub dir"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, values := range map[string][]float64{scalar.Path: reals, pair.Path: complexes} {
		var b bytes.Buffer
		if err := binary.Write(&b, binary.LittleEndian, values); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}

	var b bytes.Buffer
	if err := Write(&b, s); err != nil {
		t.Fatal(err)
	}
	var d document
	if err := xml.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "3.0" || d.Series.Name != "series" || d.Series.GridType != "Collection" || d.Series.CollectionType != "Temporal" {
		t.Fatalf("got %+v", d)
	}
	if len(d.Series.Grids) != 2 || len(d.Series.Grids[0].Attributes) != 2 || len(d.Series.Grids[1].Attributes) != 1 {
		t.Fatalf("got %+v", d.Series.Grids)
	}
	for n, g := range d.Series.Grids {
		want := s.Steps[n]
		if g.Name != want.Name || g.Time.Value != want.Time || g.GridType != "Uniform" ||
			g.Topology.Type != "3DCoRectMesh" || g.Geometry.Type != "ORIGIN_DXDYDZ" || len(g.Geometry.Items) != 2 {
			t.Fatalf("got %+v", g)
		}
		mesh := numbers(t, g.Topology.Dimensions, strconv.Atoi)
		start := numbers(t, g.Geometry.Items[0].Content, parseFloat)
		step := numbers(t, g.Geometry.Items[1].Content, parseFloat)
		for i, a := range g.Attributes {
			if a.Name != want.Arrays[i].Name || a.Center != "Node" {
				t.Fatalf("got %+v", a)
			}
			values, shape := a.Item.read(t, dir)
			components := 1
			if want.Arrays[i].Complex {
				components = 2
				if a.Type != "Vector" || len(shape) != 4 || shape[3] != 2 {
					t.Fatalf("got %+v", a)
				}
			} else if a.Type != "Scalar" {
				t.Fatalf("got %+v", a)
			}
			for axis, nodes := range mesh {
				if shape[axis] != nodes {
					t.Fatalf("data has shape %v on a mesh of %v nodes", shape, mesh)
				}
			}
			for slow := range mesh[0] {
				for middle := range mesh[1] {
					for fast := range mesh[2] {
						got := values[((slow*mesh[1]+middle)*mesh[2]+fast)*components:][:components]
						want := value(
							start[2]+float64(fast)*step[2],
							start[1]+float64(middle)*step[1],
							start[0]+float64(slow)*step[0])
						if got[0] != want || (components == 2 && got[1] != -want) {
							t.Fatalf("%q: node %d %d %d is %v, want %v", a.Name, slow, middle, fast, got, want)
						}
					}
				}
			}
		}
	}
}

func TestWhatNoReaderCouldUseIsRefused(t *testing.T) {
	good := Array{Name: "psi", Path: "psi.bin"}
	with := func(change func(*Step)) Series {
		s := step(1, good)
		change(&s)
		return Series{Name: "series", Steps: []Step{s}}
	}
	array := func(a Array) Series { return Series{Name: "series", Steps: []Step{step(1, good, a)}} }
	for _, c := range []struct {
		name   string
		series Series
		want   string
	}{
		{"no steps", Series{Name: "empty"}, `series "empty": no steps`},
		{"a control character in the series' name", Series{Name: "a\x01", Steps: []Step{step(1)}}, "U+0001"},
		{"a line break in a step's name", with(func(s *Step) { s.Name = "a\nb" }), "U+000A"},
		{"no time", with(func(s *Step) { s.Time = math.NaN() }), `step "step 1": time is NaN`},
		{"infinite time", with(func(s *Step) { s.Time = math.Inf(1) }), "time is +Inf"},
		{"no cells", with(func(s *Step) { s.Size[1] = 0 }), "size along y is 0"},
		{"negative size", with(func(s *Step) { s.Size[2] = -3 }), "size along z is -3"},
		{"origin at infinity", with(func(s *Step) { s.Origin[0] = math.Inf(-1) }), "origin along x is -Inf"},
		{"spacing 0", with(func(s *Step) { s.Spacing[2] = 0 }), "spacing along z is 0"},
		{"no spacing", with(func(s *Step) { s.Spacing[0] = math.NaN() }), "spacing along x is NaN"},
		{"the same array twice", array(good), `array "psi": listed twice`},
		{"an array without a name", array(Array{Path: "a.bin"}), "no name"},
		{"an array without a path", array(Array{Name: "a"}), `array "a": no path`},
		{"an absolute path", array(Array{Name: "a", Path: "/tmp/a.bin"}), "not relative"},
		{"a path that ends with a space", array(Array{Name: "a", Path: "a.bin "}), "white space"},
		{"a path with the list separator", array(Array{Name: "a", Path: "a|b.bin"}), "contains a |"},
		{"a path with a NUL", array(Array{Name: "a", Path: "a\x00.bin"}), "U+0000"},
		{"a name that is not UTF-8", array(Array{Name: "a\xff", Path: "a.bin"}), "not valid UTF-8"},
		{"a slab beyond its dataset", array(slab("a", "a.h5", 2, 2)), "index 2 of 2"},
		{"a slab before its dataset", array(slab("a", "a.h5", 2, -1)), "index -1 of 2"},
		{"a colon in the path of an HDF5 file", array(slab("a", "a:b.h5", 2, 0)), "colon"},
		{"a colon in the name of a dataset", array(slab("a:b", "a.h5", 2, 0)), "colon"},
		{"a list separator in the name of a dataset", array(slab("a|b", "a.h5", 2, 0)), "contains a |"},
		{"a dataset that ends with a space", array(slab("a ", "a.h5", 2, 0)), "white space"},
		{"a dataset with a line break", array(slab("a\nb", "a.h5", 2, 0)), "U+000A"},
		{"no dataset", array(Array{Name: "a", Path: "a.h5", Slab: &Slab{Extent: 1}}), "no dataset"},
		{"an absolute dataset", array(Array{Name: "a", Path: "a.h5", Slab: &Slab{Dataset: "/a", Extent: 1}}), "begins with a /"},
		{"a dataset at an offset", array(Array{Name: "a", Path: "a.h5", Offset: 8, Slab: &Slab{Dataset: "a", Extent: 1}}), "no offset"},
		{"a complex dataset", array(Array{Name: "a", Path: "a.h5", Complex: true, Slab: &Slab{Dataset: "a", Extent: 1}}), "not complex"},
		{"a negative offset", array(Array{Name: "a", Path: "a.bin", Offset: -8}), "offset is -8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b bytes.Buffer
			err := Write(&b, c.series)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if b.Len() != 0 {
				t.Errorf("%d bytes were written", b.Len())
			}
		})
	}
}

// A writer notes its calls and takes at most limit bytes.
type writer struct {
	calls, limit int
	err          error
}

func (w *writer) Write(p []byte) (int, error) {
	w.calls++
	return min(len(p), w.limit), w.err
}

func TestTheFileIsWrittenInOneCheckedCall(t *testing.T) {
	s := Series{Name: "psi", Steps: []Step{step(1, Array{Name: "psi", Path: "psi.bin"}), step(2)}}
	full := errors.New("no space left on device")
	for _, c := range []struct {
		name   string
		writer writer
		want   error
	}{
		{"all of it", writer{limit: math.MaxInt}, nil},
		{"an error", writer{limit: 10, err: full}, full},
		{"too little without an error", writer{limit: 10}, io.ErrShortWrite},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := Write(&c.writer, s); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if c.writer.calls != 1 {
				t.Errorf("%d calls", c.writer.calls)
			}
		})
	}
}

func TestRelativePathsLeadFromTheDocumentToTheFile(t *testing.T) {
	for _, c := range []struct{ xmf, file, want string }{
		{"out/psi.xmf", "out/psi_0001.bin", "psi_0001.bin"},
		{"out/psi.xmf", "out/fields/psi.bin", "fields/psi.bin"},
		{"out/a/psi.xmf", "out/b/psi.bin", "../b/psi.bin"},
		{"psi.xmf", "psi.bin", "psi.bin"},
		{"/data/x/psi.xmf", "/data/psi.bin", "../psi.bin"},
	} {
		got, err := Relative(filepath.FromSlash(c.xmf), filepath.FromSlash(c.file))
		if err != nil || got != c.want {
			t.Errorf("from %s to %s: got %q, %v, want %q", c.xmf, c.file, got, err, c.want)
		}
	}
	if got, err := Relative("psi.xmf", "/data/psi.bin"); err == nil {
		t.Errorf("from a relative to an absolute path: got %q", got)
	}
}
