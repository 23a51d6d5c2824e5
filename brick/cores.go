package brick

import (
	"math/bits"
	"runtime"
)

// cores is a set of processor cores, one bit each; empty where the system doesn't
// tell.
type cores []uint64

// shareCores says how many goroutines of this rank have a core to run on while all
// ranks of its node work, and whether every rank has at least one. It takes the
// sets of all ranks together: nodes number their cores alike.
func shareCores(all []cores, mine layout) (workers int, ownCores bool) {
	var union cores
	for _, set := range all {
		for i, word := range set {
			if i == len(union) {
				union = append(union, 0)
			}
			union[i] |= word
		}
	}
	n := 0
	for _, word := range union {
		n += bits.OnesCount64(word)
	}
	if n == 0 {
		n = runtime.NumCPU()
	}
	return max(1, min(n/max(mine.Node, 1), runtime.GOMAXPROCS(0))), n >= mine.Node
}
