//go:build amd64 || arm64

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// job is the struct of ../peers/peer.h.
type job struct {
	size, low, own [3]int64
	halo           int64
	first, share   int64
	rank, ranks    int64
	comm           int64
	fields         int64
	padded, packed *unsafe.Pointer
	paths          **byte
	offsets        *int64
	sync           int64
	message        [256]byte
}

// libraries are the peers' shared libraries, opened when first needed.
type libraries struct {
	open map[string]uintptr
}

func (l *libraries) load(dir, name string) (uintptr, error) {
	if h, ok := l.open[name]; ok {
		return h, nil
	}
	path := filepath.Join(dir, name+".so")
	if _, err := os.Stat(path); err != nil {
		return 0, fmt.Errorf("library %s: %w", name, errMissing)
	}
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return 0, fmt.Errorf("library %s: %w", name, err)
	}
	if l.open == nil {
		l.open = make(map[string]uintptr)
	}
	l.open[name] = h
	return h, nil
}

// release frees what the peers keep between calls.
func (l *libraries) release() error {
	for name, h := range l.open {
		address, err := purego.Dlsym(h, "release")
		if err != nil {
			return fmt.Errorf("library %s: %w", name, err)
		}
		purego.SyscallN(address)
	}
	return nil
}

// call returns the function that calls a peer on the state, and the place where it
// puts the offsets of the fields in their files.
func (w *worker) call(s *state, library, symbol string, paths []string) (fn func() error, offsets []int64, err error) {
	h, err := w.libraries.load(w.job.Libraries, library)
	if err != nil {
		return nil, nil, err
	}
	address, err := purego.Dlsym(h, symbol)
	if err != nil {
		return nil, nil, err
	}
	offsets = make([]int64, s.Fields)
	fn = func() error {
		var pin runtime.Pinner
		defer pin.Unpin()
		padded, packed := make([]unsafe.Pointer, s.Fields), make([]unsafe.Pointer, s.Fields)
		names := make([]*byte, s.Fields)
		for f := range s.Fields {
			padded[f], packed[f] = unsafe.Pointer(unsafe.SliceData(s.padded[f])), unsafe.Pointer(unsafe.SliceData(s.packed[f]))
			names[f] = unsafe.SliceData(append([]byte(paths[f]), 0))
			pin.Pin(padded[f])
			pin.Pin(packed[f])
			pin.Pin(names[f])
		}
		j := &job{
			halo: int64(s.Halo), first: s.first, share: s.share,
			rank: int64(s.c.Rank()), ranks: int64(s.c.Size()), fields: int64(s.Fields),
			padded: unsafe.SliceData(padded), packed: unsafe.SliceData(packed), paths: unsafe.SliceData(names),
			offsets: unsafe.SliceData(offsets),
		}
		for a := range 3 {
			j.size[a], j.low[a], j.own[a] = int64(s.Cells[a]), int64(s.box.Low[a]), int64(s.box.Size[a])
		}
		if h, ok := s.c.Fortran(); ok {
			j.comm = int64(h)
		}
		if s.Sync {
			j.sync = 1
		}
		pin.Pin(j.padded)
		pin.Pin(j.packed)
		pin.Pin(j.paths)
		pin.Pin(j.offsets)
		pin.Pin(j)
		if r, _, _ := purego.SyscallN(address, uintptr(unsafe.Pointer(j))); int32(r) != 0 {
			text, _, _ := bytes.Cut(j.message[:], []byte{0})
			return errors.New(string(text))
		}
		return nil
	}
	return fn, offsets, nil
}
