package h5

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

const (
	maxRank = 32
	// What a file may declare beyond what it has room for, in all: elements of chunks
	// that were never written read as zeros.
	maxSparse = 64 << 20
	// Deflate makes at most this of a byte.
	maxInflate = 1032
)

// mark is the attribute that says that bytes are booleans.
const mark = "bool"

// Write makes a dataset of the shape and writes it; without a shape, a scalar.
// Groups above it are made if missing. The error wraps fs.ErrExist if there is
// something at the path.
func Write[T Element](f *File, path string, data []T, shape ...int) error {
	err := checkShape(shape)
	if err == nil {
		err = checkCount(len(data), shape)
	}
	if err != nil {
		return f.wrap("write", path, "", err)
	}
	return f.make("write", path, element{t: typeOf[T]()}, Layout{Shape: shape}, func(o object) error {
		return put(o, data)
	})
}

// CreateDataset makes a dataset without writing to it: its elements are zero,
// unless Layout.Early leaves them undefined. The error wraps fs.ErrExist if there is
// something at the path.
func CreateDataset[T Element](f *File, path string, l Layout) error {
	if err := l.check(); err != nil {
		return f.wrap("create dataset", path, "", err)
	}
	return f.make("create dataset", path, element{t: typeOf[T]()}, l, func(object) error { return nil })
}

// make creates a dataset and fills it.
func (f *File) make(op, path string, e element, l Layout, fill func(object) error) error {
	if err := checkPath(path); err != nil {
		return f.wrap(op, path, "", err)
	}
	return f.do(op, path, "", true, func() error {
		if err := f.free(path); err != nil {
			return err
		}
		f.noteCreated()
		return f.change(func() error {
			o, err := f.h.makeDataset(path, e, l)
			if err != nil {
				return err
			}
			return closing(o, func(o object) error {
				if e.t == Bool {
					if err := setAttribute(o, mark, []int8{1}, nil); err != nil {
						return err
					}
				}
				return fill(o)
			})
		})
	})
}

func put[T Element](o object, data []T) error {
	if len(data) == 0 {
		return nil
	}
	if _, err := o.info(); err != nil {
		return err
	}
	return o.write(bufferOf(data), nil)
}

// Read gives all elements of a dataset, in C order, and its shape. The type of the
// elements must be T; see ReadAs for one that would fit into it. A dataset that has no
// elements at all, not even a scalar, is an empty list: Julia writes such ones so.
func Read[T Element](f *File, path string) (data []T, shape []int, err error) {
	err = f.on("read", path, "", false, func(o object) (err error) {
		data, shape, err = get[T](f, o, false)
		return err
	})
	return data, shape, err
}

// ReadAs is Read for elements of any type all values of which are values of T, such
// as integers of fewer bits. Bools may be integers of any type that are 0 or 1, and
// float64s integers of 64 bits that they represent.
func ReadAs[T Element](f *File, path string) (data []T, shape []int, err error) {
	err = f.on("read", path, "", false, func(o object) (err error) {
		data, shape, err = get[T](f, o, true)
		return err
	})
	return data, shape, err
}

func get[T Element](f *File, o object, widen bool) ([]T, []int, error) {
	info, err := o.info()
	if err != nil {
		return nil, nil, err
	}
	t := typeOf[T]()
	if err := wantType(info, t, widen); err != nil {
		return nil, nil, err
	}
	if info.Null {
		return []T{}, []int{0}, nil
	}
	if err := f.checkRoom(info, info.Shape); err != nil {
		return nil, nil, err
	}
	if err := f.takeSparse(info); err != nil {
		return nil, nil, err
	}
	if t == Bool && info.Type != Bool && info.Type != Uint8 {
		bools, err := boolsOf(o, info)
		return any(bools).([]T), info.Shape, err
	}
	if t == Float64 && (info.Type == Int64 || info.Type == Uint64) {
		floats, err := floatsOf(o, info)
		return any(floats).([]T), info.Shape, err
	}
	data := make([]T, info.Elements())
	if len(data) > 0 {
		if err := o.read(info, bufferOf(data), nil); err != nil {
			return nil, nil, err
		}
		if err := checkBools(data); err != nil {
			return nil, nil, err
		}
	}
	return data, info.Shape, nil
}

// boolsOf reads integers, whose values must be 0 and 1.
func boolsOf(o object, info Info) ([]bool, error) {
	numbers := make([]int64, info.Elements())
	bools := make([]bool, len(numbers))
	if len(numbers) == 0 {
		return bools, nil
	}
	if err := o.read(info, bufferOf(numbers), nil); err != nil {
		return nil, err
	}
	for i, n := range numbers {
		if n != 0 && n != 1 {
			return nil, noBool(i, n)
		}
		bools[i] = n == 1
	}
	return bools, nil
}

