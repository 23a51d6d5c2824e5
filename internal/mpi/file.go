//go:build mpi

package mpi

/*
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

// Ownership. A file call blocks until it has ended, so it may use the Go memory
// it is given; nothing of MPI holds on to it after the return. Hints and views
// are copied by MPI. MPI_File handles and datatypes are C values kept in Go.

static MPI_Info fs_no_info(void) { return MPI_INFO_NULL; }
static MPI_Datatype fs_no_type(void) { return MPI_DATATYPE_NULL; }

// fs_open makes errors of the open itself return, whatever the host program has
// set for files that are not open yet.
static int fs_open(MPI_Comm comm, const char *path, int writing, MPI_Info info, MPI_File *f) {
	MPI_Errhandler before;
	int ec = MPI_File_get_errhandler(MPI_FILE_NULL, &before);
	if (ec != MPI_SUCCESS) return ec;
	MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
	ec = MPI_File_open(comm, path, writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, info, f);
	MPI_File_set_errhandler(MPI_FILE_NULL, before);
	if (before != MPI_ERRHANDLER_NULL) MPI_Errhandler_free(&before);
	if (ec == MPI_SUCCESS) ec = MPI_File_set_errhandler(*f, MPI_ERRORS_RETURN);
	return ec;
}

static int fs_element_type(int bytes, MPI_Datatype *type) {
	int ec = MPI_Type_contiguous(bytes, MPI_BYTE, type);
	return ec == MPI_SUCCESS ? MPI_Type_commit(type) : ec;
}

// Where the box is empty MPI allows no subarray; nothing will move there.
static int fs_set_view(MPI_File f, MPI_Offset disp, MPI_Datatype element, int empty,
		const int *global, const int *local, const int *start) {
	MPI_Datatype box;
	int ec;
	if (empty) return MPI_File_set_view(f, disp, element, element, "native", MPI_INFO_NULL);
	ec = MPI_Type_create_subarray(3, global, local, start, MPI_ORDER_FORTRAN, element, &box);
	if (ec != MPI_SUCCESS) return ec;
	ec = MPI_Type_commit(&box);
	if (ec == MPI_SUCCESS) ec = MPI_File_set_view(f, disp, element, box, "native", MPI_INFO_NULL);
	MPI_Type_free(&box);
	return ec;
}

// fs_move calls the collective and says how many bytes moved, -1 if MPI can't.
static int fs_move(MPI_File f, MPI_Offset at, void *buf, int n, MPI_Datatype element, int writing, long long *moved) {
	MPI_Status status;
	MPI_Count bytes;
	int ec;
	// ROMIO leaves the status of an empty contribution as it was.
	memset(&status, 0, sizeof status);
	ec = MPI_Status_set_elements(&status, MPI_BYTE, 0);
	if (ec != MPI_SUCCESS) return ec;
	ec = writing ? MPI_File_write_at_all(f, at, buf, n, element, &status)
	             : MPI_File_read_at_all(f, at, buf, n, element, &status);
	*moved = -1;
	if (ec == MPI_SUCCESS && MPI_Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED)
		*moved = (long long)bytes;
	return ec;
}
*/
import "C"

