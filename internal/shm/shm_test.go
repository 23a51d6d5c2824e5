package shm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/internal/shm"
)

func TestMemoryBeginsAtAPageAndIsZero(t *testing.T) {
	for _, n := range []int{0, 1, 4095, 4096, 256 << 10, 2 << 20, 5<<20 + 3} {
		m, err := shm.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(m.Bytes) != n || cap(m.Bytes) != n {
			t.Errorf("%d bytes: length %d, capacity %d", n, len(m.Bytes), cap(m.Bytes))
		}
		if n > 0 && uintptr(unsafe.Pointer(&m.Bytes[0]))%uintptr(os.Getpagesize()) != 0 {
			t.Errorf("%d bytes: not at a page", n)
		}
		for i, b := range m.Bytes {
			if b != 0 {
				t.Fatalf("%d bytes: byte %d is %d", n, i, b)
			}
		}
		for i := range m.Bytes { // all of it can be written
			m.Bytes[i] = byte(i)
		}
		for range 2 {
			if err := m.Free(); err != nil || m.Bytes != nil {
				t.Errorf("%d bytes: free: %v", n, err)
			}
		}
	}
	if _, err := shm.Alloc(-1); err == nil {
		t.Error("a negative size")
	}
	var none *shm.Memory
	if err := none.Free(); err != nil {
		t.Error(err)
	}
}

// kinds are those that work here: all on Linux.
func kinds(t *testing.T) []shm.Kind {
	list := []shm.Kind{shm.Process}
	for _, k := range []shm.Kind{shm.Anonymous, shm.Named} {
		w, _, err := shm.Create(k, 1, 1)
		switch {
		case err == nil:
			list = append(list, k)
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, shm.ErrUnsupported):
			t.Errorf("%v: %v", k, err)
		}
	}
	return list
}

func forEachKind(t *testing.T, f func(t *testing.T, k shm.Kind)) {
	for _, k := range kinds(t) {
		t.Run(k.String(), func(t *testing.T) { f(t, k) })
	}
}

// share makes a window and opens it for the other ranks.
func share(t *testing.T, k shm.Kind, size, ranks int) []*shm.Window {
	t.Helper()
	w, name, err := shm.Create(k, size, ranks)
	if err != nil {
		t.Fatal(err)
	}
	list := []*shm.Window{w}
	for range ranks - 1 {
		o, err := shm.Open(k, name, size, ranks)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, o)
	}
	if err := w.Unlink(); err != nil {
		t.Fatal(err)
	}
	if _, err := shm.Open(k, name, size, ranks); err == nil {
		t.Error("the name is still there")
	}
	t.Cleanup(func() {
		for _, w := range list {
			for range 2 {
				if err := w.Close(); err != nil || w.Bytes != nil {
					t.Errorf("close: %v", err)
				}
			}
		}
	})
	return list
}

func TestAllRanksSeeTheSameBytesAndCounters(t *testing.T) {
	forEachKind(t, func(t *testing.T, k shm.Kind) {
		const size, ranks = 10_000, 3
		list := share(t, k, size, ranks)
		for r, w := range list {
			if len(w.Bytes) != size || cap(w.Bytes) != size {
				t.Fatalf("rank %d has %d bytes of %d", r, len(w.Bytes), cap(w.Bytes))
			}
			w.Bytes[r], w.Bytes[size-1-r] = byte(r+1), byte(r+10)
			for i := range 2 * ranks {
				w.Counter(i).Add(uint32(i + 1))
			}
		}
		for r, w := range list {
			if want := []byte{1, 2, 3, 0}; !bytes.Equal(w.Bytes[:4], want) {
				t.Errorf("rank %d begins with %v, want %v", r, w.Bytes[:4], want)
			}
			if want := []byte{0, 12, 11, 10}; !bytes.Equal(w.Bytes[size-4:], want) {
				t.Errorf("rank %d ends with %v, want %v", r, w.Bytes[size-4:], want)
			}
			for i := range 2 * ranks {
				if got := w.Counter(i).Load(); got != uint32(ranks*(i+1)) {
					t.Errorf("rank %d: counter %d is %d", r, i, got)
				}
			}
		}
	})
}

