package runfile

import (
	"fmt"
	"sync"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// A chunkSum makes the checksums of the chunks of a field from its planes, which come in
// the order of z, some at a time.
type chunkSum struct {
	planes, depth int // of a chunk, and of the field
	z             int // of the next plane
	crc           uint64
}

// chunks is how many chunks a field has.
func (c *chunkSum) chunks() int { return (c.depth + c.planes - 1) / c.planes }

// add takes the next n planes, and calls done for each chunk that they complete.
func (c *chunkSum) add(cells []float64, n int, done func(chunk int, crc uint64) error) error {
	plane := len(cells) / max(n, 1)
	for n > 0 {
		chunk := c.z / c.planes
		end := min((chunk+1)*c.planes, c.depth)
		m := min(n, end-c.z)
		c.crc = sumFloats(c.crc, cells[:m*plane])
		cells, n, c.z = cells[m*plane:], n-m, c.z+m
		if c.z < end {
			continue
		}
		crc := c.crc
		c.crc = 0
		if err := done(chunk, crc); err != nil {
			return err
		}
	}
	return nil
}

// chunksOf returns the checksums of a field's chunks at a saved state and how many planes
// a chunk has, nil where the file has no checksums of the field.
func (s *storedSums) chunksOf(u *Unknown, k int) (sums []uint64, planes int, err error) {
	if s == nil {
		return nil, 0, nil
	}
	if err := s.ask(); err != nil || !s.known {
		return nil, 0, err
	}
	own := h5.Join(fieldSumsGroup, u.Name)
	shape, err := s.shape(own)
	if err != nil || shape == nil {
		return nil, 0, err
	}
	path := h5.Join("unknowns", u.Name)
	size := u.Domain.Size
	if len(shape) != 2 || shape[1] < 1 {
		return nil, 0, s.bad(own, "shape %v, not states and chunks", shape)
	}
	// The chunks that were summed up are of equally many planes, also where somebody has
	// stored the field in others since.
	planes = (size[2] + shape[1] - 1) / shape[1]
	if n := (&chunkSum{planes: planes, depth: size[2]}).chunks(); n != shape[1] {
		return nil, 0, s.bad(own, "shape %v, a state has %d planes", shape, size[2])
	}
	if k >= shape[0] {
		return nil, 0, in(s.f.Name(), path, ErrChecksum, "saved state %d has none, there are %d", k, shape[0])
	}
	sums = make([]uint64, shape[1])
	if err := h5.ReadSlab(s.f, own, sums, []int{k, 0}, []int{1, len(sums)}); err != nil {
		return nil, 0, sumsUnreadable(err)
	}
	return sums, planes, nil
}

// chunk compares the checksum of a chunk.
func (s *storedSums) chunk(u *Unknown, k, chunk, chunks int, stored, is uint64) error {
	path := h5.Join("unknowns", u.Name)
	if stored != is {
		return s.differ(path, partOfField(k, chunk), stored, is)
	}
	s.verified[path] = max(s.verified[path], k*chunks+chunk+1)
	return nil
}

// A fieldReading follows how the fields of a file are read: parts of a chunk that come
// one after the other make up the chunk.
type fieldReading struct {
	mu sync.Mutex
	at map[[2]string]*partlyRead // by the file and the name of the field
}

// partlyRead is how far a field was read at a saved state.
type partlyRead struct {
	state int
	sum   chunkSum
}

func newFieldReading() *fieldReading { return &fieldReading{at: map[[2]string]*partlyRead{}} }

// check compares the chunks that are complete with a box that was read.
func (r *fieldReading) check(sums *storedSums, u *Unknown, k int, box grid.Box, cells []float64) error {
	size := u.Domain.Size
	if box.Empty() || box.Size[0] != size[0] || box.Size[1] != size[1] {
		return nil
	}
	stored, planes, err := sums.chunksOf(u, k)
	if err != nil || stored == nil {
		return err
	}
	if r == nil {
		r = newFieldReading()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	low, high := box.Low[2], box.High()[2]
	name := [2]string{sums.f.Name(), u.Name}
	p := r.at[name]
	if p == nil || p.state != k || p.sum.z != low || p.sum.planes != planes {
		low = (low + planes - 1) / planes * planes // where the next chunk begins
		p = &partlyRead{k, chunkSum{planes: planes, depth: size[2], z: low}}
		r.at[name] = p
	}
	if low >= high {
		return nil
	}
	return p.sum.add(cells[(low-box.Low[2])*size[0]*size[1]:], high-low, func(chunk int, crc uint64) error {
		return sums.chunk(u, k, chunk, len(stored), stored[chunk], crc)
	})
}

// partOfField names a chunk of a field in errors.
func partOfField(k, chunk int) string { return fmt.Sprintf("saved state %d, chunk %d", k, chunk) }
