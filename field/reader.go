package field

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/fieldstone-io/fieldstone/pack"
)

// reader takes the owned cells of a field on a device past its mirror, in ascending
// order, and has the next ones on their way while the caller is busy with some. The
// field's lock is held for all of its methods.
type reader struct {
	r *residence

	// ahead are the slots with cells that were not all taken yet, adjoining; next is
	// the first cell after them.
	ahead   []*slot
	next    int64
	version uint64 // of the device's storage when they were packed
	after   int64  // the cell after the last one that was taken
	inOrder bool   // this call goes on from there, or begins at the first cell

	used uint64 // the ring's clock then; protected by the ring's lock
}

// begin is for each call. One that jumps about gets what it wants and no more. What was
// packed ahead is for the call that goes on from there: who begins anew wants the cells
// as they are now, also where nobody has said that they have changed.
func (rd *reader) begin(first int64) {
	rd.inOrder = first == 0 || first == rd.after
	if first == 0 || !rd.inOrder {
		rd.drop()
	}
}

// cells returns a slot that has the cells from number first on, as many as it has, and
// is in use then. want is how many will be taken at once.
func (rd *reader) cells(first, want int64) (s *slot, err error) {
	r, g := rd.r, rd.r.ring
	if s = rd.find(first); s == nil {
		var kept bool
		if s, kept, err = g.take(r.log, rd, rd.inOrder, true); err != nil {
			return nil, g.note(err)
		}
		n := min(r.fit(s), r.layout.Cells()-first)
		if !kept {
			n = min(n, want)
		}
		if err := r.fetch(s, first, n); err != nil {
			g.leaveSlot(s, false)
			return nil, g.note(err)
		}
		rd.next = first + n
		if kept {
			rd.ahead = append(rd.ahead[:0], s)
		}
	}
	if rd.inOrder {
		err = rd.readAhead()
	}
	if err == nil {
		err = s.await()
	}
	if err != nil {
		g.leaveSlot(s, len(rd.ahead) > 0)
		rd.drop()
		return nil, g.note(err)
	}
	return s, nil
}

// find returns the slot that has a cell, and puts it to use. Without one the reader
// begins anew: it gives up what it has.
func (rd *reader) find(first int64) *slot {
	g := rd.r.ring
	g.mu.Lock()
	whole := rd.version == rd.r.version
	for _, s := range rd.ahead {
		whole = whole && s.owner == rd
	}
	if whole && len(rd.ahead) > 0 && rd.ahead[0].first <= first && first < rd.ahead[0].end {
		s := rd.ahead[0]
		s.users++
		g.clock++
		rd.used = g.clock
		g.mu.Unlock()
		return s
	}
	g.mu.Unlock()
	rd.drop()
	rd.version = rd.r.version
	return nil
}

// drop gives up all slots.
func (rd *reader) drop() {
	if len(rd.ahead) == 0 {
		return
	}
	g := rd.r.ring
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, s := range rd.ahead {
		if s.owner == rd {
			s.owner = nil
		}
		rd.ahead[i] = nil
	}
	rd.ahead = rd.ahead[:0]
	g.turned.Broadcast()
}

// readAhead queues what will be wanted next, as far as there are slots.
func (rd *reader) readAhead() error {
	r, g := rd.r, rd.r.ring
	for len(rd.ahead) > 0 && len(rd.ahead) <= g.ahead() && rd.next < r.layout.Cells() {
		s, _, err := g.take(r.log, rd, true, false)
		if s == nil || err != nil {
			return err
		}
		n := min(r.fit(s), r.layout.Cells()-rd.next)
		err = r.fetch(s, rd.next, n)
		g.leaveSlot(s, err == nil)
		if err != nil {
			return err
		}
		rd.ahead = append(rd.ahead, s)
		rd.next += n
	}
	return nil
}

// took ends the use of a slot whose cells up to a number were taken, or makes it lent.
func (rd *reader) took(s *slot, end int64, lent bool) {
	rd.after = end
	first := len(rd.ahead) > 0 && rd.ahead[0] == s
	keep := first && end < s.end
	if first && !keep {
		rd.ahead = slices.Delete(rd.ahead, 0, 1)
	}
	if lent {
		rd.r.ring.lend(s, keep)
	} else {
		rd.r.ring.leaveSlot(s, keep)
	}
}

// each calls use with the bytes of the given cells, piece by piece, and the number of
// the first cell of each.
func (rd *reader) each(first, count int64, use func(piece []byte, cell int64) error) error {
	size := rd.r.bytes()
	rd.begin(first)
	for end := first + count; first < end; {
		s, err := rd.cells(first, end-first)
		if err != nil {
			return err
		}
		last := min(end, s.end)
		err = use(s.host[(first-s.first)*size:(last-s.first)*size], first)
		rd.took(s, last, false)
		if err != nil {
			return err
		}
		first = last
	}
	return nil
}

