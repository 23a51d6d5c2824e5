package device

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

var (
	// ErrOutOfMemory says that the device, or pinned host memory, can't hold
	// what was asked for. The space stays usable.
	ErrOutOfMemory = errors.New("out of memory")
	// ErrInvalid says that an argument makes no sense: a size, a pitch, a
	// handle of another space.
	ErrInvalid = errors.New("invalid argument")
	// ErrAddress says that a range isn't allocated memory of the device, or not
	// aligned to the size of what is there.
	ErrAddress = errors.New("illegal device address")
	// ErrNotFound says that there is no kernel, no module or no device of
	// that name.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable says that a kind of device can't be used on this
	// machine: no driver, or no such device.
	ErrUnavailable = errors.New("unavailable")
	// ErrUnsupported says that the device or its driver lacks a function.
	ErrUnsupported = errors.New("not supported")
	// ErrClosed says that something was used after it was closed or freed.
	ErrClosed = errors.New("already closed")
	// ErrLost says that queued work has failed and that the space can't be
	// used any more.
	ErrLost = errors.New("device lost")
	// ErrDriver says that the driver refused or failed for a reason that has
	// no other name here. The error's text and code are the driver's.
	ErrDriver = errors.New("driver error")
)

func init() {
	sentinel.RegisterAll("device", map[string]error{
		"ErrOutOfMemory": ErrOutOfMemory,
		"ErrInvalid":     ErrInvalid,
		"ErrAddress":     ErrAddress,
		"ErrNotFound":    ErrNotFound,
		"ErrUnavailable": ErrUnavailable,
		"ErrUnsupported": ErrUnsupported,
		"ErrClosed":      ErrClosed,
		"ErrLost":        ErrLost,
		"ErrDriver":      ErrDriver,
	})
}

// Error is the error of a call on a space.
type Error struct {
	// Space is the name of the space.
	Space string
	// Op is the call and what it was about: "allocate 512 bytes".
	Op string
	// Code is the driver's own number of the error, 0 if it has none.
	Code int
	// Err is the cause. It wraps one of the sentinels of this package.
	Err error
}

func (e *Error) Error() string {
	if e.Code != 0 {
		return fmt.Sprintf("%s: %s: %v (code %d)", e.Space, e.Op, e.Err, e.Code)
	}
	return fmt.Sprintf("%s: %s: %v", e.Space, e.Op, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Live counts what was made on a space and not freed. Wrapped memory and
// streams don't count.
type Live struct {
	Memory, HostMemory, Streams, Events, Modules int
}

// LeakError is the cause of the error of a [Space.Close] that found something
// not freed.
type LeakError struct{ Live Live }

func (e *LeakError) Error() string {
	return fmt.Sprintf("not freed: %d memory, %d host memory, %d streams, %d events, %d modules",
		e.Live.Memory, e.Live.HostMemory, e.Live.Streams, e.Live.Events, e.Live.Modules)
}
