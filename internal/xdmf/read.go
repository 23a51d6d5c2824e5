package xdmf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

// ErrForeign says that a file isn't what Write writes.
var ErrForeign = errors.New("not an XDMF file of this writer")

func init() { sentinel.Register("xdmf.ErrForeign", ErrForeign) }

type xmlItem struct {
	Text       string    `xml:",chardata"`
	Seek       int64     `xml:"Seek,attr"`
	Dimensions string    `xml:"Dimensions,attr"`
	Items      []xmlItem `xml:"DataItem"` // of a hyperslab
}

// array is what an item says of the array of a name.
func (x xmlItem) array(name, kind string) (Array, error) {
	if len(x.Items) == 0 {
		return Array{Name: name, Path: x.Text, Offset: x.Seek, Complex: kind == "Vector"}, nil
	}
	if len(x.Items) != 2 {
		return Array{}, fmt.Errorf("%d items in a hyperslab", len(x.Items))
	}
	path, dataset, _ := strings.Cut(x.Items[1].Text, ":/")
	start, _, _ := strings.Cut(x.Items[0].Text, " ")
	index, err := strconv.Atoi(start)
	if err != nil {
		return Array{}, err
	}
	first, _, _ := strings.Cut(x.Items[1].Dimensions, " ")
	extent, err := strconv.Atoi(first)
	return Array{Name: name, Path: path, Slab: &Slab{Dataset: dataset, Extent: extent, Index: index}}, err
}

type xmlStep struct {
	Name string `xml:"Name,attr"`
	Time struct {
		Value float64 `xml:"Value,attr"`
	} `xml:"Time"`
	Topology struct {
		Dimensions string `xml:"Dimensions,attr"`
	} `xml:"Topology"`
	Geometry   []xmlItem `xml:"Geometry>DataItem"`
	Attributes []struct {
		Name string  `xml:"Name,attr"`
		Type string  `xml:"AttributeType,attr"`
		Item xmlItem `xml:"DataItem"`
	} `xml:"Attribute"`
}

type xmlFile struct {
	XMLName xml.Name `xml:"Xdmf"`
	Series  struct {
		Name  string    `xml:"Name,attr"`
		Steps []xmlStep `xml:"Grid"`
	} `xml:"Domain>Grid"`
}

// Read returns the series of a file that Write wrote, so that a later run can go
// on with it. Anything else, however slight the difference, is ErrForeign: what
// was edited by hand would be lost when the series is written again.
func Read(data []byte) (Series, error) {
	var f xmlFile
	if err := xml.Unmarshal(data, &f); err != nil {
		return Series{}, fmt.Errorf("xdmf: %w: %w", ErrForeign, err)
	}
	s := Series{Name: f.Series.Name}
	for _, x := range f.Series.Steps {
		step, err := x.step()
		if err != nil {
			return Series{}, fmt.Errorf("xdmf: %w: step %q: %w", ErrForeign, x.Name, err)
		}
		s.Steps = append(s.Steps, step)
	}
	var again bytes.Buffer
	if err := s.encode(&again); err != nil {
		return Series{}, fmt.Errorf("xdmf: %w: %w", ErrForeign, err)
	}
	if !bytes.Equal(again.Bytes(), data) {
		return Series{}, fmt.Errorf("xdmf: %w", ErrForeign)
	}
	return s, nil
}

func (x xmlStep) step() (Step, error) {
	s := Step{Name: x.Name, Time: x.Time.Value}
	sizes, err := zyx(x.Topology.Dimensions, strconv.Atoi)
	if err != nil {
		return s, err
	}
	if len(x.Geometry) != 2 {
		return s, fmt.Errorf("%d items of geometry", len(x.Geometry))
	}
	parse := func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }
	origin, err := zyx(x.Geometry[0].Text, parse)
	if err != nil {
		return s, err
	}
	spacing, err := zyx(x.Geometry[1].Text, parse)
	if err != nil {
		return s, err
	}
	s.Size, s.Origin, s.Spacing = sizes, origin, spacing
	for _, a := range x.Attributes {
		array, err := a.Item.array(a.Name, a.Type)
		if err != nil {
			return s, err
		}
		s.Arrays = append(s.Arrays, array)
	}
	return s, nil
}

// zyx parses three numbers that are listed z y x, into the order x, y, z.
func zyx[T any](text string, parse func(string) (T, error)) (v [3]T, err error) {
	words := strings.Fields(text)
	if len(words) != 3 {
		return v, fmt.Errorf("%q is not three numbers", text)
	}
	for i, w := range words {
		if v[2-i], err = parse(w); err != nil {
			return v, err
		}
	}
	return v, nil
}
