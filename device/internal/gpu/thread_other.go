//go:build !linux

package gpu

// canHold says that OS threads can be told from each other.
const canHold = false

func threadNumber() int { return 0 }
