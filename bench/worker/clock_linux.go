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