// Nobody goes on before all have come, and all see what the others did before.
func TestRanksMeet(t *testing.T) {
	forEachKind(t, func(t *testing.T, k shm.Kind) {
		for _, spin := range []bool{false, true} {
			const ranks, turns = 4, 300
			list := share(t, k, ranks, ranks)
			errs := make([]error, ranks)
			var wg sync.WaitGroup
			for r, w := range list {
				w.Spin = spin
				wg.Go(func() {
					for n := range turns {
						w.Counter(r).Store(uint32(n + 1))
						if failed, err := w.Meet(time.Minute); failed || err != nil {
							errs[r] = fmt.Errorf("turn %d: failed %v, %v", n, failed, err)
							return
						}
						for o := range ranks {
							if got := w.Counter(o).Load(); got < uint32(n+1) || got > uint32(n+2) {
								errs[r] = errors.Join(errs[r], fmt.Errorf("turn %d: rank %d is at %d", n, o, got))
							}
						}
					}
				})
			}
			wg.Wait()
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		}
	})
}

// All ranks learn of a failure at the same meeting, however late or early each of
// them comes, and until it is taken back.
func TestAFailureIsToldToAllAlike(t *testing.T) {
	forEachKind(t, func(t *testing.T, k shm.Kind) {
		const ranks, turns = 3, 200
		list := share(t, k, 1, ranks)
		for try := range 20 {
			list[0].Reset()
			stopped := make([]int, ranks)
			var wg sync.WaitGroup
			for r, w := range list {
				stopped[r] = -1
				wg.Go(func() {
					for n := range turns {
						if n == 10+try && r == try%ranks {
							w.Fail() // while the others may not have left the meeting before
						}
						failed, err := w.Meet(time.Minute)
						if err != nil {
							t.Error(err)
							return
						}
						if failed {
							stopped[r] = n
							return
						}
					}
				})
			}
			wg.Wait()
			for r := range stopped {
				if stopped[r] != 10+try {
					t.Fatalf("try %d: the ranks stopped at %v", try, stopped)
				}
			}
		}
	})
}

func TestAMissingRankIsAnErrorInTime(t *testing.T) {
	forEachKind(t, func(t *testing.T, k shm.Kind) {
		list := share(t, k, 1, 3)
		errs := make([]error, 2)
		var wg sync.WaitGroup
		for r := range errs {
			wg.Go(func() { _, errs[r] = list[r].Meet(30 * time.Millisecond) })
		}
		wg.Wait()
		for r, err := range errs {
			if !errors.Is(err, shm.ErrMissing) {
				t.Errorf("rank %d: %v", r, err)
			}
		}
		// Whoever comes later is told at once.
		if _, err := list[2].Meet(time.Hour); !errors.Is(err, shm.ErrMissing) {
			t.Errorf("the late rank: %v", err)
		}
	})
}

func TestWindowsThatAreNone(t *testing.T) {
	forEachKind(t, func(t *testing.T, k shm.Kind) {
		w, name, err := shm.Create(k, 5000, 2)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		}()
		cases := []struct {
			what, name string
			size       int
			ranks      int
			want       error
		}{
			{"another size", name, 5001, 2, nil},
			{"far more ranks", name, 5000, 2000, nil},
			{"no name", "", 5000, 2, shm.ErrName},
			{"another name", "x" + name, 5000, 2, shm.ErrName},
			{"another window's name", name + "0", 5000, 2, shm.ErrName},
			{"a file that is none", "/proc/self/exe 00", 5000, 2, nil},
		}
		for _, tc := range cases {
			o, err := shm.Open(k, tc.name, tc.size, tc.ranks)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want %v", tc.what, err, tc.want)
			}
			if o != nil {
				t.Errorf("%s: a window beside an error", tc.what)
			}
		}
	})
	for _, bad := range [][2]int{{0, 1}, {-1, 1}, {1, 0}} {
		if _, _, err := shm.Create(shm.Process, bad[0], bad[1]); err == nil {
			t.Errorf("%d bytes, %d ranks", bad[0], bad[1])
		}
	}
	if _, _, err := shm.Create(9, 1, 1); err == nil || !strings.Contains(err.Error(), "kind(9)") {
		t.Errorf("an unknown kind: %v", err)
	}
	var none *shm.Window
	if err := none.Close(); err != nil {
		t.Error(err)
	}
}