import (
	"fmt"
	"math"
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// File is a file that all ranks of a communicator have open. All its methods
// but Hints are collective, and cannot be watched: callers agree before each
// that every rank gets there with arguments that will do.
type File struct {
	f        C.MPI_File
	path     string
	writing  bool
	element  C.MPI_Datatype
	elemSize int           // of element, 0 before SetView
	release  func()        // what its name needs while it is open
	hang     time.Duration // see SetHangLimit
	rank     C.int
}

// watch ends the job if a call has not returned after the limit, of which time in which
// the process was stopped is no part. The function that it returns ends the watch.
func watch(op, path string, limit time.Duration, rank C.int) (end func()) {
	if limit == 0 {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		wait := waiting.NewMeter(limit)
		if wait.Wait(done) {
			return
		}
		fmt.Fprintf(os.Stderr, "rank %d: %s %s has not returned for %v: ending the job\n", rank, op, path, limit)
		abort(1)
	}()
	return func() { close(done) }
}

// OpenFile opens an existing file for writing or for reading, with hints for the
// library's I/O. Collective; path, direction and hints are equal on all ranks.
func (c *Comm) OpenFile(path string, write bool, hints map[string]string) (*File, error) {
	if c.dead != nil {
		return nil, c.dead
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("MPI_File_open %q: %w", path, syscall.EINVAL)
	}
	enter()
	defer leave()
	info := C.fs_no_info()
	if len(hints) > 0 {
		if ec := C.MPI_Info_create(&info); ec != C.MPI_SUCCESS {
			return nil, failure("MPI_Info_create", ec)
		}
		defer C.MPI_Info_free(&info)
	}
	for key, value := range hints {
		if err := setHint(info, key, value); err != nil {
			return nil, err
		}
	}
	plain, release := libraryName(path)
	name := C.CString(plain)
	defer C.free(unsafe.Pointer(name))
	f := &File{path: path, writing: write, element: C.fs_no_type(), release: release, hang: c.hang, rank: c.c.rank}
	var writing C.int
	if write {
		writing = 1
	}
	defer watch("MPI_File_open", path, c.hang, c.c.rank)()
	if ec := C.fs_open(c.c.comm, name, writing, info, &f.f); ec != C.MPI_SUCCESS {
		release()
		return nil, failure("MPI_File_open "+path, ec)
	}
	return f, nil
}

func setHint(info C.MPI_Info, key, value string) error {
	if len(key) == 0 || len(key) >= C.MPI_MAX_INFO_KEY || len(value) == 0 || len(value) >= C.MPI_MAX_INFO_VAL ||
		strings.ContainsRune(key+value, 0) {
		return fmt.Errorf("hint %q = %q: %w", key, value, syscall.EINVAL)
	}
	k, v := C.CString(key), C.CString(value)
	defer C.free(unsafe.Pointer(k))
	defer C.free(unsafe.Pointer(v))
	if ec := C.MPI_Info_set(info, k, v); ec != C.MPI_SUCCESS {
		return failure("MPI_Info_set "+key, ec)
	}
	return nil
}

// SetView makes this rank see the box local at start of an array of size global,
// x fastest, that begins disp bytes into the file; elements are elemSize bytes,
// 8 or 16. An empty box sees the whole array and moves nothing. Collective.
func (f *File) SetView(disp int64, elemSize int, global, local, start [3]int) error {
	if elemSize != 8 && elemSize != 16 {
		return fmt.Errorf("MPI_File_set_view %s: elements of %d bytes", f.path, elemSize)
	}
	var g, l, s [3]C.int
	var empty C.int
	for axis := range 3 {
		if global[axis] < 1 || global[axis] > math.MaxInt32 || local[axis] < 0 || start[axis] < 0 || start[axis] > global[axis]-local[axis] {
			return fmt.Errorf("MPI_File_set_view %s: box of %v at %v in %v", f.path, local, start, global)
		}
		if local[axis] == 0 {
			empty = 1
		}
		g[axis], l[axis], s[axis] = C.int(global[axis]), C.int(local[axis]), C.int(start[axis])
	}
	enter()
	defer leave()
	if f.elemSize != elemSize {
		if err := f.freeElement(); err != nil {
			return err
		}
		if ec := C.fs_element_type(C.int(elemSize), &f.element); ec != C.MPI_SUCCESS {
			return failure("MPI_Type_contiguous", ec)
		}
		f.elemSize = elemSize
	}
	defer watch("MPI_File_set_view", f.path, f.hang, f.rank)()
	if ec := C.fs_set_view(f.f, C.MPI_Offset(disp), f.element, empty, &g[0], &l[0], &s[0]); ec != C.MPI_SUCCESS {
		return failure("MPI_File_set_view "+f.path, ec)
	}
	return nil
}

func (f *File) freeElement() error {
	if f.elemSize == 0 {
		return nil
	}
	f.elemSize = 0
	if ec := C.MPI_Type_free(&f.element); ec != C.MPI_SUCCESS {
		return failure("MPI_Type_free", ec)
	}
	return nil
}

// WriteAtAll writes buf, at most MaxRound bytes, from the element elemOffset of
// this rank's view on. A rank may bring an empty buf. Collective.
func (f *File) WriteAtAll(elemOffset int64, buf []byte, elemSize int) error {
	return f.move("MPI_File_write_at_all", true, elemOffset, buf, elemSize)
}

// ReadAtAll fills buf, at most MaxRound bytes, from the element elemOffset of
// this rank's view on. A rank may bring an empty buf. Reading past the file's
// end is not detected by every library: check the size before. Collective.
func (f *File) ReadAtAll(elemOffset int64, buf []byte, elemSize int) error {
	return f.move("MPI_File_read_at_all", false, elemOffset, buf, elemSize)
}

func (f *File) move(call string, write bool, elemOffset int64, buf []byte, elemSize int) error {
	op := call + " " + f.path
	switch {
	case write != f.writing:
		return fmt.Errorf("%s: the file is open for the other direction", op)
	case elemSize == 0 || elemSize != f.elemSize:
		return fmt.Errorf("%s: elements of %d bytes in a view of %d", op, elemSize, f.elemSize)
	case len(buf)%elemSize != 0:
		return fmt.Errorf("%s: %d bytes are not whole elements of %d", op, len(buf), elemSize)
	case len(buf) > MaxRound:
		return fmt.Errorf("%s: %d bytes in one round, more than %d", op, len(buf), MaxRound)
	case elemOffset < 0:
		return fmt.Errorf("%s: offset %d", op, elemOffset)
	}
	var writing C.int
	if write {
		writing = 1
	}
	var moved C.longlong
	enter()
	defer leave()
	defer watch(call, f.path, f.hang, f.rank)()
	ec := C.fs_move(f.f, C.MPI_Offset(elemOffset), unsafe.Pointer(unsafe.SliceData(buf)), C.int(len(buf)/elemSize), f.element, writing, &moved)
	if ec != C.MPI_SUCCESS {
		return failure(op, ec)
	}
	if int64(moved) != int64(len(buf)) {
		return fmt.Errorf("%s: moved %d of %d bytes: %w", op, int64(moved), len(buf), syscall.EIO)
	}
	return nil
}

// Hints are those in force, which may differ from those given.
func (f *File) Hints() (map[string]string, error) {
	enter()
	defer leave()
	info := C.fs_no_info()
	if ec := C.MPI_File_get_info(f.f, &info); ec != C.MPI_SUCCESS {
		return nil, failure("MPI_File_get_info "+f.path, ec)
	}
	hints := make(map[string]string)
	if info == C.fs_no_info() {
		return hints, nil
	}
	defer C.MPI_Info_free(&info)
	var n C.int
	if ec := C.MPI_Info_get_nkeys(info, &n); ec != C.MPI_SUCCESS {
		return nil, failure("MPI_Info_get_nkeys", ec)
	}
	for i := range n {
		var key [C.MPI_MAX_INFO_KEY + 1]C.char
		var value [C.MPI_MAX_INFO_VAL + 1]C.char
		var there C.int
		if ec := C.MPI_Info_get_nthkey(info, i, &key[0]); ec != C.MPI_SUCCESS {
			return nil, failure("MPI_Info_get_nthkey", ec)
		}
		if ec := C.MPI_Info_get(info, &key[0], C.MPI_MAX_INFO_VAL, &value[0], &there); ec != C.MPI_SUCCESS {
			return nil, failure("MPI_Info_get", ec)
		}
		if there != 0 {
			hints[C.GoString(&key[0])] = C.GoString(&value[0])
		}
	}
	return hints, nil
}

// Close closes the file. It does not sync it. Collective.
func (f *File) Close() error {
	enter()
	defer leave()
	defer f.release()
	typeErr := f.freeElement()
	defer watch("MPI_File_close", f.path, f.hang, f.rank)()
	if ec := C.MPI_File_close(&f.f); ec != C.MPI_SUCCESS {
		return failure("MPI_File_close "+f.path, ec)
	}
	return typeErr
}
