package brick

import (
	"fmt"
	"sync"

	"github.com/fieldstone-io/fieldstone/pack"
)

// tally is what this rank has moved of the files of one call. Bytes that a driver
// left out would count as zeros, which is what a new file holds: hence it counts
// them.
type tally struct {
	counts  bool  // the checksums count what isn't finite
	section int64 // bytes of a section, of which each has a checksum of its own; 0: no sections
	mu      sync.Mutex
	files   []share
}

// share is this rank's share of one file. A driver may let a rank sum up other
// bytes than those of its own cells.
type share struct {
	parts     []uint64 // of the checksum of each section
	sections  []uint64 // the checksums themselves, when all ranks' parts are combined
	summed    int64    // bytes in it
	due       int64    // bytes that must be
	nonFinite int64    // numbers in them that are NaN or infinite
	moved     int64    // bytes of own cells
	err       error
}

func newTally(files int, own int64) *tally {
	t := &tally{files: make([]share, files)}
	for i := range t.files {
		t.files[i].due = own
	}
	return t
}

// sums are the checksums of the sections of a file, of which one may be all of it.
type sums struct {
	section int64 // bytes of all but the last
	list    []pack.Checksum
}

// at is the checksum of the section that a byte is in, and the number of the byte there.
func (s *sums) at(offset int64) (*pack.Checksum, int64) {
	k := min(offset/s.section, int64(len(s.list))-1)
	return &s.list[k], offset - k*s.section
}

// add adds bytes to the checksums of the sections in which they are.
func (s *sums) add(offset int64, b []byte) {
	for len(b) > 0 {
		sum, at := s.at(offset)
		n := min(int64(len(b)), s.section-at)
		sum.Add(at, b[:n])
		b, offset = b[n:], offset+n
	}
}

// begin makes checksums ready for a file of size bytes.
func (t *tally) begin(s *sums, size int64) {
	n := t.sections(size)
	s.section = max(size, 1)
	if n > 1 {
		s.section = t.section
	}
	if len(s.list) != n {
		s.list = make([]pack.Checksum, n)
	}
	for k := range s.list {
		sum := &s.list[k]
		sum.Reset(min(s.section, size-int64(k)*s.section))
		if t.counts {
			sum.CountNonFinite()
		}
	}
}

// add takes over what the checksums of file i hold.
func (t *tally) add(i int, from *sums) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.files[i]
	if s.parts == nil {
		s.parts = make([]uint64, len(from.list))
	}
	for k := range from.list {
		sum := &from.list[k]
		s.parts[k] ^= sum.Part()
		s.summed += sum.Covered()
		s.nonFinite += sum.NonFinite()
		if s.err == nil {
			s.err = sum.Err()
		}
	}
}

// move counts bytes of own cells that a source has yielded or a sink has taken.
func (t *tally) move(i int, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.files[i].moved += bytes
}

// covered checks that this rank's whole share of each file has passed by.
func (t *tally) covered(op string, jobs []job, own int64) error {
	for i, s := range t.files {
		switch {
		case s.err != nil:
			return jobs[i].fail(op, s.err)
		case s.moved != own:
			return jobs[i].fail(op, fmt.Errorf("moved %d of %d bytes", s.moved, own))
		case s.summed != s.due:
			return jobs[i].fail(op, fmt.Errorf("the checksum has %d of %d bytes", s.summed, s.due))
		}
	}
	return nil
}

// parts are the ranks' parts of the checksums of all sections, as they are combined: n
// for each file.
func (t *tally) parts(n int) []int64 {
	parts := make([]int64, 0, n*len(t.files))
	for _, s := range t.files {
		for k := range n {
			part := uint64(0) // of a file that this rank has nothing of
			if s.parts != nil {
				part = s.parts[k]
			}
			parts = append(parts, int64(part))
		}
	}
	return parts
}

// sections is how many sections a file of size bytes has.
func (t *tally) sections(size int64) int {
	if t.section > 0 && t.section < size {
		return int((size-1)/t.section) + 1
	}
	return 1
}

// nonFinite are this rank's counts, as the ranks' are added up; nil if nothing counts.
func (t *tally) nonFinite() []int64 {
	if !t.counts {
		return nil
	}
	counts := make([]int64, len(t.files))
	for i, s := range t.files {
		counts[i] = s.nonFinite
	}
	return counts
}
