package emulated

import (
	"fmt"
	"time"

	"github.com/fieldstone-io/fieldstone/device"
)

// Mode says when streams run their work.
type Mode int

const (
	// Lazy runs work only once somebody waits for it: as late as possible,
	// and one stream after the other. A missing synchronisation or event is
	// seen every time.
	Lazy Mode = iota
	// Eager runs work at once, concurrently with the host.
	Eager
	// Delayed runs work concurrently, each piece after a random delay.
	Delayed
)

// String returns the name of the mode.
func (m Mode) String() string {
	switch m {
	case Lazy:
		return "lazy"
	case Eager:
		return "eager"
	case Delayed:
		return "delayed"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Option changes how a device is made.
type Option func(*options) error

type options struct {
	ordinal  int
	capacity int64
	mode     Mode
	delay    time.Duration
	seed     uint64
	noBox    bool
}

const (
	defaultCapacity = min(1<<30, maxWindow/2)
	defaultDelay    = 200 * time.Microsecond
)

// Ordinal sets the number of the device in its name, 0 by default.
func Ordinal(n int) Option {
	return func(o *options) error {
		if n < 0 {
			return fmt.Errorf("%w: device number %d is negative", device.ErrInvalid, n)
		}
		o.ordinal = n
		return nil
	}
}

// Capacity sets how much memory the device has: 1 GiB by default, 128 MiB on 32 bits.
func Capacity(bytes int64) Option {
	return func(o *options) error {
		if bytes <= 0 || bytes > maxWindow/2 {
			return fmt.Errorf("%w: capacity of %d bytes is not within 1 to %d", device.ErrInvalid, bytes, int64(maxWindow/2))
		}
		o.capacity = bytes
		return nil
	}
}

// Schedule sets when streams run their work, Lazy by default.
func Schedule(m Mode) Option {
	return func(o *options) error {
		if m < Lazy || m > Delayed {
			return fmt.Errorf("%w: mode %v", device.ErrInvalid, m)
		}
		o.mode = m
		return nil
	}
}

// Seed sets what the random delays depend on, in mode Delayed.
func Seed(seed uint64) Option {
	return func(o *options) error {
		o.seed = seed
		return nil
	}
}

// WithoutBoxKernels makes a device that refuses the module of its box kernels, as a
// driver does that is too old for it; see [device.BoxKernels].
func WithoutBoxKernels() Option {
	return func(o *options) error {
		o.noBox = true
		return nil
	}
}
