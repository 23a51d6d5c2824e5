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
	counts bool // the checksums count what isn't finite
	mu     sync.Mutex
	files  []share
}

// share is this rank's share of one file. A driver may let a rank sum up other
// bytes than those of its own cells.
type share struct {
	part      uint64 // of the checksum
	summed    int64  // bytes in it
	due       int64  // bytes that must be
	nonFinite int64  // numbers in them that are NaN or infinite
	moved     int64  // bytes of own cells
	err       error
}

func newTally(files int, own int64) *tally {
	t := &tally{files: make([]share, files)}
	for i := range t.files {
		t.files[i].due = own
	}
	return t
}

// begin makes a checksum ready for a file of size bytes.
func (t *tally) begin(sum *pack.Checksum, size int64) {
	sum.Reset(size)
	if t.counts {
		sum.CountNonFinite()
	}
}

// add takes over what a checksum of file i holds.
func (t *tally) add(i int, sum *pack.Checksum) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.files[i]
	s.part ^= sum.Part()
	s.summed += sum.Covered()
	s.nonFinite += sum.NonFinite()
	if s.err == nil {
		s.err = sum.Err()
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

// parts are the ranks' parts of the checksums, as they are combined.
func (t *tally) parts() []int64 {
	parts := make([]int64, len(t.files))
	for i, s := range t.files {
		parts[i] = int64(s.part)
	}
	return parts
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
