package pack

import "fmt"

// A Checksum accumulates one rank's share of the CRC-64/NVME of a file, from
// pieces at known offsets. Pieces must not overlap, within a rank or between
// ranks; what nobody adds counts as zero bytes.
type Checksum struct {
	size    int64
	covered int64
	open    uint64 // remainder of the pieces since the last step backwards
	end     int64  // offset behind them
	closed  uint64 // remainder of the others, each followed up to the file's end
	err     error

	folded   [16]uint64 // in place of open while isFolded
	isFolded bool

	counts    bool
	nonFinite int64

	recent [4]struct {
		gap int64
		by  *operator
	}
	oldest int
}

// NewChecksum starts the checksum of a file of fileSize bytes.
func NewChecksum(fileSize int64) *Checksum {
	c := new(Checksum)
	c.Reset(fileSize)
	return c
}

// Reset starts anew, for a file of fileSize bytes. A checksum that counts goes on
// counting, from 0.
func (c *Checksum) Reset(fileSize int64) {
	c.size, c.covered, c.open, c.end, c.closed, c.err = fileSize, 0, 0, 0, 0, nil
	c.nonFinite = 0
	if fileSize < 0 {
		c.size = 0
		c.err = fmt.Errorf("checksum: file size is %d", fileSize)
	}
}

// Add adds the bytes at the given offset of the file. Any order is correct,
// ascending offsets are fast: a gap that was met before costs a few
// nanoseconds. Add does not allocate once its gaps are known.
func (c *Checksum) Add(offset int64, piece []byte) {
	if !c.seek(offset, int64(len(piece))) {
		return
	}
	if !c.counts {
		c.open = kernels.remainder(c.open, piece, nil)
		return
	}
	for len(piece) > 0 {
		part := piece[:min(sumPiece, len(piece))]
		c.feed(part, nil)
		piece = piece[len(part):]
	}
}

// feed adds bytes to the open remainder and counts in them. They are few enough for
// the first-level cache.
func (c *Checksum) feed(b []byte, ahead *byte) {
	c.open = kernels.remainder(c.open, b, ahead)
	if c.counts {
		c.nonFinite += int64(kernels.nonFinite(b))
	}
}

// CountNonFinite makes c count NaNs and infinities in what is added from then on. The
// file consists of float64 numbers, little-endian, and each piece of whole ones: any
// other piece is an error, and is left out.
func (c *Checksum) CountNonFinite() { c.counts = true }

// NonFinite returns how many NaNs and infinities were added since CountNonFinite or
// Reset. A complex number counts as two numbers.
func (c *Checksum) NonFinite() int64 { return c.nonFinite }

// seek moves the open remainder to the given offset, where n bytes are going to
// be added to it. It reports whether they are.
func (c *Checksum) seek(offset, n int64) bool {
	if offset < 0 || offset > c.size || n > c.size-offset {
		if c.err == nil {
			c.err = fmt.Errorf("checksum: %d bytes at offset %d lie outside a file of %d bytes", n, offset, c.size)
		}
		return false
	}
	if n == 0 {
		return false
	}
	if c.counts && (offset|n)&7 != 0 {
		if c.err == nil {
			c.err = fmt.Errorf("checksum: %d bytes at offset %d are no whole float64 numbers, to count in", n, offset)
		}
		return false
	}
	if offset < c.end {
		c.closed ^= shift(c.open, c.size-c.end)
		c.open = 0
	} else if offset > c.end && c.open != 0 {
		c.open = c.skip(c.open, offset-c.end)
	}
	c.end = offset + n
	c.covered += n
	return true
}

// Join takes over what the other checksum has: pieces of the same file that do
// not overlap those of c, such as what another goroutine has added. The other
// checksum stays as it is.
func (c *Checksum) Join(other *Checksum) {
	if c.err == nil {
		c.err = other.err
	}
	if c.size != other.size {
		if c.err == nil {
			c.err = fmt.Errorf("checksum: joined with that of a file of %d bytes, want %d", other.size, c.size)
		}
		return
	}
	c.closed ^= other.Part()
	c.covered += other.covered
	c.nonFinite += other.nonFinite
}

// Part returns this rank's part. The parts of all ranks combine with XOR, and
// [Finish] makes the checksum of the file from the result.
func (c *Checksum) Part() uint64 {
	return c.closed ^ shift(c.open, c.size-c.end)
}

// Covered returns how many bytes were added. Over all ranks it must come to
// the size of the file.
func (c *Checksum) Covered() int64 { return c.covered }

// Err returns the first misuse: a negative file size, a piece outside the file or of
// parts of numbers to count in, or a join with a checksum of another size. The piece,
// or the other checksum, was left out.
func (c *Checksum) Err() error { return c.err }

// Finish returns the CRC-64/NVME of a file of fileSize bytes from the XOR of
// all parts.
func Finish(parts uint64, fileSize int64) uint64 {
	return ^(parts ^ shift(^uint64(0), fileSize))
}

// skip is shift for a gap that is likely to come again.
func (c *Checksum) skip(r uint64, gap int64) uint64 {
	for i := range c.recent {
		if e := &c.recent[i]; e.gap == gap {
			if e.by == nil {
				e.by = operators.get(gap)
			}
			return e.by.apply(r)
		}
	}
	// Tables pay off only for a gap that repeats: remember it, and build them
	// the next time.
	e := &c.recent[c.oldest]
	c.oldest = (c.oldest + 1) % len(c.recent)
	e.gap, e.by = gap, nil
	return shift(r, gap)
}
