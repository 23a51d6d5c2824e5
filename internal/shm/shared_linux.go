package shm

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// sharedDir is where POSIX shared memory has its names on Linux: shm_overview(7).
const sharedDir = "/dev/shm"

func createShared(kind Kind, size, ranks int) (*Window, string, error) {
	var id nonce
	if _, err := rand.Read(id[:]); err != nil {
		return nil, "", err
	}
	var fd int
	var err error
	var name string
	var unlink func() error
	if kind == Anonymous {
		fd, err = unix.MemfdCreate("fieldstone", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, "", fmt.Errorf("memfd_create: %w", err)
		}
		name = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
		unlink = func() error { return unix.Close(fd) }
	} else {
		name = fmt.Sprintf("%s/fieldstone-%x", sharedDir, id)
		fd, err = unix.Open(name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return nil, "", &fs.PathError{Op: "create", Path: name, Err: err}
		}
		unlink = func() error { return errors.Join(unix.Unlink(name), unix.Close(fd)) }
	}
	// Without a reservation, a lack of memory is a SIGBUS later.
	head := headBytes(ranks)
	err = ignoringEINTR(func() error { return unix.Fallocate(fd, 0, 0, int64(head+size)) })
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("reserve: %w", err), unlink())
	}
	if _, err := unix.Pwrite(fd, id[:], nonceAt); err != nil {
		return nil, "", errors.Join(fmt.Errorf("write: %w", err), unlink())
	}
	w, err := mapShared(fd, head, size, ranks)
	if err != nil {
		return nil, "", errors.Join(err, unlink())
	}
	w.unlink = unlink
	return w, fmt.Sprintf("%s %x", name, id), nil
}

// nonce tells a window from all other files: where processes have different
// tables of processes, the path of one may lead to another file.
type nonce [16]byte

const (
	nonceAt    = 2048 // in the head, behind the barrier
	countersAt = 4096
)

func openShared(name string, size, ranks int) (*Window, error) {
	path, id, ok := strings.Cut(name, " ")
	if !ok {
		return nil, ErrName
	}
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENOENT) {
		err = fmt.Errorf("%w: %w", ErrName, err)
	}
	if err != nil {
		return nil, err
	}
	w, err := attach(fd, id, size, ranks)
	return w, errors.Join(err, unix.Close(fd))
}

func attach(fd int, id string, size, ranks int) (*Window, error) {
	var got nonce
	if n, err := unix.Pread(fd, got[:], nonceAt); err != nil || n != len(got) || fmt.Sprintf("%x", got) != id {
		return nil, ErrName
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, fmt.Errorf("stat: %w", err)
	}
	head := headBytes(ranks)
	if st.Size != int64(head+size) {
		return nil, fmt.Errorf("it has %d bytes, want %d", st.Size-int64(head), size)
	}
	return mapShared(fd, head, size, ranks)
}

// headBytes is the size of what comes before the memory, in whole pages: the barrier,
// the nonce, and the counters.
func headBytes(ranks int) int {
	page := os.Getpagesize()
	return (countersAt + 2*ranks*slotBytes + page - 1) / page * page
}

// mapShared maps a file of a head and size bytes.
func mapShared(fd, head, size, ranks int) (*Window, error) {
	total := head + size
	// All faults at once are cheaper than one by one.
	b, err := unix.Mmap(fd, 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}
	return &Window{
		Bytes:   b[head:total:total],
		barrier: (*futexBarrier)(unsafe.Pointer(unsafe.SliceData(b))),
		slots:   unsafe.Slice((*slot)(unsafe.Pointer(&b[countersAt])), 2*ranks),
		unmap:   func() error { return unix.Munmap(b) },
	}, nil
}

// ignoringEINTR tries again: a signal is no reason to do without.
func ignoringEINTR(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

// futexBarrier lies in the shared memory itself; new memory is a good one.
type futexBarrier struct {
	arrived atomic.Uint32
	turn    atomic.Uint32 // counts the meetings
	failing atomic.Uint32
	verdict atomic.Uint32 // failing when the last rank came
	dead    atomic.Uint32
}

const (
	futexWait = 0 // operations of futex(2), not private to the process
	futexWake = 1

	// longestNap bounds a wait, so that a rank notices that another one gave up.
	longestNap = 100 * time.Millisecond

	// patience is how long a rank looks out for the others before it sleeps: to
	// be woken takes as long.
	patience = 50 * time.Microsecond

	// courtesy is how long it lets others have the core before it sleeps, where ranks
	// share cores: they are what it waits for.
	courtesy = time.Millisecond
)

func (b *futexBarrier) meet(ranks int, spin bool, limit time.Duration) (bool, error) {
	turn := b.turn.Load()
	if int(b.arrived.Add(1)) == ranks {
		b.arrived.Store(0)
		b.verdict.Store(b.failing.Load())
		b.turn.Add(1)
		b.wake()
		return b.outcome()
	}
	wait := waiting.NewMeter(limit)
	nap := unix.NsecToTimespec(int64(min(longestNap, wait.Nap())))
	for b.turn.Load() == turn && b.dead.Load() == 0 {
		waited := wait.Waited(time.Now())
		switch {
		case waited > limit:
			b.dead.Store(1)
			b.wake()
		case spin && waited < patience:
			runtime.Gosched()
		case !spin && waited < courtesy:
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		default:
			nap := nap // the system may write to it
			// Whatever ends it, the loop looks itself.
			_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.turn)), futexWait, uintptr(turn),
				uintptr(unsafe.Pointer(&nap)), 0, 0)
		}
	}
	return b.outcome()
}

// outcome is what the meeting came to. The verdict can't change before this rank
// comes to the next one.
func (b *futexBarrier) outcome() (bool, error) {
	if b.dead.Load() != 0 {
		return false, ErrMissing
	}
	return b.verdict.Load() != 0, nil
}

func (b *futexBarrier) wake() {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&b.turn)), futexWake, uintptr(1<<31-1), 0, 0, 0)
}

func (b *futexBarrier) fail()  { b.failing.Store(1) }
func (b *futexBarrier) reset() { b.failing.Store(0) }
