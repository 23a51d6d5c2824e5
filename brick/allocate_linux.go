package brick

import (
	"errors"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// allocatePart reserves the space of a range of a file and makes the file long
// enough for it. Where the system can't do that for a range alone it is done for all
// that lies before, too. It never changes content and never shrinks the file.
func allocatePart(f vfs.File, offset, size int64) error {
	file, ok := f.(syscall.Conn)
	if !ok { // not a file of the operating system
		return f.Allocate(offset + size)
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	cerr := conn.Control(func(fd uintptr) {
		err = inPieces(offset, size, func(offset, n int64) error { return unix.Fallocate(int(fd), 0, offset, n) })
	})
	switch {
	case cerr != nil:
		return cerr
	case errors.Is(err, errors.ErrUnsupported):
		return f.Allocate(offset + size)
	case err != nil:
		return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
	}
	return nil
}

// inPieces calls allocate until it has covered a range, with smaller pieces after each
// signal, which on some filesystems undoes the whole call.
func inPieces(offset, size int64, allocate func(offset, n int64) error) error {
	const smallest = 1 << 20
	piece, end := size, offset+size
	for offset < end {
		n := min(piece, end-offset)
		switch err := allocate(offset, n); err {
		case nil:
			offset += n
		case unix.EINTR:
			piece = max(n/2, min(smallest, n))
		default:
			return err
		}
	}
	return nil
}
