package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

const (
	openNoFollow = 0 // openLock follows no link

	// syncsDirs: no call of the system syncs a directory. What can be had is that a
	// rename is on the disk when it returns.
	syncsDirs = false

	// NoWait is 0: names of pipes aren't names of files.
	NoWait = 0
)

func rename(oldname, newname string) error {
	return move(oldname, newname, windows.MOVEFILE_REPLACE_EXISTING)
}

func renameNoReplace(oldname, newname string) error { return move(oldname, newname, 0) }

func move(oldname, newname string, flags uint32) error {
	from, err := windows.UTF16PtrFromString(oldname)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(newname)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(from, to, flags|windows.MOVEFILE_WRITE_THROUGH)
}

// usage doesn't say that space is promised: nothing is allocated here.
func usage(name string) (Usage, error) {
	info, err := os.Stat(name)
	if err != nil {
		return Usage{}, err
	}
	if !info.IsDir() {
		name = filepath.Dir(name)
	}
	dir, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return Usage{}, err
	}
	var free, total, all uint64
	if err := windows.GetDiskFreeSpaceEx(dir, &free, &total, &all); err != nil {
		return Usage{}, err
	}
	return Usage{Free: int64(min(free, 1<<63-1)), Total: int64(min(total, 1<<63-1)), Type: volumeType(name)}, nil
}

// volumeType is the name of a filesystem, such as "NTFS", "" if that isn't told.
func volumeType(dir string) string {
	f, err := os.Open(dir)
	if err != nil {
		return ""
	}
	defer f.Close()
	var name [windows.MAX_PATH + 1]uint16
	if windows.GetVolumeInformationByHandle(windows.Handle(f.Fd()), nil, 0, nil, nil, nil, &name[0], uint32(len(name))) != nil {
		return ""
	}
	return windows.UTF16ToString(name[:])
}

// openLock opens a file so that it can be removed while it is open, as Release does: its
// name is gone at once since Windows 10. With O_CREATE the file must be new.
func openLock(name string, flag int, _ fs.FileMode) (*os.File, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	mode := uint32(windows.OPEN_EXISTING)
	if flag&os.O_CREATE != 0 {
		mode = windows.CREATE_NEW
	}
	access := uint32(windows.GENERIC_READ)
	if flag&(os.O_RDWR|os.O_WRONLY) != 0 {
		access |= windows.GENERIC_WRITE
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const attributes = windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_OPEN_REPARSE_POINT
	handle, err := windows.CreateFile(path, access, share, nil, mode, attributes, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(handle), name), nil
}

// lockedByte is the one byte that is locked. It lies far behind the end, for nobody can
// read what another process has locked.
func lockedByte() *windows.Overlapped {
	return &windows.Overlapped{Offset: 0xfffffffe, OffsetHigh: 0x7fffffff}
}

func (f lockFile) tryLock() error {
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, lockedByte())
	switch {
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return fmt.Errorf("%w: %w", ErrLocked, err)
	case errors.Is(err, windows.ERROR_INVALID_FUNCTION), errors.Is(err, ErrUnsupported):
		return fmt.Errorf("%w: %w", ErrNoLocks, err)
	}
	return err
}

func (f lockFile) unlock() error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, lockedByte())
}

// share does nothing: the rights to a file are those that its directory passes on.
func share(*os.File) {}
