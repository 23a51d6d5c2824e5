package vfs

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"syscall"
	"time"
)

// memFile is a handle. It refers to the inode: a rename of the file or of a
// directory above it changes nothing. Guarded by Mem.mu.
type memFile struct {
	m      *Mem
	node   *inode
	name   string
	flag   int
	pos    int64
	closed bool
}

var errAppendAt = errors.New("write at an offset of a file opened for appending")

func (f *memFile) Name() string { return f.name }

// do runs one call on an open handle.
func (f *memFile) do(op string, call func() error) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := error(fs.ErrClosed)
	if !f.closed {
		err = call()
	}
	if err == nil || err == io.EOF {
		return err
	}
	return pathError(op, f.name, err)
}

func (f *memFile) readable() error {
	switch {
	case f.flag&os.O_WRONLY != 0:
		return syscall.EBADF
	case f.node.mode.IsDir():
		return syscall.EISDIR
	}
	return nil
}

func (f *memFile) writable() bool { return f.flag&(os.O_WRONLY|os.O_RDWR) != 0 }

func (f *memFile) Read(dst []byte) (n int, err error) {
	err = f.do("read", func() error {
		if err := f.readable(); err != nil {
			return err
		}
		n = f.node.data.read(f.pos, dst)
		f.pos += int64(n)
		if n == 0 && len(dst) > 0 {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (f *memFile) ReadAt(dst []byte, off int64) (n int, err error) {
	err = f.do("read", func() error {
		if off < 0 {
			return syscall.EINVAL
		}
		if len(dst) == 0 {
			return nil
		}
		if err := f.readable(); err != nil {
			return err
		}
		if n = f.node.data.read(off, dst); n < len(dst) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (f *memFile) Write(src []byte) (n int, err error) {
	err = f.do("write", func() error {
		if f.flag&os.O_APPEND != 0 {
			f.pos = f.node.data.size
		}
		n, err = f.write(src, f.pos)
		f.pos += int64(n)
		return err
	})
	return n, err
}

func (f *memFile) WriteAt(src []byte, off int64) (n int, err error) {
	err = f.do("write", func() error {
		switch {
		case f.flag&os.O_APPEND != 0:
			return errAppendAt
		case off < 0:
			return syscall.EINVAL
		case len(src) == 0:
			return nil
		}
		n, err = f.write(src, off)
		return err
	})
	return n, err
}

// write writes as much as there is space for.
func (f *memFile) write(src []byte, off int64) (int, error) {
	switch {
	case !f.writable():
		return 0, syscall.EBADF
	case off > math.MaxInt64-int64(len(src)):
		return 0, syscall.EFBIG
	case len(src) == 0:
		return 0, nil
	}
	n := f.node.data.fits(off, int64(len(src)), f.m.free())
	if n > 0 {
		f.m.applyOp(f.node, fileOp{kind: opWrite, off: off, data: slices.Clone(src[:n])})
	}
	if n < int64(len(src)) {
		return int(n), syscall.ENOSPC
	}
	return int(n), nil
}

func (f *memFile) Truncate(size int64) error {
	return f.do("truncate", func() error {
		if size < 0 || !f.writable() {
			return syscall.EINVAL
		}
		f.m.applyOp(f.node, fileOp{kind: opTruncate, size: size})
		return nil
	})
}

func (f *memFile) Allocate(size int64) error {
	return f.do("allocate", func() error {
		switch {
		case size < 0:
			return syscall.EINVAL
		case size == 0:
			return nil
		case !f.writable():
			return syscall.EBADF
		}
		if f.m.noAllocate {
			if f.node.data.size < size {
				f.m.applyOp(f.node, fileOp{kind: opExtend, size: size})
			}
			return nil
		}
		if f.node.data.missing(size) > f.m.free() {
			return syscall.ENOSPC
		}
		f.m.applyOp(f.node, fileOp{kind: opAllocate, size: size})
		return nil
	})
}

func (f *memFile) Stat() (info fs.FileInfo, err error) {
	err = f.do("stat", func() error {
		info = f.node.info(f.name)
		return nil
	})
	return info, err
}

func (f *memFile) Sync() error {
	return f.do("sync", func() error {
		if f.node.mode.IsDir() {
			f.node.syncDir()
		} else {
			f.node.syncFile()
		}
		return nil
	})
}

// failSync lets a sync fail: see Mem.
func (f *memFile) failSync() {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.node.mode.IsDir() {
		f.node.failSyncDir()
	} else {
		f.node.syncLost = true
	}
}

func (f *memFile) Close() error {
	return f.do("close", func() error {
		f.closed = true
		f.m.drop(f.node)
		return nil
	})
}

type memInfo struct {
	name  string
	size  int64
	mode  fs.FileMode
	mtime time.Time
	node  *inode // for SameFile
}

func (n *inode) info(name string) fs.FileInfo {
	size := n.data.size
	if n.mode&fs.ModeSymlink != 0 {
		size = int64(len(n.target))
	}
	return memInfo{name: path.Base(name), size: size, mode: n.mode, mtime: n.mtime, node: n}
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return i.mode }
func (i memInfo) ModTime() time.Time { return i.mtime }
func (i memInfo) IsDir() bool        { return i.mode.IsDir() }
func (i memInfo) Sys() any           { return i.node }
