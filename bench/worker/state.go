package main

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// packedLimit is what the floors' buffers may take of a rank's memory. Fields beyond
// it share buffers.
const packedLimit = 1 << 30

// ghost is a NaN that no arithmetic makes. All ghost cells hold it, and the owned
// ones before they are read.
var ghost = math.Float64frombits(0x7ff8_6057_0000_0001)

// value is the content of a cell: different in all cells of all fields, and all bytes
// but the lowest two count.
func value(f int, cell int64) float64 { return float64(cell+1) + float64(f+1)*(1<<40) }

// state is what the contestants of a case work on.
type state struct {
	plan.Case
	c      *comm.Comm
	domain grid.Domain
	box    grid.Box
	named  []field.Named
	padded [][]float64 // the storage of each field

	first, share int64 // this rank's contiguous share of each file, in cells
	packed       [][]float64
	packedFields int // fields that have a packed buffer of their own

	dir string // for the files of the contestant whose turn it is
}

// An arena is memory that all cases of a launch use, one after another: to get fresh
// pages for each of them takes longer than to measure.
type arena struct {
	memory []byte
	used   int
}

// cells returns memory for n cells, on a page of its own.
func (a *arena) cells(n int64) ([]float64, error) {
	const page = 4096
	bytes := (int(n)*8 + page - 1) / page * page
	if bytes > len(a.memory)-a.used {
		return nil, fmt.Errorf("%d bytes are reserved, %d are used, %d more are wanted", len(a.memory), a.used, bytes)
	}
	m := a.memory[a.used:][:8*n]
	a.used += bytes
	return pack.View[float64](m)
}

// arenaFor reserves what the largest of the cases needs.
func arenaFor(c *comm.Comm, cases []plan.Case) (*arena, error) {
	most := 0
	for _, k := range cases {
		s, err := layout(c, k)
		if err != nil {
			return nil, err
		}
		const slack = 4096 // of each piece
		bytes := int64(k.Fields)*(8*s.paddedCells()+slack) + int64(s.packedFields)*(8*s.share+slack)
		most = max(most, int(bytes))
	}
	m, err := reserve(max(most, 1))
	return &arena{memory: m}, err
}

// layout is a case without its memory.
func layout(c *comm.Comm, k plan.Case) (*state, error) {
	s := &state{Case: k, c: c}
	s.domain = grid.Domain{Size: k.Cells, Spacing: [3]float64{1, 1, 1}}
	cut, err := grid.Decompose(s.domain, c.Size(), grid.ProcessGrid(k.Processes[0], k.Processes[1], k.Processes[2]))
	if err != nil {
		return nil, err
	}
	s.box = cut.Box(c.Rank())
	cells := s.domain.Cells()
	s.first = cells * int64(c.Rank()) / int64(c.Size())
	s.share = cells*int64(c.Rank()+1)/int64(c.Size()) - s.first
	s.packedFields = int(max(1, min(int64(k.Fields), packedLimit/(8*s.share+1))))
	return s, nil
}

func newState(c *comm.Comm, k plan.Case, a *arena) (*state, error) {
	s, err := layout(c, k)
	if err != nil {
		return nil, err
	}
	a.used = 0
	for f := range k.Fields {
		data, err := a.cells(s.paddedCells())
		if err != nil {
			return nil, err
		}
		x, err := field.WrapHost(s.domain, s.box, data, field.Halo(k.Halo))
		if err != nil {
			return nil, err
		}
		s.named = append(s.named, field.Named{ID: fmt.Sprintf("f%d", f), Field: x})
		s.padded = append(s.padded, data)
	}
	for f := range k.Fields {
		if f >= s.packedFields {
			s.packed = append(s.packed, s.packed[f%s.packedFields])
			continue
		}
		share, err := a.cells(s.share)
		if err != nil {
			return nil, err
		}
		s.packed = append(s.packed, share)
	}
	s.fill()
	return s, nil
}

func (s *state) paddedCells() int64 {
	p := s.paddedSize()
	return int64(p[0]) * int64(p[1]) * int64(p[2])
}

// packedValue is the field whose values the packed buffer of field f has.
func (s *state) packedValue(f int) int { return f % s.packedFields }

// rows calls fn for each row of the box: where it begins in the padded storage, and
// the number of its first cell in the file.
func (s *state) rows(fn func(at int, cell int64)) {
	n, p := s.box.Size, s.paddedSize()
	for k := range n[2] {
		for j := range n[1] {
			at := ((k+s.Halo)*p[1]+j+s.Halo)*p[0] + s.Halo
			fn(at, (int64(s.box.Low[2]+k)*int64(s.Cells[1])+int64(s.box.Low[1]+j))*int64(s.Cells[0])+int64(s.box.Low[0]))
		}
	}
}

func (s *state) paddedSize() (p [3]int) {
	for a := range p {
		p[a] = s.box.Size[a] + 2*s.Halo
	}
	return p
}

func (s *state) fill() {
	for f, data := range s.padded {
		setAll(data, ghost)
		s.rows(func(at int, cell int64) { setValues(data[at:at+s.box.Size[0]], f, cell) })
	}
	for f := range s.packedFields {
		setValues(s.packed[f], f, s.first)
	}
}

// scramble takes away what is to be read.
func (s *state) scramble() {
	for _, data := range s.padded {
		setAll(data, ghost)
	}
	for f := range s.packedFields {
		setAll(s.packed[f], ghost)
	}
}

func setAll(dst []float64, v float64) {
	for i := range dst {
		dst[i] = v
	}
}

func setValues(dst []float64, f int, cell int64) {
	for i := range dst {
		dst[i] = value(f, cell+int64(i))
	}
}

// firstWrong is the index of the first element that isn't the cell's value, to the
// bit, or -1. No value is a NaN or a zero, so == does it.
func firstWrong(got []float64, f int, cell int64) int {
	for i, v := range got {
		if v != value(f, cell+int64(i)) {
			return i
		}
	}
	return -1
}

func (s *state) path(name string) string { return filepath.Join(s.dir, name) }
