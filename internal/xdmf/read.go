package xdmf

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrForeign says that a file isn't what Write writes.
var ErrForeign = errors.New("not an XDMF file of this writer")

type xmlItem struct {
	Text string `xml:",chardata"`
	Seek int64  `xml:"Seek,attr"`
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
		s.Arrays = append(s.Arrays, Array{Name: a.Name, Path: a.Item.Text, Offset: a.Item.Seek, Complex: a.Type == "Vector"})
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
