package shm

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

// Kind is a way of sharing a window.
type Kind int

// The kinds.
const (
	// Process is shared by the goroutines of this process only.
	Process Kind = iota

	// Anonymous has no name in any directory and no limit but the machine's
	// memory. The other processes reach it through that of its maker, which some
	// systems forbid (other users, other containers).
	Anonymous

	// Named is a file in the directory of shared memory, which may be as small as
	// 64 MiB in a container. It has a name until Unlink.
	Named
)

func (k Kind) String() string {
	switch k {
	case Process:
		return "memory of the process"
	case Anonymous:
		return "anonymous shared memory"
	case Named:
		return "a file in shared memory"
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

var (
	// ErrMissing is in the chain of the error that says that not all ranks came to
	// a barrier in time. The window can't be used any more.
	ErrMissing = errors.New("ranks are missing at the barrier of a shared window")

	// ErrName is in the chain of the error of Open about a name that isn't, or is
	// no longer, that of a window.
	ErrName = errors.New("no shared window has this name")
)

func init() {
	sentinel.RegisterAll("shm", map[string]error{
		"ErrMissing": ErrMissing,
		"ErrName":    ErrName,
	})
}

// Window is memory that several ranks have mapped, with a barrier. All of it was
// reserved when it was made, so that no access fails for a lack of memory.
type Window struct {
	// Bytes is the memory, page-aligned.
	Bytes []byte

	// Spin says that every rank has a core of its own, so that looking out for the
	// others a while is no loss.
	Spin bool

	ranks   int
	barrier barrier
	slots   []slot
	unlink  func() error // nil: done, or not this rank's
	unmap   func() error // nil: closed
}

// slot is a counter in a cache line of its own.
type slot struct {
	n atomic.Uint32
	_ [60]byte
}

const slotBytes = int(unsafe.Sizeof(slot{}))

// barrier is where the ranks of a window meet.
type barrier interface {
	meet(ranks int, spin bool, limit time.Duration) (failed bool, err error)
	fail()
	reset()
}

// Create makes a window of size bytes for the given number of ranks, of which the
// caller is one; the others Open it by its name. When all of them have, the caller
// calls Unlink.
func Create(kind Kind, size, ranks int) (w *Window, name string, err error) {
	if size <= 0 || ranks <= 0 {
		return nil, "", fmt.Errorf("create a window of %d bytes for %d ranks", size, ranks)
	}
	switch kind {
	case Process:
		w, name, err = createLocal(size, ranks)
	case Anonymous, Named:
		w, name, err = createShared(kind, size, ranks)
	default:
		err = fmt.Errorf("unknown %v", kind)
	}
	if err != nil {
		return nil, "", fmt.Errorf("create a window of %d bytes in %v: %w", size, kind, err)
	}
	w.ranks = ranks
	return w, name, nil
}

// Open maps a window that another rank made, of the same kind, size and number of
// ranks.
func Open(kind Kind, name string, size, ranks int) (w *Window, err error) {
	switch kind {
	case Process:
		w, err = openLocal(name, size, ranks)
	case Anonymous, Named:
		w, err = openShared(name, size, ranks)
	default:
		err = fmt.Errorf("unknown %v", kind)
	}
	if err != nil {
		return nil, fmt.Errorf("open the window %q in %v: %w", name, kind, err)
	}
	w.ranks = ranks
	return w, nil
}

// Unlink makes an end of the name. The ranks that have the window keep it.
func (w *Window) Unlink() error {
	if w.unlink == nil {
		return nil
	}
	f := w.unlink
	w.unlink = nil
	return f()
}

// Close lets the memory go, on this rank, and its name if it has one. A second
// Close, or one of nil, does nothing.
func (w *Window) Close() error {
	if w == nil || w.unmap == nil {
		return nil
	}
	f := w.unmap
	w.unmap, w.Bytes = nil, nil
	return errors.Join(w.Unlink(), f())
}

// Counter is the i-th of the counters that the ranks share, two for each rank. They
// begin at 0.
func (w *Window) Counter(i int) *atomic.Uint32 { return &w.slots[i].n }

// Meet waits until all ranks have come, at most for the given time. What a rank
// wrote into the window before it came, all ranks see when they go on. It tells
// all of them alike whether a rank had called Fail before all had come.
func (w *Window) Meet(limit time.Duration) (failed bool, err error) {
	failed, err = w.barrier.meet(w.ranks, w.Spin, limit)
	if err != nil {
		return false, fmt.Errorf("%d ranks, %v: %w", w.ranks, limit, err)
	}
	return failed, nil
}

// Fail makes the next Meet, and those after it, tell that a rank failed.
func (w *Window) Fail() { w.barrier.fail() }

// Reset takes back what Fail said. One rank calls it when no other one is between
// its first and its last Meet.
func (w *Window) Reset() { w.barrier.reset() }