// deviceSource is the source of a field on a device.
type deviceSource[T pack.Number] struct {
	source[T]
	ring *ring // outlives the field while cells are lent
	log  *slog.Logger
	rd   reader
}

// directly calls past with a reader if cells are to be read past the mirror, and
// otherwise nothing: then done is false.
func (s *deviceSource[T]) directly(past func(rd *reader) error) (done bool, err error) {
	defer s.ring.say()
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	switch {
	case s.f.freed:
		err = ErrFreed
	case !s.f.dev.past():
		return false, nil
	default:
		s.rd.r = s.f.dev
		err = s.ring.holding(&s.rd, past)
	}
	if err != nil {
		err = fmt.Errorf("read field: %w", err)
	}
	return true, err
}

func (s *deviceSource[T]) ReadCells(dst []byte, first int64) error {
	done, err := s.directly(func(rd *reader) error { return s.fill(rd, dst, first, nil, 0) })
	if done {
		return err
	}
	return s.source.ReadCells(dst, first)
}

func (s *deviceSource[T]) ReadStream(dst []byte, first int64) error {
	done, err := s.directly(func(rd *reader) error { return s.fill(rd, dst, first, nil, 0) })
	if done {
		return err
	}
	return s.source.ReadStream(dst, first)
}

func (s *deviceSource[T]) ReadSum(dst []byte, first int64, sum *pack.Checksum, offset int64) error {
	done, err := s.directly(func(rd *reader) error { return s.fill(rd, dst, first, sum, offset) })
	if done {
		return err
	}
	return s.source.ReadSum(dst, first, sum, offset)
}

// fill fills dst with cells, and adds them to a checksum if there is one.
func (s *deviceSource[T]) fill(rd *reader, dst []byte, first int64, sum *pack.Checksum, offset int64) error {
	size := rd.r.bytes()
	if err := s.f.inRange("read", dst, first); err != nil {
		return err
	}
	err := rd.each(first, int64(len(dst))/size, func(piece []byte, cell int64) error {
		copy(dst[(cell-first)*size:], piece)
		return nil
	})
	if err == nil && sum != nil {
		sum.Add(offset, dst)
	}
	return err
}

func (s *deviceSource[T]) ReadRows(dst []byte, first int64, n, rows, dstRow int) error {
	done, err := s.directly(func(rd *reader) error {
		size := int(rd.r.bytes())
		if err := pack.CheckRows("pack", rd.r.layout, first, n, rows, dstRow, len(dst), size); err != nil || n == 0 || rows == 0 {
			return err
		}
		return rd.each(first, int64(n)*int64(rows), func(piece []byte, cell int64) error {
			return scatter(dst, piece, int(cell-first), n, dstRow, size)
		})
	})
	if done {
		return err
	}
	return s.source.ReadRows(dst, first, n, rows, dstRow)
}

// scatter puts packed cells, of which the first is number at, into rows of n cells
// that lie row bytes apart.
func scatter(dst, packed []byte, at, n, row, size int) error {
	for len(packed) > 0 {
		i, x := at/n, at%n
		cells := min(n-x, len(packed)/size)
		rows := 1
		if x == 0 {
			rows = max(1, len(packed)/size/n)
		}
		from, err := pack.View[float64](packed[:cells*rows*size])
		if err != nil {
			return err
		}
		words := size / 8
		if err := pack.PackRows(dst[i*row+x*size:], from, flat(len(from)), 0, cells*words, rows, row); err != nil {
			return err
		}
		packed, at = packed[cells*rows*size:], at+cells*rows
	}
	return nil
}

// LendCells implements [pack.LendSource]: chunks of what the device has packed.
func (s *deviceSource[T]) LendCells(first int64, most int) (cells []byte, err error) {
	_, err = s.directly(func(rd *reader) error {
		size := rd.r.bytes()
		want := min(int64(most)/size, rd.r.layout.Cells()-first)
		if first < 0 || want <= 0 {
			return &pack.RangeError{Op: "lend", First: first, Count: int64(most) / size, Cells: rd.r.layout.Cells()}
		}
		rd.begin(first)
		c, err := rd.cells(first, want)
		if err != nil {
			return err
		}
		end := min(first+want, c.end)
		cells = c.host[(first-c.first)*size : (end-c.first)*size : (end-c.first)*size]
		rd.took(c, end, true)
		return nil
	})
	return cells, err
}

// ReturnCells implements [pack.LendSource].
func (s *deviceSource[T]) ReturnCells(cells []byte) { s.ring.giveBack(cells, s.log) }
