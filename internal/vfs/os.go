package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// OS is the filesystem of the operating system. Its files embed [*os.File], so
// that code that needs the descriptor can ask for it.
var OS FS = osFS{}

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := openFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (osFS) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }

func (osFS) Rename(oldname, newname string) error {
	if err := rename(oldname, newname); err != nil {
		return linkError(oldname, newname, err)
	}
	return nil
}

func (osFS) RenameNoReplace(oldname, newname string) error {
	if err := renameNoReplace(oldname, newname); err != nil {
		return linkError(oldname, newname, err)
	}
	return nil
}

func linkError(oldname, newname string, err error) error {
	return &os.LinkError{Op: "rename", Old: oldname, New: newname, Err: err}
}

func (osFS) SyncDir(name string) error {
	f, err := os.OpenFile(name, os.O_RDONLY|openDirectory, 0)
	if err != nil {
		return err
	}
	if syncsDirs {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func (osFS) Usage(name string) (Usage, error) {
	u, err := usage(name)
	if err != nil {
		return Usage{}, &fs.PathError{Op: "statfs", Path: name, Err: err}
	}
	return u, nil
}

func (f osFile) Allocate(size int64) error {
	err := f.allocate(size)
	if err == nil {
		return nil
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return err
	}
	return &fs.PathError{Op: "allocate", Path: f.Name(), Err: err}
}

func (f osFile) allocate(size int64) error {
	if size < 0 {
		return syscall.EINVAL
	}
	if size == 0 {
		return nil
	}
	err := allocate(f.File, size)
	if !errors.Is(err, ErrUnsupported) {
		return err
	}
	info, err := f.Stat()
	if err != nil || info.Size() >= size {
		return err
	}
	return f.Truncate(size)
}

// StartWriteBack makes the system begin to write a range of the file to the disk,
// where it can be told to, and doesn't wait. It is a hint: it promises nothing,
// and what goes wrong is an error of a later Sync.
func StartWriteBack(f File, offset, n int64) {
	if o, ok := f.(osFile); ok && n > 0 {
		startWriteBack(o.File, offset, n)
	}
}

// forgetter is a file that can let go of what its system keeps of it.
type forgetter interface{ Forget() }

// Forget makes the system let go of the pages that it keeps of the file, where it can, so
// that the next read asks the filesystem: a client of a network filesystem may have kept
// what another node has changed since. It is a hint, and no change is lost by it.
func Forget(f File) {
	if c, ok := f.(forgetter); ok {
		c.Forget()
	}
}

func (f osFile) Forget() { forget(f.File) }

// lockAttempts bounds the races that Lock is ready to lose against releases of
// the same lock. Whoever loses that many is told that the lock is held: it was,
// each time.
const lockAttempts = 100

func (osFS) Lock(name string) (Lock, error) {
	for range lockAttempts {
		l, err := tryLock(name)
		if err != nil {
			return nil, err
		}
		if l != nil {
			return l, nil
		}
	}
	return nil, &fs.PathError{Op: "lock", Path: name, Err: ErrLocked}
}

// tryLock returns nil, nil if the file was removed or replaced between open and
// lock, as a release does: such a lock excludes nobody.
func tryLock(name string) (Lock, error) {
	f, created, err := openLockFile(name)
	if err != nil {
		return nil, err
	}
	if err := f.tryLock(); err != nil {
		if created && errors.Is(err, ErrNoLocks) {
			err = errors.Join(err, os.Remove(name))
		}
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	l := &osLock{file: f, name: name}
	same, err := l.current()
	if err == nil && same && f.readOnly {
		same, err = l.keep()
	}
	if err == nil && same {
		return l, nil
	}
	return nil, errors.Join(err, l.unlock())
}

// keep reports whether a file that can't be written is to be the lock. Otherwise
// it has removed the file, while nobody else could hold it, so that the next try
// makes one that can be written.
func (l *osLock) keep() (bool, error) {
	err := os.Remove(l.name)
	if errors.Is(err, fs.ErrPermission) {
		return true, nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return false, err
}

func openLockFile(name string) (f lockFile, created bool, err error) {
	for range lockAttempts {
		file, err := openLock(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			share(file)
			return lockFile{File: file}, true, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return lockFile{}, false, err
		}
		file, err = openLock(name, os.O_RDWR|openNoFollow|NoWait, 0)
		readOnly := errors.Is(err, fs.ErrPermission)
		if readOnly { // another user's
			file, err = openLock(name, os.O_RDONLY|openNoFollow|NoWait, 0)
		}
		if errors.Is(err, fs.ErrNotExist) {
			continue // released in between
		}
		if errors.Is(err, fs.ErrPermission) {
			err = fmt.Errorf("%w (it is another user's, and can't be asked whether it is held: once it isn't, that user or you may remove it)", err)
		}
		if err != nil {
			return lockFile{}, false, err
		}
		info, err := file.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = &fs.PathError{Op: "lock", Path: name, Err: ErrNotRegular}
		}
		if err != nil {
			file.Close()
			return lockFile{}, false, err
		}
		return lockFile{file, readOnly}, false, nil
	}
	return lockFile{}, false, &fs.PathError{Op: "lock", Path: name, Err: ErrLocked}
}

// lockFile has the methods tryLock and unlock of each operating system.
type lockFile struct {
	*os.File
	readOnly bool
}

type osLock struct {
	name string

	mu   sync.Mutex
	file lockFile // without a file once released
}

func (l *osLock) Release() error { return l.release(true) }

func (l *osLock) release(remove bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file.File == nil {
		return &fs.PathError{Op: "unlock", Path: l.name, Err: fs.ErrClosed}
	}
	var err error
	if remove {
		var same bool
		if same, err = l.current(); err == nil && same {
			err = os.Remove(l.name)
		}
		if errors.Is(err, fs.ErrPermission) {
			err = nil // another user's, in a sticky directory
		}
	}
	return errors.Join(err, l.unlock())
}

func (l *osLock) Describe(text string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.file.File == nil:
		return &fs.PathError{Op: "write", Path: l.name, Err: fs.ErrClosed}
	case l.file.readOnly:
		return &fs.PathError{Op: "write", Path: l.name, Err: fs.ErrPermission}
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(text), 0)
	return err
}

func (l *osLock) Current() (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file.File == nil {
		return false, &fs.PathError{Op: "lstat", Path: l.name, Err: fs.ErrClosed}
	}
	return l.current()
}

// current reports whether the locked file is still the one at its name.
func (l *osLock) current() (bool, error) {
	locked, err := l.file.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(locked, there), nil
}

// unlock gives the lock up by a call of its own: a child process between fork
// and exec still has a copy of the descriptor, so closing might not be enough.
func (l *osLock) unlock() error {
	f := l.file
	l.file = lockFile{}
	err := f.unlock()
	if err != nil {
		err = fmt.Errorf("unlock %s: %w", l.name, err)
	}
	return errors.Join(err, f.Close())
}
