package vfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	openDirectory = unix.O_DIRECTORY
	openNoFollow  = unix.O_NOFOLLOW
	syncsDirs     = true
)

// openFile is os.OpenFile without the attempt to add the file to the runtime's
// poller, which takes longer than to open it: these files are never waited for.
func openFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	var fd int
	err := retry(func() (err error) {
		fd, err = unix.Open(name, flag|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	// O_NONBLOCK is for opening alone, where a FIFO would wait for its other end.
	if flag&unix.O_NONBLOCK != 0 {
		if err := unix.SetNonblock(fd, false); err != nil {
			unix.Close(fd)
			return nil, &fs.PathError{Op: "open", Path: name, Err: err}
		}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func rename(oldname, newname string) error {
	return retry(func() error { return unix.Rename(oldname, newname) })
}

func renameNoReplace(oldname, newname string) error {
	return noReplaceError(oldname, newname, retry(func() error {
		return unix.Renameat2(unix.AT_FDCWD, oldname, unix.AT_FDCWD, newname, unix.RENAME_NOREPLACE)
	}))
}

// noReplaceError tells "this filesystem does not know the flag" from the other
// errors of renameat2.
func noReplaceError(oldname, newname string, err error) error {
	if errors.Is(err, ErrUnsupported) || err == unix.EINVAL && !intoItself(oldname, newname) {
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}

// intoItself reports whether newname lies below the directory oldname, the other
// reason for EINVAL.
func intoItself(oldname, newname string) bool {
	moved, err := os.Lstat(oldname)
	if err != nil || !moved.IsDir() {
		return false
	}
	dir, err := filepath.Abs(filepath.Dir(newname))
	if err != nil {
		return false
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return false
	}
	for {
		if info, err := os.Lstat(dir); err == nil && os.SameFile(info, moved) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}

// smallestPiece bounds the division of an interrupted allocation.
const smallestPiece = 1 << 20

func allocate(f *os.File, size int64) error {
	return control(f, func(fd uintptr) error {
		return inPieces(size, func(off, n int64) error { return unix.Fallocate(int(fd), 0, off, n) })
	})
}

// inPieces calls allocate until it has covered size bytes. Some filesystems undo
// the whole call when any signal arrives, a profiler's included: each
// interruption halves the piece, so that it ends all the same.
func inPieces(size int64, allocate func(off, n int64) error) error {
	piece := size
	for done := int64(0); done < size; {
		n := min(piece, size-done)
		switch err := allocate(done, n); err {
		case nil:
			done += n
		case unix.EINTR:
			piece = max(n/2, min(smallestPiece, n))
		default:
			return err
		}
	}
	return nil
}

func startWriteBack(f *os.File, offset, n int64) {
	_ = control(f, func(fd uintptr) error {
		return unix.SyncFileRange(int(fd), offset, n, unix.SYNC_FILE_RANGE_WRITE)
	})
}

func forget(f *os.File) {
	_ = control(f, func(fd uintptr) error {
		return unix.Fadvise(int(fd), 0, 0, unix.FADV_DONTNEED)
	})
}

// tryLock takes an open file description lock: it belongs to the handle, not to
// the process, so that two handles of one process exclude each other, and it
// reaches the other nodes of a network filesystem. flock is for kernels and
// filesystems that refuse the request as such. It must not be a fallback for a
// lock service that is down (ENOLCK), since it might then exclude this node's
// processes only.
func (f lockFile) tryLock() error {
	var err error
	if f.readOnly {
		err = f.tryShared()
	} else {
		err = f.setLock(unix.F_WRLCK)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ErrUnsupported) {
		err = f.flock(unix.LOCK_EX | unix.LOCK_NB)
	}
	return lockError(err)
}

// sharedAttempts bounds the meetings of those who can only read the lock file.
const sharedAttempts = 10

// tryShared takes the lock on a file that can't be written, for which there are
// shared locks only: one of these keeps those away that can write the file, and who
// finds no other one beside his own has the lock. Of two, the later one sees the
// earlier one in any case. Both may see each other, and try again.
func (f lockFile) tryShared() error {
	for range sharedAttempts {
		if err := f.setLock(unix.F_RDLCK); err != nil {
			return err
		}
		alone, err := f.alone()
		if alone && err == nil {
			return nil
		}
		if err := errors.Join(err, f.setLock(unix.F_UNLCK)); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.Int64N(int64(2 * time.Millisecond))))
	}
	return unix.EAGAIN
}

// alone reports whether nobody else has a lock on the file.
func (f lockFile) alone() (bool, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	err := control(f.File, func(fd uintptr) error {
		return retry(func() error { return unix.FcntlFlock(fd, unix.F_OFD_GETLK, &lock) })
	})
	return lock.Type == unix.F_UNLCK, err
}

func (f lockFile) unlock() error {
	err := f.setLock(unix.F_UNLCK)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, ErrUnsupported) {
		err = f.flock(unix.LOCK_UN)
	}
	return err
}

func (f lockFile) setLock(kind int16) error {
	return control(f.File, func(fd uintptr) error {
		return retry(func() error {
			return unix.FcntlFlock(fd, unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
		})
	})
}

func (f lockFile) flock(how int) error {
	return control(f.File, func(fd uintptr) error {
		return retry(func() error { return unix.Flock(int(fd), how) })
	})
}

// fsTypes maps the magic numbers of statfs(2) to names. Allocates is set where
// space that fallocate reserved is written in place later: not where data is
// copied on write, where another filesystem below decides, or where a server or
// daemon does.
var fsTypes = map[uint32]Usage{
	0x01021994: {Type: "tmpfs", Allocates: true},
	0x58465342: {Type: "xfs", Allocates: true},
	extMagic:   {Type: "ext"},
	0x9123683E: {Type: "btrfs"},
	0xCA451A4E: {Type: "bcachefs"},
	0x2FC12FC1: {Type: "zfs"},
	0xF2F52010: {Type: "f2fs"},
	0x794C7630: {Type: "overlay"},
	0x00006969: {Type: "nfs"},
	0xFF534D42: {Type: "cifs"},
	0xFE534D42: {Type: "smb2"},
	0x0000517B: {Type: "smb"},
	0x65735546: {Type: "fuse"},
	0x01021997: {Type: "9p"},
	0x0BD00BD0: {Type: "lustre"},
	0x47504653: {Type: "gpfs"},
	0x19830326: {Type: "beegfs"},
	0x00C36400: {Type: "ceph"},
	0xAAD7AAEA: {Type: "panfs"},
	0x20030528: {Type: "orangefs"},
	0x7461636F: {Type: "ocfs2"},
	0x01161970: {Type: "gfs2"},
	0x5346414F: {Type: "afs"},
	0x858458F6: {Type: "ramfs"},
	0x958458F6: {Type: "hugetlbfs"},
	0x3153464A: {Type: "jfs"},
	0x52654973: {Type: "reiserfs"},
	0x00004D44: {Type: "vfat"},
	0x2011BAB0: {Type: "exfat"},
	0x5346544E: {Type: "ntfs"},
	0x7366746E: {Type: "ntfs3"},
	0x73717368: {Type: "squashfs"},
	0x00009660: {Type: "iso9660"},
	0x0000F15F: {Type: "ecryptfs"},
}

// extMagic is shared by ext2, ext3 and ext4; only the last one allocates.
const extMagic = 0xEF53

func usage(name string) (Usage, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(name, &st) }); err != nil {
		return Usage{}, err
	}
	magic := uint32(st.Type)
	u, known := fsTypes[magic]
	if !known {
		u = Usage{Type: fmt.Sprintf("unknown (%#x)", magic)}
	}
	if magic == extMagic {
		if t := mountType(name); t != "" {
			u = Usage{Type: t, Allocates: t == "ext4"}
		}
	}
	unit := uint64(st.Frsize)
	if unit == 0 {
		unit = uint64(st.Bsize)
	}
	u.Free = bytesOf(st.Bavail, unit)
	u.Total = bytesOf(st.Blocks-min(st.Blocks, st.Bfree-min(st.Bfree, st.Bavail)), unit)
	return u, nil
}

// mountType looks the device of name up in the mount table: the filesystem's
// own name, or "" if the table does not tell. Fields: proc_pid_mountinfo(5).
func mountType(name string) string {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(name, &st) }); err != nil {
		return ""
	}
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	return findMountType(bufio.NewScanner(f), device)
}

func findMountType(lines *bufio.Scanner, device string) string {
	for lines.Scan() {
		mount, source, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if !found || len(fields) < 3 || fields[2] != device {
			continue
		}
		if t := strings.Fields(source); len(t) > 0 {
			return t[0]
		}
	}
	return ""
}
