//go:build hdf5

package h5

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Large reads of elements that the file has as memory does go past the library: it
// copies them with one processor, and several are faster. What it knows is used, the
// place of the data, and nothing that it keeps: every call opens its dataset, so that
// nothing of it is left to be written. Whatever does not go well is left to the library,
// which says why.

const (
	// directBytes is from how much on goroutines pay, directRun how long runs must be
	// that are side by side, and directPart what is read at once.
	directBytes = 4 << 20
	directRun   = 64 << 10
	directPart  = 1 << 20
	// directChunks is how many chunks are looked up at most, for the library looks at
	// all chunks for each.
	directChunks = 64
)

// run is what lies side by side in the file and in memory.
type run struct {
	offset int64
	memory []byte
}

// readDirect reports whether it has read everything.
func (o *libraryObject) readDirect(info Info, b buffer, s *slab) bool {
	size := b.t.size()
	if b.n*size < directBytes {
		return false
	}
	if s == nil {
		s = &slab{make([]int, len(info.Shape)), info.Shape}
	}
	memory := unsafe.Slice((*byte)(b.data), b.n*size)
	runs, ok := o.runs(info, s, size, memory)
	fd := o.file.descriptor()
	if !ok || fd < 0 {
		return false
	}
	return readRuns(fd, runs)
}

// runs says where the elements of a slab are, if these are not many small places.
func (o *libraryObject) runs(info Info, s *slab, size int, memory []byte) (runs []run, ok bool) {
	if info.Filters > 0 || info.elsewhere || len(info.Shape) == 0 {
		return nil, false
	}
	if info.Chunk == nil {
		offset, err := o.contiguous()
		if err != nil {
			return nil, false
		}
		return addRuns(nil, block{offset, make([]int, len(info.Shape)), info.Shape}, s, size, memory)
	}
	rank := len(info.Shape)
	first, chunks := make([]int, rank), 1
	for a, n := range info.Chunk {
		first[a] = s.start[a] / n * n
		chunks *= (s.start[a]+s.count[a]-first[a]-1)/n + 1
		if chunks > directChunks {
			return nil, false
		}
	}
	low := slices.Clone(first)
	for {
		offset, bytes, err := o.chunk(low)
		if whole, _ := product(info.Chunk); err != nil || bytes != int64(whole*size) {
			return nil, false
		}
		if runs, ok = addRuns(runs, block{offset, low, info.Chunk}, s, size, memory); !ok {
			return nil, false
		}
		axis := rank - 1
		for ; axis >= 0; axis-- {
			if low[axis] += info.Chunk[axis]; low[axis] < s.start[axis]+s.count[axis] {
				break
			}
			low[axis] = first[axis]
		}
		if axis < 0 {
			return runs, true
		}
	}
}

// block is a part of a dataset that the file has in one piece.
type block struct {
	offset     int64
	low, shape []int
}

// addRuns adds what a slab has in common with a block. Memory has the slab.
func addRuns(runs []run, b block, s *slab, size int, memory []byte) ([]run, bool) {
	rank := len(b.shape)
	low, n := make([]int, rank), make([]int, rank) // of the common part
	for a := range rank {
		low[a] = max(b.low[a], s.start[a])
		n[a] = min(b.low[a]+b.shape[a], s.start[a]+s.count[a]) - low[a]
	}
	// Runs go along this axis, and along all of those behind it.
	axis, length := rank-1, n[rank-1]
	for axis > 0 && n[axis] == b.shape[axis] && n[axis] == s.count[axis] {
		axis--
		length *= n[axis]
	}
	length *= size
	if length < directRun {
		return nil, false
	}
	at := slices.Clone(low)
	for {
		inFile, inMemory := 0, 0
		for a := range rank {
			inFile = inFile*b.shape[a] + at[a] - b.low[a]
			inMemory = inMemory*s.count[a] + at[a] - s.start[a]
		}
		from := inMemory * size
		runs = append(runs, run{b.offset + int64(inFile*size), memory[from : from+length]})
		a := axis - 1
		for ; a >= 0; a-- {
			if at[a]++; at[a] < low[a]+n[a] {
				break
			}
			at[a] = low[a]
		}
		if a < 0 {
			return runs, true
		}
	}
}

// readRuns reads with all processors. The parts go to whoever is free, in the order of
// the file, so that the system can read ahead.
func readRuns(fd int, runs []run) bool {
	var parts []run
	for _, r := range runs {
		for n := 0; n < len(r.memory); n += directPart {
			parts = append(parts, run{r.offset + int64(n), r.memory[n:min(n+directPart, len(r.memory))]})
		}
	}
	var next atomic.Int64
	var failed atomic.Bool
	work := func() {
		for !failed.Load() {
			i := int(next.Add(1)) - 1
			if i >= len(parts) {
				return
			}
			if !readFull(fd, parts[i]) {
				failed.Store(true)
			}
		}
	}
	var wait sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(parts)) - 1 {
		wait.Go(work)
	}
	work()
	wait.Wait()
	return !failed.Load()
}

func readFull(fd int, r run) bool {
	for len(r.memory) > 0 {
		n, err := syscall.Pread(fd, r.memory, r.offset)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		r.memory, r.offset = r.memory[n:], r.offset+int64(n)
	}
	return true
}
