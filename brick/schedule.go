package brick

// A schedule says which bytes of which files lie in which slot of a window at
// which step, and so which rank writes or reads them: rank r has slot r. Every
// rank computes the same.
//
// Writers of one file wait for each other, so each rank gets whole files, several
// of them in one slot if they are small, as long as there are enough; the ranks
// share what is left over, with alternating pieces.
type schedule struct {
	files, ranks int
	cells        int64 // of a file
	slot         int64 // cells of a slot

	group int   // whole files in a slot; 0 if a file doesn't fit one
	turns int   // rounds in which each rank has a whole file that doesn't fit
	each  int   // slots that such a file takes
	steps int   // in all
	rest  int   // files that the ranks share
	per   []int // ranks that share each of them
}

// extent is a range of cells of one file, and where it lies in the slot.
type extent struct {
	file       int
	first, end int64 // cells of the file
	at         int64 // cell of the slot
}

func newSchedule(files, ranks int, cells, slot int64) schedule {
	s := schedule{files: files, ranks: ranks, cells: cells, slot: slot}
	if cells <= slot {
		s.group = int(min(slot/cells, int64((files-1)/ranks+1)))
		s.steps = ((files-1)/s.group)/ranks + 1
		return s
	}
	s.each = int((cells-1)/slot + 1)
	s.turns, s.rest = files/ranks, files%ranks
	s.steps = s.turns * s.each
	if s.rest > 0 {
		for f := range s.rest {
			s.per = append(s.per, (ranks-f-1)/s.rest+1)
		}
		s.steps += (s.each-1)/s.per[s.rest-1] + 1 // the last one has the fewest ranks
	}
	return s
}

// writer is the rank in whose slots a file, or the first part of it, lies.
func (s *schedule) writer(file int) int {
	switch {
	case s.group > 0:
		return file / s.group % s.ranks
	case file < s.turns*s.ranks:
		return file % s.ranks
	}
	return file - s.turns*s.ranks
}

// extents calls f for what lies in a rank's slot at a step.
func (s *schedule) extents(step, rank int, f func(extent) error) error {
	switch {
	case s.group > 0:
		first := (step*s.ranks + rank) * s.group
		for k := range min(s.group, s.files-first) {
			if err := f(extent{first + k, 0, s.cells, int64(k) * s.cells}); err != nil {
				return err
			}
		}
		return nil
	case step < s.turns*s.each:
		return s.piece(step/s.each*s.ranks+rank, step%s.each, f)
	}
	file := rank % s.rest
	return s.piece(s.turns*s.ranks+file, (step-s.turns*s.each)*s.per[file]+rank/s.rest, f)
}

// piece is the n-th slot of a file.
func (s *schedule) piece(file, n int, f func(extent) error) error {
	first := int64(n) * s.slot
	if first >= s.cells {
		return nil
	}
	return f(extent{file, first, min(first+s.slot, s.cells), 0})
}

// unit is the n-th part of what lies in a slot at a step, and whether there is one: a
// whole small file, or some cells of a large one.
func (s *schedule) unit(step, rank, n int, most int64) (u extent, ok bool) {
	_ = s.extents(step, rank, func(e extent) error { // the only error is one of the function
		if s.group > 0 {
			if n == 0 {
				u, ok = e, true
			}
			n--
			return nil
		}
		if first := e.first + int64(n)*most; first < e.end {
			u, ok = extent{e.file, first, min(first+most, e.end), e.at + first - e.first}, true
		}
		return nil
	})
	return u, ok
}
