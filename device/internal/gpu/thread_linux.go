package gpu

import "syscall"

// canHold says that OS threads can be told from each other.
const canHold = true

// threadNumber returns the number of the OS thread.
func threadNumber() int { return syscall.Gettid() }
