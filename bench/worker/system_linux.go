package main

import "golang.org/x/sys/unix"

// now is the clock that all processes of a node share, in nanoseconds.
func now() int64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return t.Nano()
}

// sleepUntil returns when the clock has reached t. time.Sleep is off by up to a
// millisecond.
func sleepUntil(t int64) {
	until := unix.NsecToTimespec(t)
	for now() < t {
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &until, nil)
	}
}

// reserve maps memory, in huge pages where the system lends them.
func reserve(bytes int) ([]byte, error) {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, err
	}
	_ = unix.Madvise(m, unix.MADV_HUGEPAGE) // it may not know of them
	return m, nil
}

func unreserve(m []byte) error { return unix.Munmap(m) }
