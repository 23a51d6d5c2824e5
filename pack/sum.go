package pack

import (
	"encoding/binary"
	"unsafe"
)

// A SumSource can also add what it reads to a checksum.
type SumSource interface {
	Source

	// ReadSum is ReadCells followed by sum.Add(offset, dst), in less time. If
	// there is an error, nothing was added.
	ReadSum(dst []byte, first int64, sum *Checksum, offset int64) error
}

// A SumSink can also add what it takes to a checksum.
type SumSink interface {
	Sink

	// WriteSum is sum.Add(offset, src) followed by WriteCells, in less time.
	// If there is an error, nothing was added.
	WriteSum(src []byte, first int64, sum *Checksum, offset int64) error
}

// PackSum is [PackBytes] followed by sum.Add(offset, dst), in little more than
// the time of PackBytes: the checksum is computed while cells are on their way
// from memory. If there is an error, nothing was added.
func PackSum[T Number](dst []byte, src []T, l Layout, first int64, sum *Checksum, offset int64) error {
	if bigEndian {
		return thenAdd(sum, offset, dst, PackBytes(dst, src, l, first))
	}
	var t T
	size := int(unsafe.Sizeof(t))
	n, err := whole("pack", dst, size)
	if err != nil {
		return err
	}
	if err := check("pack", l, int64(len(src)), first, int64(n)); err != nil {
		return err
	}
	if !sum.seek(offset, int64(len(dst))) {
		return PackBytes(dst, src, l, first)
	}
	from := Bytes(src)
	var b block
	for w := l.walk(first, n, 1, 0); w.next(&b); {
		to := dst[b.other*size : b.otherEnd()*size]
		sum.move(to, from[b.store*size:b.storeEnd()*size], b.n*size, b.otherRow*size, b.storeRow*size, b.rows, to)
	}
	sum.unfold()
	return nil
}

// UnpackSum is sum.Add(offset, src) followed by [UnpackBytes], in less time. If
// there is an error, nothing was added.
func UnpackSum[T Number](dst []T, src []byte, l Layout, first int64, sum *Checksum, offset int64) error {
	if bigEndian {
		return thenAdd(sum, offset, src, UnpackBytes(dst, src, l, first))
	}
	var t T
	size := int(unsafe.Sizeof(t))
	n, err := whole("unpack", src, size)
	if err != nil {
		return err
	}
	if err := check("unpack", l, int64(len(dst)), first, int64(n)); err != nil {
		return err
	}
	if !sum.seek(offset, int64(len(src))) {
		return UnpackBytes(dst, src, l, first)
	}
	to := Bytes(dst)
	var b block
	for w := l.walk(first, n, 1, 0); w.next(&b); {
		from := src[b.other*size : b.otherEnd()*size]
		sum.move(to[b.store*size:b.storeEnd()*size], from, b.n*size, b.storeRow*size, b.otherRow*size, b.rows, from)
	}
	sum.unfold()
	return nil
}

// WidenSum is [WidenBytes] followed by sum.Add(offset, dst), in less time. If
// there is an error, nothing was added.
func WidenSum(dst []byte, src []float32, l Layout, first int64, sum *Checksum, offset int64) error {
	n, err := whole("widen", dst, 8)
	if err != nil {
		return err
	}
	if err := check("widen", l, int64(len(src)), first, int64(n)); err != nil {
		return err
	}
	if !sum.seek(offset, int64(len(dst))) {
		return WidenBytes(dst, src, l, first)
	}
	for len(dst) > 0 {
		piece := dst[:min(sumPiece, len(dst))]
		if err := WidenBytes(piece, src, l, first); err != nil {
			return err
		}
		sum.feed(piece, nil)
		dst = dst[len(piece):]
		first += int64(len(piece) / 8)
	}
	return nil
}

// NarrowSum is sum.Add(offset, src) followed by [NarrowBytes]. If there is an
// error, nothing was added.
func NarrowSum(dst []float32, src []byte, l Layout, first int64, sum *Checksum, offset int64) error {
	return thenAdd(sum, offset, src, NarrowBytes(dst, src, l, first))
}

// thenAdd adds b if there was no error.
func thenAdd(sum *Checksum, offset int64, b []byte, err error) error {
	if err == nil {
		sum.Add(offset, b)
	}
	return err
}

// sumPiece is how many bytes are moved and then summed up while they are in the
// first-level cache, where that is not one and the same loop.
const sumPiece = 16 << 10

// move copies rows as [kernelSet.copyRows] does and feeds them to the open
// remainder. packed is the side on which they adjoin.
func (c *Checksum) move(dst, src []byte, n, dstRow, srcRow, rows int, packed []byte) {
	if body := n &^ (sumBlock - 1); kernels.copySumRows != nil && body > 0 && (body == n || rows == 1) {
		c.fold()
		c.nonFinite += int64(kernels.copySumRows(dst, src, body, dstRow, srcRow, rows, &c.folded, c.counts))
		if body == n {
			return
		}
		dst, src, packed, n = dst[body:], src[body:], packed[body:], n-body
	}
	c.unfold()
	if rows == 1 && n > sumPiece {
		// The same as rows of that length, and a rest.
		body := n - n%sumPiece
		c.move(dst[:body], src[:body], sumPiece, sumPiece, sumPiece, n/sumPiece, packed[:body])
		if dst, src, packed, n = dst[body:], src[body:], packed[body:], n-body; n == 0 {
			return
		}
	}
	for rows > 0 {
		m := min(rows, max(1, sumPiece/n))
		kernels.copyRows(dst[:(m-1)*dstRow+n], src[:(m-1)*srcRow+n], n, dstRow, srcRow, m)
		piece := packed[:m*n]
		if rows -= m; rows > 0 {
			dst, src, packed = dst[m*dstRow:], src[m*srcRow:], packed[m*n:]
		}
		ahead := src
		if unsafe.SliceData(packed) == unsafe.SliceData(src) {
			ahead = dst
		}
		c.feed(piece, unsafe.SliceData(ahead))
	}
}

// fold brings the open remainder into the form of copySumRows: a message of
// which it is the remainder.
func (c *Checksum) fold() {
	if c.isFolded {
		return
	}
	m := c.open
	for range 64 {
		m = overX(m)
	}
	c.folded = [16]uint64{15: m}
	c.isFolded = true
}

// unfold does the reverse.
func (c *Checksum) unfold() {
	if !c.isFolded {
		return
	}
	var message [sumBlock]byte
	for i, v := range c.folded {
		binary.LittleEndian.PutUint64(message[8*i:], v)
	}
	c.open = remainderTables(0, message[:])
	c.isFolded = false
}
