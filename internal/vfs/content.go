package vfs

import "maps"

// pageSize is the unit in which Mem allocates space, tornSize the unit in which
// a crash may tear a write.
const (
	pageSize = 4096
	tornSize = 512
)

// content is the bytes of a file: pages, with holes between them. A page belongs
// to one content and is copied before anyone else changes it, so that snapshots
// cost a map and not the bytes.
type content struct {
	size  int64
	pages map[int64]*page // by offset / pageSize; a missing one is a hole
	owner *owner          // of the pages that may be changed in place; nil: none
}

type page struct {
	owner *owner
	data  [pageSize]byte
}

// owner is compared by address and so must not be empty.
type owner struct{ _ byte }

// reserved is allocated but was never written.
var reserved = &page{owner: new(owner)}

// snapshot returns the content as it is now, whatever happens to c later.
func (c *content) snapshot() content {
	c.owner = nil
	return content{size: c.size, pages: maps.Clone(c.pages)}
}

// used is the number of pages that c occupies.
func (c *content) used() int64 { return int64(len(c.pages)) }

// writable returns the page of the given index, ready to be changed.
func (c *content) writable(index int64) *page {
	if c.owner == nil {
		c.owner = new(owner)
	}
	p := c.pages[index]
	if p != nil && p.owner == c.owner {
		return p
	}
	own := &page{owner: c.owner}
	if p != nil {
		own.data = p.data
	}
	if c.pages == nil {
		c.pages = make(map[int64]*page)
	}
	c.pages[index] = own
	return own
}

// fits returns how many of the n bytes from off on can be written with free more
// pages.
func (c *content) fits(off, n, free int64) int64 {
	for index := off / pageSize; index*pageSize < off+n; index++ {
		if c.pages[index] != nil {
			continue
		}
		if free == 0 {
			return max(0, index*pageSize-off)
		}
		free--
	}
	return n
}

// missing is the number of pages that an allocation of size bytes adds.
func (c *content) missing(size int64) int64 {
	n := pagesFor(size)
	for index := range c.pages {
		if index*pageSize < size {
			n--
		}
	}
	return n
}

func pagesFor(size int64) int64 {
	n := size / pageSize
	if size%pageSize != 0 {
		n++
	}
	return n
}

func (c *content) write(off int64, data []byte) {
	c.size = max(c.size, off+int64(len(data)))
	for len(data) > 0 {
		p := c.writable(off / pageSize)
		n := copy(p.data[off%pageSize:], data)
		data, off = data[n:], off+int64(n)
	}
}

// read copies what there is from off on.
func (c *content) read(off int64, dst []byte) int {
	if off >= c.size {
		return 0
	}
	dst = dst[:min(int64(len(dst)), c.size-off)]
	for rest := dst; len(rest) > 0; {
		n := min(int64(len(rest)), pageSize-off%pageSize)
		if p := c.pages[off/pageSize]; p != nil {
			copy(rest[:n], p.data[off%pageSize:])
		} else {
			clear(rest[:n])
		}
		rest, off = rest[n:], off+n
	}
	return len(dst)
}

func (c *content) truncate(size int64) {
	if size < c.size {
		for index := range c.pages {
			if index*pageSize >= size {
				delete(c.pages, index)
			}
		}
		if in := size % pageSize; in != 0 && c.pages[size/pageSize] != nil {
			clear(c.writable(size / pageSize).data[in:])
		}
	}
	c.size = size
}

// allocate extends c to size bytes and, unless it is only to extend, fills the
// holes.
func (c *content) allocate(size int64, extendOnly bool) {
	c.size = max(c.size, size)
	if extendOnly {
		return
	}
	if c.pages == nil {
		c.pages = make(map[int64]*page)
	}
	for index := int64(0); index*pageSize < size; index++ {
		if c.pages[index] == nil {
			c.pages[index] = reserved
		}
	}
}

// fileOp is a change of a file that no fsync has covered yet.
type fileOp struct {
	kind fileOpKind
	off  int64 // of a write
	size int64 // of the others
	data []byte
}

type fileOpKind int

const (
	opWrite fileOpKind = iota
	opTruncate
	opAllocate
	opExtend
)

func (op fileOp) apply(c *content) {
	switch op.kind {
	case opWrite:
		c.write(op.off, op.data)
	case opTruncate:
		c.truncate(op.size)
	case opAllocate, opExtend:
		c.allocate(op.size, op.kind == opExtend)
	}
}

// tear applies what a crash in the middle of the operation leaves: some whole
// blocks from the start of a write and, if the write extended the file, perhaps
// the new size with zeros for the rest. Other operations are not torn.
func (op fileOp) tear(c *content, intN func(int) int) {
	if op.kind != opWrite {
		return
	}
	end := op.off + int64(len(op.data))
	first := op.off/tornSize + 1 // the first boundary inside
	boundaries := max(0, (end-1)/tornSize-first+1)
	if n := int64(intN(int(boundaries) + 1)); n > 0 {
		c.write(op.off, op.data[:(first+n-1)*tornSize-op.off])
	}
	if end > c.size && intN(2) == 0 {
		c.size = end
	}
}