// floatsOf reads integers of 64 bits, which floats must represent.
func floatsOf(o object, info Info) ([]float64, error) {
	floats := make([]float64, info.Elements())
	if len(floats) == 0 {
		return floats, nil
	}
	var exact func(i int) (any, bool)
	var b buffer
	if info.Type == Int64 {
		numbers := make([]int64, len(floats))
		b = bufferOf(numbers)
		exact = func(i int) (any, bool) {
			floats[i] = float64(numbers[i])
			return numbers[i], floats[i] < 1<<63 && int64(floats[i]) == numbers[i]
		}
	} else {
		numbers := make([]uint64, len(floats))
		b = bufferOf(numbers)
		exact = func(i int) (any, bool) {
			floats[i] = float64(numbers[i])
			return numbers[i], floats[i] < 1<<64 && uint64(floats[i]) == numbers[i]
		}
	}
	if err := o.read(info, b, nil); err != nil {
		return nil, err
	}
	for i := range floats {
		if n, ok := exact(i); !ok {
			return nil, fmt.Errorf("%w: element %d is %v, which no float64 is", ErrType, i, n)
		}
	}
	return floats, nil
}

func noBool(i int, n int64) error {
	return fmt.Errorf("%w: element %d is %d, which is no bool", ErrType, i, n)
}

// ReadSlab reads the part of a dataset that begins at start and has count elements
// along each axis. There must be room for just these in dst. The type of the elements
// must be T. After an error the content of dst is undefined.
func ReadSlab[T Element](f *File, path string, dst []T, start, count []int) error {
	return f.on("read", path, "", false, func(o object) error {
		info, err := slabInfo(o, len(dst), typeOf[T](), start, count)
		if err == nil {
			err = f.checkRoom(info, count)
		}
		if err != nil || len(dst) == 0 {
			return err
		}
		if err := o.read(info, bufferOf(dst), &slab{start, count}); err != nil {
			return err
		}
		return checkBools(dst)
	})
}

// WriteSlab writes the part of a dataset that begins at start and has count elements
// along each axis, which are those of src. The type of the elements must be T.
func WriteSlab[T Element](f *File, path string, src []T, start, count []int) error {
	return f.on("write", path, "", true, func(o object) error {
		_, err := slabInfo(o, len(src), typeOf[T](), start, count)
		if err != nil || len(src) == 0 {
			return err
		}
		return f.change(func() error { return o.write(bufferOf(src), &slab{start, count}) })
	})
}

func slabInfo(o object, n int, t Type, start, count []int) (Info, error) {
	info, err := o.info()
	if err != nil {
		return info, err
	}
	if err := wantType(info, t, false); err != nil {
		return info, err
	}
	if len(info.Shape) == 0 || len(start) != len(info.Shape) || len(count) != len(info.Shape) {
		return info, fmt.Errorf("%w: start %v and count %v of a dataset of shape %v", ErrShape, start, count, info.Shape)
	}
	for i, d := range info.Shape {
		if start[i] < 0 || count[i] < 0 || start[i] > d || count[i] > d-start[i] {
			return info, fmt.Errorf("%w: start %v and count %v of a dataset of shape %v", ErrShape, start, count, info.Shape)
		}
	}
	return info, checkCount(n, count)
}

// Extend makes the first axis of a dataset n long, at least what it is. What is new
// is zero, or undefined where the dataset reserves its place early.
func (f *File) Extend(path string, n int) error {
	return f.on("extend", path, "", true, func(o object) error {
		info, err := o.info()
		if err != nil {
			return err
		}
		if err := wantKind(o, Dataset); err != nil {
			return err
		}
		if len(info.Shape) == 0 || n < info.Shape[0] || info.Max[0] != Unlimited && n > info.Max[0] {
			return fmt.Errorf("%w: shape %v, at most %v, can't become %d long", ErrShape, info.Shape, info.Max, n)
		}
		shape := slices.Clone(info.Shape)
		shape[0] = n
		if err := checkShape(shape); err != nil {
			return err
		}
		return f.change(func() error { return o.extend(shape) })
	})
}

