//go:build mpi

package mpi

/*
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

// Ownership. A file call blocks until it has ended, so it may use the Go memory
// it is given; nothing of MPI holds on to it after the return. Hints are copied by
// MPI. MPI_File handles are C values kept in Go.

static MPI_Info fs_no_info(void) { return MPI_INFO_NULL; }

// fs_open makes errors of the open itself return, whatever the host program has
// set for files that are not open yet.
static int fs_open(const char *path, int writing, MPI_Info info, MPI_File *f) {
	MPI_Errhandler before;
	int ec = MPI_File_get_errhandler(MPI_FILE_NULL, &before);
	if (ec != MPI_SUCCESS) return ec;
	MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_RETURN);
	ec = MPI_File_open(MPI_COMM_SELF, path, writing ? MPI_MODE_WRONLY : MPI_MODE_RDONLY, info, f);
	MPI_File_set_errhandler(MPI_FILE_NULL, before);
	if (before != MPI_ERRHANDLER_NULL) MPI_Errhandler_free(&before);
	if (ec != MPI_SUCCESS) return ec;
	ec = MPI_File_set_errhandler(*f, MPI_ERRORS_RETURN);
	if (ec != MPI_SUCCESS) MPI_File_close(f);
	return ec;
}

// fs_move makes the call and says how many bytes moved, -1 if MPI can't.
static int fs_move(MPI_File f, MPI_Offset at, void *buf, int n, int writing, long long *moved) {
	MPI_Status status;
	MPI_Count bytes;
	int ec;
	memset(&status, 0, sizeof status);
	ec = MPI_Status_set_elements(&status, MPI_BYTE, 0);
	if (ec != MPI_SUCCESS) return ec;
	ec = writing ? MPI_File_write_at(f, at, buf, n, MPI_BYTE, &status)
	             : MPI_File_read_at(f, at, buf, n, MPI_BYTE, &status);
	*moved = -1;
	if (ec == MPI_SUCCESS && MPI_Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes != MPI_UNDEFINED)
		*moved = (long long)bytes;
	return ec;
}
*/
import "C"

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// File is a file that this rank has open by itself. None of its calls waits for another
// rank: in the libraries' collective calls on files, ranks wait for ever for one whose
// open, read or write has failed. One goroutine at a time may use it.
type File struct {
	f       C.MPI_File
	path    string
	writing bool
	release func()        // what its name needs while it is open
	hang    time.Duration // see SetHangLimit
	rank    C.int
}

// maxMove is the most bytes that one call on a file moves: above 2 GiB counts overflow
// inside the libraries. A variable for tests.
var maxMove = 1 << 30

// selves guards MPI_COMM_SELF, on which opening and closing are collective calls.
var selves sync.Mutex

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
// library's I/O. It is not collective.
func (c *Comm) OpenFile(path string, write bool, hints map[string]string) (*File, error) {
	if c.dead != nil {
		return nil, c.dead
	}
	if path == "" || strings.ContainsRune(path, 0) {
		return nil, fmt.Errorf("MPI_File_open %q: %w", path, syscall.EINVAL)
	}
	selves.Lock()
	defer selves.Unlock()
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
	f := &File{path: path, writing: write, release: release, hang: c.hang, rank: c.c.rank}
	var writing C.int
	if write {
		writing = 1
	}
	defer watch("MPI_File_open", path, c.hang, c.c.rank)()
	if ec := C.fs_open(name, writing, info, &f.f); ec != C.MPI_SUCCESS {
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

// WriteAt writes b from byte offset on.
func (f *File) WriteAt(b []byte, offset int64) (n int, err error) {
	return f.move("MPI_File_write_at", true, b, offset)
}

// ReadAt fills b from byte offset on. Not every library says that the file ended before:
// check the size as well.
func (f *File) ReadAt(b []byte, offset int64) (n int, err error) {
	return f.move("MPI_File_read_at", false, b, offset)
}

func (f *File) move(call string, write bool, b []byte, offset int64) (n int, err error) {
	op := call + " " + f.path
	switch {
	case write != f.writing:
		return 0, fmt.Errorf("%s: the file is open for the other direction", op)
	case offset < 0 || offset > math.MaxInt64-int64(len(b)):
		return 0, fmt.Errorf("%s: %d bytes at offset %d", op, len(b), offset)
	}
	var writing C.int
	if write {
		writing = 1
	}
	enter()
	defer leave()
	defer watch(call, f.path, f.hang, f.rank)()
	for n < len(b) {
		piece := b[n:min(len(b), n+maxMove)]
		var moved C.longlong
		ec := C.fs_move(f.f, C.MPI_Offset(offset+int64(n)), unsafe.Pointer(unsafe.SliceData(piece)), C.int(len(piece)), writing, &moved)
		if ec != C.MPI_SUCCESS {
			return n, failure(op, ec)
		}
		if int64(moved) != int64(len(piece)) {
			n += int(max(0, moved))
			if !write {
				return n, fmt.Errorf("%s: moved %d of %d bytes: %w", op, n, len(b), io.ErrUnexpectedEOF)
			}
			return n, fmt.Errorf("%s: moved %d of %d bytes: %w", op, n, len(b), syscall.EIO)
		}
		n += len(piece)
	}
	return n, nil
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

// Close closes the file. It does not sync it.
func (f *File) Close() error {
	selves.Lock()
	defer selves.Unlock()
	enter()
	defer leave()
	defer f.release()
	defer watch("MPI_File_close", f.path, f.hang, f.rank)()
	if ec := C.MPI_File_close(&f.f); ec != C.MPI_SUCCESS {
		return failure("MPI_File_close "+f.path, ec)
	}
	return nil
}
