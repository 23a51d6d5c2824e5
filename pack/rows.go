package pack

// A shape is a layout reduced to what the copy loops need. Axes that are
// contiguous in the storage are merged, so that a brick without a halo is one
// single row, and one with a halo along z only is one row as well.
type shape struct {
	n          [3]int // cells of a row, rows of a plane, planes
	row, plane int    // storage distance of two rows, of two planes
	base       int    // storage index of the first owned cell
	left       int64  // cells still to go
	i, j, k    int    // coordinates of the next cell
	at         int    // storage index of the next cell's row
}

// A run is a group of equally long rows: rows*n cells that are contiguous in
// packed order and row cells apart in the storage.
type run struct {
	store int // storage index of the run's first cell
	n     int // cells of each row
	rows  int
	row   int // storage distance of two rows
}

// rowsOf prepares the walk over the count owned cells from first on. The
// layout is valid and the range lies inside it. These are the only divisions:
// the walk itself counts up.
func (l Layout) rowsOf(first, count int64) shape {
	if count == 0 {
		return shape{}
	}
	p := l.PaddedSize()
	s := shape{
		n:     l.Size,
		row:   p[0],
		plane: p[0] * p[1],
		base:  l.Index(0, 0, 0),
		left:  count,
	}
	if s.n[2] == 1 || s.plane == s.n[1]*s.row {
		s.n[1] *= s.n[2]
		s.n[2] = 1
	}
	if s.n[1] == 1 || s.row == s.n[0] {
		s.n[0] *= s.n[1]
		s.row = s.plane
		s.n[1] = s.n[2]
		s.n[2] = 1
	}
	row := first / int64(s.n[0])
	s.i = int(first - row*int64(s.n[0]))
	s.k = int(row / int64(s.n[1]))
	s.j = int(row - int64(s.k)*int64(s.n[1]))
	s.at = s.base + s.k*s.plane + s.j*s.row
	return s
}

// next returns the following run. It may be called while left > 0.
func (s *shape) next() run {
	r := run{store: s.at + s.i, row: s.row}
	if s.i != 0 || s.left < int64(s.n[0]) {
		r.n = int(min(int64(s.n[0]-s.i), s.left))
		r.rows = 1
	} else {
		r.n = s.n[0]
		r.rows = min(s.n[1]-s.j, int(s.left/int64(s.n[0])))
	}
	s.left -= int64(r.n) * int64(r.rows)
	s.i += r.n
	if s.i == s.n[0] {
		s.i = 0
		s.j += r.rows
		s.at += r.rows * s.row
		if s.j == s.n[1] {
			s.j = 0
			s.k++
			s.at = s.base + s.k*s.plane
		}
	}
	return r
}

// A walk goes through a range of owned cells in blocks of rows that both sides
// of a copy have: the storage, and rows of n cells that lie row cells apart.
// Packed cells without gaps are one such row.
type walk struct {
	shape
	run, rest run // what is left of the current run; behind its first row, if a part of that is done
	n, row    int
	start     int // index of the current row on the other side
	done      int // cells of it that were there
}

// A block is a group of equally long rows. store and other are the indices of
// its first cell, storeRow and otherRow the distances of its rows.
type block struct {
	n, rows         int
	store, storeRow int
	other, otherRow int
}

// storeEnd and otherEnd return the indices behind the last cell.
func (b *block) storeEnd() int { return b.store + (b.rows-1)*b.storeRow + b.n }
func (b *block) otherEnd() int { return b.other + (b.rows-1)*b.otherRow + b.n }

// walk prepares the way over n*rows owned cells from first on. The layout is
// valid and the range lies inside it.
func (l Layout) walk(first int64, n, rows, row int) walk {
	return walk{shape: l.rowsOf(first, int64(n)*int64(rows)), n: n, row: row}
}

// next sets b to the following block, or reports that there is none.
func (w *walk) next(b *block) bool {
	if w.run.rows == 0 {
		w.run, w.rest = w.rest, run{}
		if w.run.rows == 0 {
			if w.left == 0 {
				return false
			}
			w.run = w.shape.next()
		}
	}
	r := &w.run
	*b = block{n: r.n, rows: 1, store: r.store, storeRow: r.row, other: w.start + w.done, otherRow: w.row}
	room := w.n - w.done
	switch {
	case r.n == w.n && w.done == 0:
		b.rows = r.rows
		w.start += b.rows * w.row
		r.rows = 0
		return true
	case r.n <= room:
		// Rows of the storage, one behind the other.
		b.rows, b.otherRow = min(r.rows, room/r.n), r.n
		r.store += b.rows * r.row
		r.rows -= b.rows
	default:
		// Rows of the other side, or the end of one, out of one of the storage.
		b.n, b.storeRow = room, w.n
		if w.done == 0 {
			b.rows = r.n / w.n
		}
		if r.rows > 1 {
			w.rest = run{store: r.store + r.row, n: r.n, rows: r.rows - 1, row: r.row}
			r.rows = 1
		}
		r.store += b.n * b.rows
		r.n -= b.n * b.rows
		if r.n == 0 {
			r.rows = 0
		}
		w.start += b.rows * w.row
		w.done = 0
		return true
	}
	w.done += b.n * b.rows
	if w.done == w.n {
		w.start += w.row
		w.done = 0
	}
	return true
}
