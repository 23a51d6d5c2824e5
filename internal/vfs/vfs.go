package vfs

import (
	"errors"
	"io"
	"io/fs"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

// Sentinel errors. Calls wrap them in a [*fs.PathError] or a [*os.LinkError],
// beside the errno where there was one.
var (
	// ErrUnsupported is returned by calls that the filesystem or the operating
	// system does not offer.
	ErrUnsupported = errors.ErrUnsupported

	// ErrLocked is returned by [FS.Lock] while another holder has the lock.
	ErrLocked = errors.New("locked by another holder")

	// ErrNoLocks is returned by [FS.Lock] where locks do not work, such as a
	// network filesystem that was mounted without them.
	ErrNoLocks = errors.New("the filesystem has no working locks")

	// ErrTooLarge is returned by [ReadFile] for a file above the limit.
	ErrTooLarge = errors.New("file too large")

	// ErrNotRegular is returned where only a regular file will do.
	ErrNotRegular = errors.New("not a regular file")

	// ErrUnclear is returned by [Move] and [MoveNoReplace] after a rename that failed,
	// when it can't be seen which of the two names the thing has now.
	ErrUnclear = errors.New("it can't be seen whether the rename was carried out")
)

func init() {
	sentinel.RegisterAll("vfs", map[string]error{
		"ErrLocked":     ErrLocked,
		"ErrNoLocks":    ErrNoLocks,
		"ErrTooLarge":   ErrTooLarge,
		"ErrNotRegular": ErrNotRegular,
		"ErrUnclear":    ErrUnclear,
		"ErrOneFile":    ErrOneFile,
	})
}

// FS is the part of a filesystem that the protocols use.
//
// Names are paths of the operating system. Permission bits are those of
// open(2) and mkdir(2): the umask applies, so callers pass 0o666 for files and
// 0o777 for directories.
//
// No call implies durability: what a crash leaves of an operation is decided by
// [File.Sync] for the content and size of a file, and by [FS.SyncDir] for the
// entries of a directory.
type FS interface {
	// OpenFile is open(2) with the flags of package os.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)

	// Mkdir creates one directory. Its parent must exist.
	Mkdir(name string, perm fs.FileMode) error

	// Lstat describes name itself, Stat what it leads to.
	Lstat(name string) (fs.FileInfo, error)
	Stat(name string) (fs.FileInfo, error)

	// ReadDir returns the entries of a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)

	// Rename is rename(2): it replaces a file by a file, and an empty
	// directory by a directory, in one step. (os.Rename refuses the latter.)
	Rename(oldname, newname string) error

	// RenameNoReplace renames only if newname does not exist in any form, a
	// dangling link included; otherwise the error wraps fs.ErrExist. The check
	// and the rename are one step. Where that cannot be had the error wraps
	// ErrUnsupported, and nothing happened.
	RenameNoReplace(oldname, newname string) error

	// Remove removes a file, a link or an empty directory.
	Remove(name string) error

	// SyncDir makes the entries of a directory durable: creations, renames and
	// removals in it. It covers neither the content of the files in it nor the
	// entry of the directory itself in its parent. After a failure the state
	// of these entries on disk is unknown, and a second call may report success
	// without having written them. Windows has no such call, so it does nothing there:
	// what is durable when it returns are the renames, which write through.
	SyncDir(name string) error

	// Lock tries to take the exclusive lock on the file at name, which is
	// created if needed; it never waits. The error wraps ErrLocked if someone
	// else holds it, in this process or another, and ErrNoLocks where locks do
	// not work. A lock ends with its process at the latest, but its file stays.
	//
	// Whoever may write the directory can lock a file that another user's process
	// left in it, if the file can be read at least: a file that can't be written is
	// replaced while no one else holds it, and held as it is where it can't be
	// replaced (a sticky directory).
	Lock(name string) (Lock, error)

	// Usage describes the filesystem that holds name.
	Usage(name string) (Usage, error)
}

// File is an open file. Its methods have the meaning they have for [os.File];
// in particular a short read or write comes with an error.
type File interface {
	io.Reader
	io.Writer
	io.ReaderAt
	io.WriterAt
	io.Closer

	// Name returns the name that was given to OpenFile.
	Name() string

	Stat() (fs.FileInfo, error)

	// Sync makes content and size durable, but not the entry of the file in
	// its directory. A failure is final: a second call may report success
	// without having written what the first one lost.
	Sync() error

	Truncate(size int64) error

	// Allocate makes the file at least size bytes long and reserves the space
	// of the first size bytes, so that writes to them do not run out of it; how
	// far that can be trusted is in Usage.Allocates. Where reservation is not
	// supported it only extends the file. It never shrinks a file and never
	// changes content. After a failure the size may have grown.
	Allocate(size int64) error
}

// Lock is a held lock.
type Lock interface {
	// Describe makes text the content of the lock file, for those who find it
	// locked. Between Lock and Describe the file may have the text of a holder
	// before. It fails with fs.ErrPermission for a file that can't be written.
	Describe(text string) error

	// Current reports whether the lock file is still the one that was locked.
	// When somebody has removed or replaced it, the lock keeps nobody away.
	Current() (bool, error)

	// Release removes the lock file while the lock is still held, then gives
	// the lock up. The lock is given up even if an error is returned. A lock
	// file that is no longer the one that was locked stays, and so does one that
	// this user may not remove.
	Release() error
}

// Usage describes a filesystem.
type Usage struct {
	Free  int64 // bytes that this user can still write
	Total int64 // bytes that this user could write if the filesystem were empty
	Type  string
	// Allocates reports whether space that File.Allocate reserved is promised
	// to later writes. It is false for filesystems that copy on write, pass on
	// to others, or are unknown.
	Allocates bool
}