// Append adds rows to a dataset that has the number of rows, one or more: src has so many
// that are of the shape row each. It is Extend and WriteSlab in one, and takes half the
// time. The type of the elements must be T, in the form in which memory has them.
func Append[T Element](f *File, path string, src []T, have int, row ...int) error {
	size, ok := product(row)
	if !ok || size == 0 || len(src)%size != 0 || len(row) >= maxRank || have < 0 {
		return f.wrap("append", path, "", fmt.Errorf("%w: %d elements for rows of shape %v behind %d", ErrShape, len(src), row, have))
	}
	if err := checkPath(path); err != nil {
		return f.wrap("append", path, "", err)
	}
	n := len(src) / size
	if n == 0 {
		return nil
	}
	was, add := append([]int{have}, row...), append([]int{n}, row...)
	return f.do("append", path, "", true, func() error {
		var fits bool
		err := f.change(func() (err error) {
			fits, err = f.h.append(path, bufferOf(src), was, add)
			return err
		})
		if err != nil || fits {
			return err
		}
		return f.unfit(path, typeOf[T](), was)
	})
}

// unfit says why rows can't be added to a dataset.
func (f *File) unfit(path string, t Type, want []int) error {
	o, err := f.object(path)
	if err != nil {
		return err
	}
	return closing(o, func(o object) error {
		info, err := o.info()
		if err != nil {
			return err
		}
		if err := wantType(info, t, false); err != nil {
			return err
		}
		if !info.AsMemory {
			return fmt.Errorf("%w: its elements are not in the form of %v in memory", ErrType, info.Type)
		}
		return fmt.Errorf("%w: %v of shape %v, at most %v, can't go on from %v", ErrShape, info.Type, info.Shape, info.Max, want)
	})
}

// Pieces says where the rows first to first+n of the first axis are in the file, in
// C order: the place to write them to with other means. What the file has open or not
// yet flushed must not be mixed with that. Compressed data, data in another form than in
// memory, and data without a place is an error.
func (f *File) Pieces(path string, first, n int) ([]Piece, error) {
	var pieces []Piece
	err := f.on("locate", path, "", false, func(o object) error {
		info, err := o.info()
		if err != nil {
			return err
		}
		if err := wantKind(o, Dataset); err != nil {
			return err
		}
		if info.elsewhere || info.Filters > 0 || info.Type.size() == 0 {
			return fmt.Errorf("%w: its data is not in the file as it is", ErrKind)
		}
		if !info.AsMemory {
			return fmt.Errorf("%w: its elements are not in the form of %v in memory", ErrType, info.Type)
		}
		if len(info.Shape) == 0 || first < 0 || n < 0 || first > info.Shape[0] || n > info.Shape[0]-first {
			return fmt.Errorf("%w: rows %d to %d of shape %v", ErrShape, first, first+n, info.Shape)
		}
		pieces, err = locate(o, info, first, n)
		return err
	})
	return pieces, err
}

func locate(o object, info Info, first, n int) ([]Piece, error) {
	if info.Elements() == 0 || n == 0 {
		return nil, nil
	}
	rank := len(info.Shape)
	if info.Chunk == nil {
		offset, err := o.contiguous()
		if err != nil {
			return nil, err
		}
		row := int64(info.Elements()/info.Shape[0]) * info.bytes
		p := Piece{Start: make([]int, rank), Count: slices.Clone(info.Shape), Offset: offset + int64(first)*row, Bytes: int64(n) * row}
		p.Start[0], p.Count[0] = first, n
		return []Piece{p}, nil
	}
	var pieces []Piece
	start := make([]int, rank)
	start[0] = first - first%info.Chunk[0]
	for start[0] < first+n {
		p := Piece{Start: slices.Clone(start), Count: make([]int, rank)}
		for i := range rank {
			p.Count[i] = min(info.Chunk[i], info.Shape[i]-start[i])
		}
		var err error
		if p.Offset, p.Bytes, err = o.chunk(start); err != nil {
			return nil, err
		}
		pieces = append(pieces, p)
		axis := rank - 1
		for start[axis] += info.Chunk[axis]; axis > 0 && start[axis] >= info.Shape[axis]; start[axis] += info.Chunk[axis] {
			start[axis] = 0
			axis--
		}
	}
	return pieces, nil
}

func wantType(info Info, t Type, widen bool) error {
	if info.Kind != Dataset {
		return fmt.Errorf("%w: it is a %v, not a %v", ErrKind, info.Kind, Dataset)
	}
	if info.Type == t || widen && info.Type.widens(t) {
		return nil
	}
	if info.Type == Unknown {
		return fmt.Errorf("%w: %s of %d bytes, not %v", ErrType, info.Class, info.bytes, t)
	}
	return fmt.Errorf("%w: %v, not %v", ErrType, info.Type, t)
}

