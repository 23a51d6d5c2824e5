package main

import (
	"context"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/examples/dendrite/internal/kobayashi"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// An exchange fills the ghost cells that the stencil reaches, however wide the
// halo of the storage is: from the neighbours' owned cells, and at a wall, the
// end of an axis that isn't periodic, from the cells beside it, so that nothing
// flows through.
type exchange struct {
	c     *comm.Comm
	empty bool
	edges [2][2]edge // by axis, x first; by side, lower first
}

// An edge is one side of a rank's box.
type edge struct {
	neighbor    int   // rank, -1 at a wall
	inner       strip // the outermost owned cells
	ghosts      strip // the cells beyond them
	outgo, come []float64
}

// A strip is a line of cells in a padded storage.
type strip struct{ first, stride, cells int }

// None is the partner of [comm.Comm.SendRecv] at a wall.
const none = -1

func newExchange(c *comm.Comm, cut grid.Decomposition, l pack.Layout) *exchange {
	e := &exchange{c: c, empty: cut.Box(c.Rank()).Empty()}
	nx, ny := l.Size[0], l.Size[1]
	row := l.PaddedSize()[0]
	column := func(i int) strip { return strip{l.Index(i, 0, 0), row, ny} }
	// Lines along x take the ghost cells at their ends along, which the exchange
	// along x has filled before: so the corners come from the diagonal neighbours.
	line := func(j int) strip { return strip{l.Index(-kobayashi.Reach, j, 0), 1, nx + 2*kobayashi.Reach} }
	e.edges = [2][2]edge{
		{{inner: column(0), ghosts: column(-1)}, {inner: column(nx - 1), ghosts: column(nx)}},
		{{inner: line(0), ghosts: line(-1)}, {inner: line(ny - 1), ghosts: line(ny)}},
	}
	for axis := range e.edges {
		for side := range e.edges[axis] {
			edge := &e.edges[axis][side]
			edge.neighbor = none
			if rank, ok := cut.Neighbor(c.Rank(), axis, 2*side-1); ok {
				edge.neighbor = rank
			}
		}
	}
	return e
}

// refresh fills the ghost cells of all fields; every message carries all of them.
// It is collective over the ranks that own cells.
func (e *exchange) refresh(ctx context.Context, fields ...[]float64) error {
	if e.empty {
		return nil
	}
	for axis := range e.edges {
		for side := range e.edges[axis] {
			// Everybody sends to one side and receives from the other.
			to, from := &e.edges[axis][side], &e.edges[axis][1-side]
			to.outgo = to.inner.gather(to.outgo[:0], fields)
			from.come = from.ghosts.room(from.come, fields)
			err := e.c.SendRecv(ctx, to.neighbor, pack.Bytes(to.outgo), from.neighbor, pack.Bytes(from.come), 2*axis+side)
			if err != nil {
				return err
			}
			if from.neighbor == none {
				from.come = from.inner.gather(from.come[:0], fields)
			}
			from.ghosts.scatter(fields, from.come)
		}
	}
	return nil
}

// room returns a buffer for the strip's cells of all fields, buf if it is one.
func (s strip) room(buf []float64, fields [][]float64) []float64 {
	if n := len(fields) * s.cells; len(buf) != n {
		return make([]float64, n)
	}
	return buf
}

// gather appends the strip's cells of all fields to buf.
func (s strip) gather(buf []float64, fields [][]float64) []float64 {
	for _, f := range fields {
		for k := range s.cells {
			buf = append(buf, f[s.first+k*s.stride])
		}
	}
	return buf
}

// scatter is the reverse of gather.
func (s strip) scatter(fields [][]float64, buf []float64) {
	for _, f := range fields {
		for k := range s.cells {
			f[s.first+k*s.stride] = buf[k]
		}
		buf = buf[s.cells:]
	}
}
