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
