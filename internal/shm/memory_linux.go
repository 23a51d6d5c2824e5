package shm

import "golang.org/x/sys/unix"

// adviseHuge is advice: where the kernel doesn't take it, small pages do.
func adviseHuge(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
