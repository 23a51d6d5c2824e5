package h5

import "unsafe"

// What the rest of the package wants of the library. All of it is called between
// enter and its return.

type handle interface {
	close() error
	// abandon gives the disk's space back after a failure. The library may keep
	// what it could not write, in memory.
	abandon()
	flush() error
	sync() error
	// ends gives the size that the file should have and the one it has.
	ends() (want, got int64, err error)
	// objects counts what is open, the file itself included.
	objects() int
	open(path string) (object, error)
	// missing gives the first part of a path that leads nowhere, "" if all do.
	missing(path string) (string, error)
	// exists looks for a link in a group that is there.
	exists(path string) (bool, error)
	makeGroup(path string) error
	makeDataset(path string, e element, l Layout) (object, error)
	unlink(path string) error
	// append adds rows to a dataset with so many, all of it in one call; false where the
	// dataset has another shape, or elements that aren't in the file as in memory.
	append(path string, b buffer, have, add []int) (fits bool, err error)
	// readAt reads what is on disk.
	readAt(to []byte, at uint64) error
}

type object interface {
	close() error
	kind() Kind
	address() (uint64, error)
	// info comes before what moves elements, which needs to know their form.
	info() (Info, error)
	list() ([]Entry, error)
	attributes() ([]string, error)
	hasAttribute(name string) (bool, error)
	attribute(name string) (object, error)
	makeAttribute(name string, e element, shape []int) (object, error)
	deleteAttribute(name string) error
	// reference is how attributes of dimension scales name the object.
	reference() (uint64, error)
	// makeScale makes a dataset a dimension scale. setScales attaches one to each axis of
	// a dataset, setUsers tells a scale the axes to which it is attached.
	makeScale(name string) error
	setScales(references []uint64) error
	setUsers(references []uint64, axes []int) error
	// read and write move elements of one type; nothing moves where there are
	// none.
	read(info Info, b buffer, s *slab) error
	write(b buffer, s *slab) error
	// readStored reads elements of one size as the file has them.
	readStored(to []byte) error
	writeFixed(from []byte, s *slab) error
	// readReferences reads the 16 bytes that each string of variable length has
	// in place.
	readReferences(to []byte) error
	writeVariable(list []string, s *slab) error
	extend(shape []int) error
	contiguous() (offset int64, err error)
	chunk(start []int) (offset, size int64, err error)
}

// element is the type of what is created. Strings have a length, or none if it
// varies.
type element struct {
	t      Type
	length int
}

// buffer is the memory of a slice of elements.
type buffer struct {
	t     Type
	slice any // pointer to the slice
	data  unsafe.Pointer
	n     int
}

func bufferOf[T Element](s []T) buffer {
	b := buffer{t: typeOf[T](), slice: &s, data: unsafe.Pointer(unsafe.SliceData(s)), n: len(s)}
	if b.t == Bool {
		bytes := unsafe.Slice((*byte)(b.data), len(s))
		b.slice = &bytes
	}
	return b
}

// slab is a part of a dataset.
type slab struct{ start, count []int }
