//go:build hdf5

package h5

/*
#cgo pkg-config: hdf5-serial
#include <stdlib.h>
#include "library.h"
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"gonum.org/v1/hdf5"
)

// Enabled says whether the program was built with the library.
const Enabled = true

// Version names the library.
func Version() string {
	v, err := hdf5.LibVersion()
	if err != nil {
		return "unknown"
	}
	return v.String()
}

// OpenObjects counts what the library has open: files, objects in them, and types.
func OpenObjects() int {
	return allObjects() - inherent
}

// What gonum's package keeps from its start on.
var inherent = allObjects()

func allObjects() (n int) {
	enter(func() error {
		n = int(C.H5Fget_obj_count(C.H5F_OBJ_ALL, C.H5F_OBJ_ALL))
		return nil
	})
	return n
}

// The library isn't thread-safe.
var mutex sync.Mutex

// enter runs a call that uses the library: alone, and on one thread, to which what
// the library says of failures belongs.
func enter(call func() error) (err error) {
	mutex.Lock()
	defer mutex.Unlock()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.fs_begin()
	defer C.fs_end()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return call()
}

var (
	errnoInText = regexp.MustCompile(`errno = (\d+)`)
	// From here on the words are file names, times and addresses.
	details = regexp.MustCompile(`[:,] (name|time|filename|errno|file descriptor) = .*`)
)

// failure is the error of a call that failed just now, or of the first one that did
// since the last failure was looked at.
func failure(call string) error {
	lines := strings.Split(strings.TrimSpace(C.GoString(C.fs_errors())), "\n")
	refused := C.fs_refused_external() != 0
	C.fs_reset()
	e := &LibraryError{Call: call, Text: "failed"}
	if len(lines) > 1 {
		e.Call = lines[0]
		var words []string
		for _, line := range lines[1:] {
			if m := errnoInText.FindStringSubmatch(line); m != nil && e.Errno == 0 {
				n, _ := strconv.Atoi(m[1])
				e.Errno = syscall.Errno(n)
			}
			line = details.ReplaceAllString(line, "")
			if !slices.Contains(words, line) {
				words = append(words, line)
			}
		}
		if len(words) > 5 {
			words = append(words[:2:2], words[len(words)-3:]...)
		}
		if e.Errno != 0 {
			words = append(words, e.Errno.Error())
		}
		e.Text = strings.Join(words, ": ")
	}
	switch {
	case refused:
		return fmt.Errorf("%w: it leads to another file", ErrLink)
	case strings.Contains(e.Text, "too many links"):
		return fmt.Errorf("%w: %w", ErrLink, e)
	}
	return e
}

func check(call string, result C.int) error {
	if result < 0 {
		return failure(call)
	}
	return nil
}

// libraryFile is a file that the library has open.
type libraryFile C.hid_t

func createFile(name string, truncate bool) (handle, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	id := C.fs_create(n, boolean(truncate))
	if id < 0 {
		return nil, failure("H5Fcreate")
	}
	return libraryFile(id), nil
}

func openFile(name string, writable bool) (handle, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	id := C.fs_open(n, boolean(writable))
	if id < 0 {
		return nil, failure("H5Fopen")
	}
	return libraryFile(id), nil
}

func boolean(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (f libraryFile) id() C.hid_t { return C.hid_t(f) }

func (f libraryFile) close() error { return check("H5Fclose", C.H5Fclose(f.id())) }

func (f libraryFile) abandon() {
	C.fs_abandon(f.id())
	C.fs_reset()
}

func (f libraryFile) flush() error {
	return check("H5Fflush", C.H5Fflush(f.id(), C.H5F_SCOPE_GLOBAL))
}

func (f libraryFile) sync() error {
	var errno C.int
	if C.fs_sync(f.id(), &errno) >= 0 {
		return nil
	}
	if errno != 0 {
		return fmt.Errorf("fsync: %w", syscall.Errno(errno))
	}
	return failure("H5Fflush")
}

func (f libraryFile) ends() (want, got int64, err error) {
	var w, g C.ulonglong
	err = check("H5Fget_filesize", C.fs_end_of_file(f.id(), &w, &g))
	return int64(w), int64(g), err
}

func (f libraryFile) descriptor() int { return int(C.fs_descriptor(f.id())) }

func (f libraryFile) objects() int { return int(C.fs_objects(f.id())) }

// absolute is a path as the library has it. The caller frees it.
func absolute(path string) *C.char {
	if path == "/" {
		return C.CString(path)
	}
	return C.CString("/" + path)
}

func (f libraryFile) open(path string) (object, error) {
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	o := &libraryObject{file: f}
	var kind C.int
	if o.id = C.fs_object(f.id(), p, &kind); o.id < 0 {
		return nil, failure("H5Oopen")
	}
	o.k = kindOf(kind)
	return o, nil
}

func kindOf(t C.int) Kind {
	switch t {
	case C.H5O_TYPE_GROUP:
		return Group
	case C.H5O_TYPE_DATASET:
		return Dataset
	case C.H5O_TYPE_NAMED_DATATYPE:
		return NamedType
	case -1 - C.H5L_TYPE_SOFT:
		return SoftLink
	case -1 - C.H5L_TYPE_EXTERNAL:
		return ExternalLink
	}
	return Other
}

func (f libraryFile) missing(path string) (string, error) {
	if path == "/" {
		return "", nil
	}
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	n := C.fs_missing(f.id(), p)
	if n < 0 {
		return "", failure("H5Lexists")
	}
	return path[:max(n-1, 0)], nil
}

func (f libraryFile) exists(path string) (bool, error) {
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	n := C.fs_exists(f.id(), p)
	return n > 0, check("H5Lexists", n)
}

func (f libraryFile) makeGroup(path string) error {
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	return check("H5Gcreate2", C.fs_make_group(f.id(), p))
}

func (f libraryFile) unlink(path string) error {
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	return check("H5Ldelete", C.H5Ldelete(f.id(), p, C.H5P_DEFAULT))
}

func (f libraryFile) makeDataset(path string, e element, l Layout) (object, error) {
	space, err := newSpace(l.Shape, l.Extendible)
	if err != nil {
		return nil, err
	}
	defer space.Close()
	t := C.fs_disk_type(C.int(e.t), C.size_t(e.length), boolean(e.length == 0))
	if t < 0 {
		return nil, failure("H5Tcopy")
	}
	defer C.H5Tclose(t)
	plist, err := hdf5.NewPropList(hdf5.P_DATASET_CREATE)
	if err != nil {
		return nil, failure("H5Pcreate")
	}
	defer plist.Close()
	if l.Chunk != nil {
		if err := plist.SetChunk(extents(l.Chunk)); err != nil {
			return nil, failure("H5Pset_chunk")
		}
	}
	if C.fs_dataset_properties(C.hid_t(plist.ID()), boolean(l.Early), C.int(l.Deflate)) < 0 {
		return nil, failure("H5Pset_obj_track_times")
	}
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	o := &libraryObject{file: f, k: Dataset}
	if o.id = C.fs_make_dataset(f.id(), p, t, C.hid_t(space.ID()), C.hid_t(plist.ID())); o.id < 0 {
		return nil, failure("H5Dcreate2")
	}
	return o, nil
}

func extents(shape []int) []uint {
	u := make([]uint, len(shape))
	for i, d := range shape {
		u[i] = uint(d)
	}
	return u
}

func newSpace(shape []int, extendible bool) (*hdf5.Dataspace, error) {
	var space *hdf5.Dataspace
	var err error
	switch {
	case len(shape) == 0:
		space, err = hdf5.CreateDataspace(hdf5.S_SCALAR)
	case extendible:
		most := extents(shape)
		most[0] = math.MaxUint
		space, err = hdf5.CreateSimpleDataspace(extents(shape), most)
	default:
		space, err = hdf5.CreateSimpleDataspace(extents(shape), nil)
	}
	if err != nil {
		return nil, failure("H5Screate_simple")
	}
	return space, nil
}

// libraryObject is an object or an attribute that the library has open.
type libraryObject struct {
	file libraryFile
	id   C.hid_t
	attr bool
	k    Kind
	// Known from info on: elements are in the file as they are in memory.
	native bool
	// bits says that elements are bit fields, of which the bits count.
	bits bool
}

func (o *libraryObject) kind() Kind { return o.k }

func (o *libraryObject) address() (uint64, error) {
	var at C.ulonglong
	err := check("H5Oget_info2", C.fs_address(o.id, &at))
	return uint64(at), err
}

func (o *libraryObject) close() error {
	if o.attr {
		return check("H5Aclose", C.H5Aclose(o.id))
	}
	return check("H5Oclose", C.H5Oclose(o.id))
}

var classes = map[C.int]string{
	C.H5T_INTEGER: "integer", C.H5T_FLOAT: "float", C.H5T_TIME: "time", C.H5T_STRING: "string",
	C.H5T_BITFIELD: "bit field", C.H5T_OPAQUE: "opaque", C.H5T_COMPOUND: "compound",
	C.H5T_REFERENCE: "reference", C.H5T_ENUM: "enumeration", C.H5T_VLEN: "sequence", C.H5T_ARRAY: "array",
}

func (o *libraryObject) info() (Info, error) {
	if o.k != Dataset {
		return Info{Kind: o.k}, nil
	}
	var c C.fs_info
	if o.attr {
		if C.fs_attribute_info(o.id, &c) < 0 {
			return Info{}, failure("H5Aget_type")
		}
	} else if C.fs_dataset_info(o.id, &c) < 0 {
		return Info{}, failure("H5Dget_type")
	}
	o.native, o.bits = c.native != 0, c.class == C.H5T_BITFIELD
	i := Info{
		Kind: Dataset, Type: Type(c._type), Class: classes[c.class], Null: c.space == C.FS_NULL,
		Filters: int(c.filters), Variable: c.variable != 0,
		AsMemory: o.native,
		foreign:  c.foreign != 0, placed: c.placed != 0, elsewhere: c.layout == C.FS_ELSEWHERE,
		padding: int(c.padding), bytes: int64(c.size), ascii: c.utf8 == 0,
	}
	if c.marked != 0 && (i.Type == Int8 || i.Type == Uint8) {
		i.Type = Bool
	}
	switch {
	case i.Variable: // the library speaks of pointers in memory
		i.bytes = referenceSize
	case i.Type == String:
		i.Length = int(i.bytes)
	}
	if c.size > math.MaxInt32 || c.storage > math.MaxInt64 {
		return i, fmt.Errorf("%w: %d bytes, elements of %d", ErrTooLarge, c.storage, c.size)
	}
	i.Storage = int64(c.storage)
	if c.space == C.FS_SIMPLE {
		n := int(c.rank)
		i.Shape, i.Max = make([]int, n), make([]int, n)
		if c.layout == C.FS_CHUNKED {
			i.Chunk = make([]int, n)
		}
		for a := range n {
			if c.dims[a] > math.MaxInt64 {
				return i, fmt.Errorf("%w: axis %d is %d long", ErrTooLarge, a, c.dims[a])
			}
			i.Shape[a], i.Max[a] = int(c.dims[a]), Unlimited
			if c.max[a] <= math.MaxInt64 {
				i.Max[a] = int(c.max[a])
			}
			if i.Chunk != nil {
				i.Chunk[a] = int(c.chunk[a])
			}
		}
	}
	if _, ok := product(i.Shape); !ok {
		return i, fmt.Errorf("%w: shape %v", ErrTooLarge, i.Shape)
	}
	return i, nil
}

// names collects what a call lists.
func names(call string, list func(*C.fs_names) C.int, each func(name string, kind C.int, address uint64, order int64)) error {
	c := C.fs_names{most: 1 << 20}
	defer C.fs_free_names(&c)
	if list(&c) < 0 {
		return failure(call)
	}
	if c.count == 0 {
		return nil
	}
	kinds := unsafe.Slice(c.kinds, c.count)
	addresses := unsafe.Slice(c.addresses, c.count)
	orders := unsafe.Slice(c.orders, c.count)
	text := unsafe.Slice((*byte)(unsafe.Pointer(c.text)), c.used)
	for i := range kinds {
		name, rest, _ := strings.Cut(unsafe.String(unsafe.SliceData(text), len(text)), "\x00")
		text = text[len(text)-len(rest):]
		each(strings.Clone(name), kinds[i], uint64(addresses[i]), int64(orders[i]))
	}
	return nil
}

func (o *libraryObject) list() ([]Entry, error) {
	var entries []Entry
	came := map[string]int64{}
	err := names("H5Literate", func(c *C.fs_names) C.int { return C.fs_list(o.id, c) }, func(name string, kind C.int, address uint64, order int64) {
		entries = append(entries, Entry{Name: name, Kind: kindOf(kind), address: address})
		came[name] = order
	})
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(came[a.Name], came[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return entries, err
}

func (o *libraryObject) attributes() ([]string, error) {
	var list []string
	err := names("H5Aiterate2", func(c *C.fs_names) C.int { return C.fs_attribute_names(o.id, c) }, func(name string, _ C.int, _ uint64, _ int64) {
		list = append(list, name)
	})
	slices.Sort(list)
	return list, err
}

func (o *libraryObject) hasAttribute(name string) (bool, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	there := C.H5Aexists(o.id, n)
	return there > 0, check("H5Aexists", C.int(there))
}

func (o *libraryObject) attribute(name string) (object, error) {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	a := &libraryObject{file: o.file, attr: true, k: Dataset}
	if a.id = C.H5Aopen(o.id, n, C.H5P_DEFAULT); a.id < 0 {
		return nil, failure("H5Aopen")
	}
	return a, nil
}

func (o *libraryObject) makeAttribute(name string, e element, shape []int) (object, error) {
	space, err := newSpace(shape, false)
	if err != nil {
		return nil, err
	}
	defer space.Close()
	var t C.hid_t
	if e.t == Bool {
		t = C.fs_boolean_type()
	} else {
		t = C.fs_disk_type(C.int(e.t), C.size_t(e.length), boolean(e.length == 0))
	}
	if t < 0 {
		return nil, failure("H5Tcopy")
	}
	defer C.H5Tclose(t)
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	a := &libraryObject{file: o.file, attr: true, k: Dataset}
	if a.id = C.fs_make_attribute(o.id, n, t, C.hid_t(space.ID())); a.id < 0 {
		return nil, failure("H5Acreate2")
	}
	return a, nil
}

func (o *libraryObject) deleteAttribute(name string) error {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return check("H5Adelete", C.H5Adelete(o.id, n))
}

func (o *libraryObject) reference() (uint64, error) {
	var r C.ulonglong
	err := check("H5Rcreate", C.fs_reference(o.id, &r))
	return uint64(r), err
}

func (o *libraryObject) makeScale(name string) error {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return check("H5Acreate2", C.fs_make_scale(o.id, n))
}

// references is a list of references as C has it.
func references(list []uint64) *C.ulonglong {
	return (*C.ulonglong)(unsafe.Pointer(unsafe.SliceData(list)))
}

func (o *libraryObject) setScales(list []uint64) error {
	return check("H5Acreate2", C.fs_dimension_list(o.id, C.size_t(len(list)), references(list)))
}

func (o *libraryObject) setUsers(list []uint64, axes []int) error {
	numbers := make([]C.int, len(axes))
	for i, a := range axes {
		numbers[i] = C.int(a)
	}
	return check("H5Acreate2", C.fs_reference_list(o.id, C.size_t(len(list)), references(list), unsafe.SliceData(numbers)))
}

// dataset is the object as gonum has it. That package opens files and objects only
// in ways of its own; its datasets are an identifier and a type that stays nil where
// they were opened.
func (o *libraryObject) dataset() (*hdf5.Dataset, error) {
	d := new(hdf5.Dataset)
	*(*int64)(unsafe.Pointer(d)) = int64(o.id)
	if d.ID() != int64(o.id) {
		return nil, errors.New("gonum.org/v1/hdf5 has other datasets than are known here")
	}
	return d, nil
}

// spaces are those of a transfer in memory and in the file, nil for everything.
func (o *libraryObject) spaces(s *slab) (memory, file *hdf5.Dataspace, err error) {
	if s == nil {
		return nil, nil, nil
	}
	// Memory has the shape of the part: with another one the library goes through the
	// elements of chunks one by one.
	if memory, err = newSpace(s.count, false); err != nil {
		return nil, nil, err
	}
	d, err := o.dataset()
	if err == nil {
		if file = d.Space(); file == nil {
			err = failure("H5Dget_space")
		} else if file.SelectHyperslab(extents(s.start), nil, extents(s.count), nil) != nil {
			err = failure("H5Sselect_hyperslab")
		}
	}
	if err != nil {
		closeSpaces(memory, file)
		return nil, nil, err
	}
	return memory, file, nil
}

func closeSpaces(spaces ...*hdf5.Dataspace) {
	for _, s := range spaces {
		if s != nil {
			s.Close()
		}
	}
}

func spaceID(s *hdf5.Dataspace) C.hid_t {
	if s == nil {
		return C.H5S_ALL
	}
	return C.hid_t(s.ID())
}

// read leaves bytes that need no conversion to gonum, which knows none.
func (o *libraryObject) read(info Info, b buffer, s *slab) error {
	memory, file, err := o.spaces(s)
	if err != nil {
		return err
	}
	defer closeSpaces(memory, file)
	if o.native && info.Type == b.t && !o.attr {
		if o.readDirect(info, b, s) {
			return nil
		}
		d, err := o.dataset()
		if err != nil {
			return err
		}
		err = d.ReadSubset(b.slice, memory, file)
		runtime.KeepAlive(b.slice)
		if err != nil {
			return failure("H5Dread")
		}
		return nil
	}
	t, asStored := C.fs_memory_type(C.int(b.t)), b.t == Bool
	if asStored && o.bits {
		t, asStored = C.fs_bits_type(), false
	}
	return check("H5Dread", C.fs_read(o.id, boolean(o.attr), boolean(asStored), t,
		spaceID(memory), spaceID(file), b.data))
}

func (o *libraryObject) write(b buffer, s *slab) error {
	memory, file, err := o.spaces(s)
	if err != nil {
		return err
	}
	defer closeSpaces(memory, file)
	if (o.native || b.t == Bool) && !o.attr {
		d, err := o.dataset()
		if err != nil {
			return err
		}
		err = d.WriteSubset(b.slice, memory, file)
		runtime.KeepAlive(b.slice)
		if err != nil {
			return failure("H5Dwrite")
		}
		return nil
	}
	return check("H5Dwrite", C.fs_write(o.id, boolean(o.attr), boolean(b.t == Bool), C.fs_memory_type(C.int(b.t)),
		spaceID(memory), spaceID(file), b.data))
}

func (f libraryFile) append(path string, b buffer, have, add []int) (fits bool, err error) {
	p := absolute(path)
	defer C.free(unsafe.Pointer(p))
	was, more := extents(have), extents(add)
	n := C.fs_append(f.id(), p, C.fs_memory_type(C.int(b.t)), C.int(len(add)),
		(*C.hsize_t)(unsafe.Pointer(unsafe.SliceData(was))), (*C.hsize_t)(unsafe.Pointer(unsafe.SliceData(more))), b.data)
	return n == 0, check("H5Dwrite", n)
}

func (o *libraryObject) readStored(to []byte) error {
	return check("H5Dread", C.fs_read(o.id, boolean(o.attr), 1, -1, C.H5S_ALL, C.H5S_ALL, unsafe.Pointer(unsafe.SliceData(to))))
}

func (o *libraryObject) writeFixed(from []byte, s *slab) error {
	memory, file, err := o.spaces(s)
	if err != nil {
		return err
	}
	defer closeSpaces(memory, file)
	return check("H5Dwrite", C.fs_write(o.id, boolean(o.attr), 1, -1, spaceID(memory), spaceID(file), unsafe.Pointer(unsafe.SliceData(from))))
}

func (o *libraryObject) readReferences(to []byte) error {
	return check("H5Dread", C.fs_read_references(o.file.id(), o.id, boolean(o.attr), unsafe.Pointer(unsafe.SliceData(to))))
}

func (f libraryFile) readAt(to []byte, at uint64) error {
	if C.fs_read_at(f.id(), C.ulonglong(at), unsafe.Pointer(unsafe.SliceData(to)), C.size_t(len(to))) < 0 {
		return fmt.Errorf("%w: %d bytes at %d can't be read", ErrFormat, len(to), at)
	}
	return nil
}

func (o *libraryObject) writeVariable(list []string, s *slab) error {
	memory, file, err := o.spaces(s)
	if err != nil {
		return err
	}
	defer closeSpaces(memory, file)
	total := 0
	for _, s := range list {
		total += len(s) + 1
	}
	width := int(unsafe.Sizeof((*C.char)(nil)))
	array := (**C.char)(C.malloc(C.size_t(len(list)*width + total)))
	if array == nil {
		return syscall.ENOMEM
	}
	defer C.free(unsafe.Pointer(array))
	text := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(array), len(list)*width)), total)
	for i, s := range list {
		unsafe.Slice(array, len(list))[i] = (*C.char)(unsafe.Pointer(&text[0]))
		text[copy(text, s)] = 0
		text = text[len(s)+1:]
	}
	return check("H5Dwrite", C.fs_write(o.id, boolean(o.attr), 1, -1, spaceID(memory), spaceID(file), unsafe.Pointer(array)))
}

func (o *libraryObject) extend(shape []int) error {
	dims := extents(shape)
	return check("H5Dset_extent", C.H5Dset_extent(o.id, (*C.hsize_t)(unsafe.Pointer(unsafe.SliceData(dims)))))
}

func (o *libraryObject) contiguous() (int64, error) {
	var offset C.ulonglong
	if C.fs_contiguous(o.file.id(), o.id, &offset) < 0 {
		return 0, noPlace("H5Dget_offset")
	}
	return int64(offset), nil
}

func (o *libraryObject) chunk(start []int) (offset, size int64, err error) {
	at := extents(start)
	var place, n C.ulonglong
	if C.fs_chunk(o.file.id(), o.id, (*C.hsize_t)(unsafe.Pointer(unsafe.SliceData(at))), &place, &n) < 0 {
		return 0, 0, fmt.Errorf("chunk at %v: %w", start, noPlace("H5Dget_chunk_info_by_coord"))
	}
	return int64(place), int64(n), nil
}

func noPlace(call string) error {
	err := failure(call)
	if le := (*LibraryError)(nil); errors.As(err, &le) && le.Text == "failed" {
		return fmt.Errorf("%w: no place in the file is reserved for it", ErrKind)
	}
	return err
}