// checkRoom compares what a file declares with what it can hold, before memory is
// reserved for that much.
func (f *File) checkRoom(info Info, shape []int) error {
	if info.elsewhere {
		return fmt.Errorf("%w: its data is in another file", ErrLink)
	}
	if info.foreign {
		return fmt.Errorf("%w: it has a filter that is not built in", ErrType)
	}
	size, err := f.onDisk()
	if err != nil {
		return err
	}
	// The library reads what a shape declares from the place that it has.
	if total, ok := product(append([]int{int(info.bytes)}, info.Shape...)); !ok || !info.Null && info.placed && int64(total) > info.Storage {
		return fmt.Errorf("%w: shape %v of %d bytes each has %d bytes of data", ErrFormat, info.Shape, info.bytes, info.Storage)
	}
	room := info.Storage
	if room > size {
		return fmt.Errorf("%w: %d bytes of data in a file of %d", ErrTooLarge, room, size)
	}
	if info.Filters > 0 {
		room *= maxInflate
	}
	room += maxSparse
	for _, s := range [][]int{shape, info.Chunk} {
		n, ok := product(s)
		if s == nil {
			n, ok = 1, true
		}
		high, total := bits.Mul64(uint64(n), uint64(info.bytes))
		if !ok || high != 0 || total > uint64(room) {
			return fmt.Errorf("%w: shape %v of %d bytes each, with %d bytes of data in the file", ErrTooLarge, s, info.bytes, info.Storage)
		}
		if info.Filters == 0 {
			break
		}
	}
	return nil
}

// takeSparse counts what is read that the file has no data for: many datasets that were
// never written would together take any amount of memory.
func (f *File) takeSparse(info Info) error {
	room := info.Storage
	if info.Filters > 0 {
		room *= maxInflate
	}
	f.sparse += max(0, int64(info.Elements())*info.bytes-room)
	if f.sparse > maxSparse {
		return fmt.Errorf("%w: shape %v, with %d bytes of data in the file, after others like it", ErrTooLarge, info.Shape, info.Storage)
	}
	return nil
}

// onDisk is the size that the file has, or will have.
func (f *File) onDisk() (int64, error) {
	if !f.writable {
		return f.size, nil
	}
	want, got, err := f.h.ends()
	return max(want, got), err
}

// checkBools looks whether bytes that were read are booleans.
func checkBools[T Element](data []T) error {
	if typeOf[T]() != Bool {
		return nil
	}
	for i, b := range unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)) {
		if b > 1 {
			clear(data)
			return noBool(i, int64(b))
		}
	}
	return nil
}

// product multiplies extents; false if that overflows.
func product(shape []int) (int, bool) {
	n := uint64(1)
	for _, d := range shape {
		high, low := bits.Mul64(n, uint64(d))
		if d < 0 || high != 0 || low > math.MaxInt/16 {
			return 0, false
		}
		n = low
	}
	return int(n), true
}

func checkShape(shape []int) error {
	if len(shape) > maxRank {
		return fmt.Errorf("%w: %d axes, at most %d", ErrShape, len(shape), maxRank)
	}
	for _, d := range shape {
		if d < 0 {
			return fmt.Errorf("%w: %v", ErrShape, shape)
		}
	}
	if _, ok := product(shape); !ok {
		return fmt.Errorf("%w: %v has too many elements", ErrShape, shape)
	}
	return nil
}

func checkCount(n int, shape []int) error {
	if want, ok := product(shape); !ok || n != want {
		return fmt.Errorf("%w: %d elements for shape %v", ErrShape, n, shape)
	}
	return nil
}

func (l Layout) check() error {
	if err := checkShape(l.Shape); err != nil {
		return err
	}
	if l.Chunk == nil {
		if l.Extendible || l.Deflate != 0 {
			return fmt.Errorf("%w: only chunks can be extended or compressed", ErrShape)
		}
		return nil
	}
	if len(l.Chunk) != len(l.Shape) || len(l.Shape) == 0 {
		return fmt.Errorf("%w: chunks %v of shape %v", ErrShape, l.Chunk, l.Shape)
	}
	for i, d := range l.Chunk {
		// The library wants chunks within axes of fixed extent.
		if d <= 0 || d > l.Shape[i] && !(i == 0 && l.Extendible) {
			return fmt.Errorf("%w: chunks %v of shape %v", ErrShape, l.Chunk, l.Shape)
		}
	}
	if n, ok := product(l.Chunk); !ok || n >= 1<<32/8 {
		return fmt.Errorf("%w: chunks %v, not below 4 GiB", ErrShape, l.Chunk)
	}
	if l.Deflate < 0 || l.Deflate > 9 || l.Deflate > 0 && l.Early {
		return fmt.Errorf("%w: deflate %d, early %v", ErrShape, l.Deflate, l.Early)
	}
	return nil
}
