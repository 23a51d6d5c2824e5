package brick

import (
	"errors"
	"syscall"
	"testing"
)

// An allocation that is interrupted covers each byte of its range once, and ends.
func TestAnInterruptedAllocationEnds(t *testing.T) {
	const offset, size = 4<<30 + 377, 23<<20 + 5
	for _, most := range []int64{size, 5 << 20, 1 << 20} { // longer calls are interrupted
		at, calls := int64(offset), 0
		err := inPieces(offset, size, func(from, n int64) error {
			if calls++; n > most {
				return syscall.EINTR
			}
			if from != at || n <= 0 {
				t.Errorf("%d bytes from %d on, want them from %d on", n, from, at)
			}
			at += n
			return nil
		})
		if err != nil || at != offset+size || calls > 100 {
			t.Errorf("most %d: allocated up to %d in %d calls, %v", most, at, calls, err)
		}
	}
	full := inPieces(offset, size, func(int64, int64) error { return syscall.ENOSPC })
	if !errors.Is(full, syscall.ENOSPC) {
		t.Errorf("error is %v", full)
	}
}
