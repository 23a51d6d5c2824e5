package brick

import "github.com/fieldstone-io/fieldstone/grid"

// runs walks the cells of a box in its own x-fastest order as runs that are
// contiguous in the file. Rows that span the domain join into planes, planes
// that span it into one run.
type runs struct {
	elem    int64
	rowRun  int64 // cells of one contiguous run
	rows    int64 // runs per plane of the box, or 1 when planes are contiguous
	rowStep int64 // file cells from one run to the next within a plane
	planes  int64 // of the box, or 1
	zStep   int64 // file cells from one plane to the next
	origin  int64 // file cell of the box's first cell
	section int64 // file cells of a section, which no run of each leaves; 0: no sections
}

func newRuns(size [3]int, box grid.Box, elem Element) runs {
	nx, ny := int64(size[0]), int64(size[1])
	bx, by, bz := int64(box.Size[0]), int64(box.Size[1]), int64(box.Size[2])
	r := runs{elem: int64(elem.Size()), rowStep: nx, zStep: nx * ny}
	r.origin = (int64(box.Low[2])*ny+int64(box.Low[1]))*nx + int64(box.Low[0])
	switch {
	case bx == nx && by == ny:
		r.rowRun, r.rows, r.planes = bx*by*bz, 1, 1
	case bx == nx:
		r.rowRun, r.rows, r.planes = bx*by, 1, bz
	default:
		r.rowRun, r.rows, r.planes = bx, by, bz
	}
	return r
}

// each calls f for the runs of cells [first, first+count) of the box: the byte
// offset in the file, and the bytes from and to in the packed cells. A run that
// goes beyond a section is cut there.
func (r runs) each(first, count int64, f func(offset, from, to int64) error) error {
	if count == 0 {
		return nil
	}
	index, within := first/r.rowRun, first%r.rowRun
	plane, row := index/r.rows, index%r.rows
	for done := int64(0); done < count; {
		n := min(r.rowRun-within, count-done)
		cell := r.origin + plane*r.zStep + row*r.rowStep + within
		if r.section > 0 {
			n = min(n, r.section-cell%r.section)
		}
		if err := f(cell*r.elem, done*r.elem, (done+n)*r.elem); err != nil {
			return err
		}
		done += n
		if within += n; within < r.rowRun {
			continue
		}
		within = 0
		if row++; row == r.rows {
			row = 0
			plane++
		}
	}
	return nil
}

// add adds the cells in buf, from cell first of the box on, to their checksums.
func (r runs) add(s *sums, buf []byte, first int64) {
	// The only error is one of the function.
	_ = r.each(first, int64(len(buf))/r.elem, func(offset, from, to int64) error {
		sum, at := s.at(offset)
		sum.Add(at, buf[from:to])
		return nil
	})
}

// piece is a part of a box: rows of n cells, rowStep cells apart in the file.
type piece struct {
	cell    int64 // of the file, the first one
	first   int64 // of the box, the same
	n, rows int64
}

// within calls f for what the box has of the file's cells [low, high), in the
// order of the file.
func (r runs) within(low, high int64, f func(piece) error) error {
	if r.rowRun == 0 || low >= high {
		return nil
	}
	// Planes and rows that end before low are skipped, those that begin at high or
	// after it are left out.
	planeEnd := r.origin + (r.rows-1)*r.rowStep + r.rowRun
	for k := skipped(low-planeEnd, r.zStep); k < r.planes; k++ {
		start := r.origin + k*r.zStep
		if start >= high {
			return nil
		}
		for j := skipped(low-start-r.rowRun, r.rowStep); j < r.rows; {
			cell := start + j*r.rowStep
			if cell >= high {
				break
			}
			q := piece{cell: cell, first: (k*r.rows + j) * r.rowRun, n: r.rowRun, rows: 1}
			switch {
			case cell < low || cell+r.rowRun > high:
				q.n = min(cell+r.rowRun, high) - max(cell, low)
				q.first += max(cell, low) - cell
				q.cell = max(cell, low)
			default:
				q.rows = min(r.rows-j, (high-cell-r.rowRun)/r.rowStep+1)
			}
			if err := f(q); err != nil {
				return err
			}
			j += q.rows
		}
	}
	return nil
}

// skipped is how many of the ranges that follow each other at the given step lie
// before a cell, when that cell is the given number beyond the end of the first.
func skipped(beyond, step int64) int64 {
	if beyond < 0 {
		return 0
	}
	return beyond/step + 1
}
