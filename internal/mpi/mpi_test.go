//go:build mpi

package mpi_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// The build says in the environment which MPI was asked for. A stale object
// from Go's cache, or a wrong pkg-config file, would bring in another one.
func TestLinkedToOneMPI(t *testing.T) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	open, mpich := bytes.Contains(maps, []byte("/libmpi.so")), bytes.Contains(maps, []byte("/libmpich.so"))
	if open == mpich {
		t.Errorf("Open MPI is loaded: %v, MPICH is loaded: %v", open, mpich)
	}
	name, version, _ := strings.Cut(mpi.Implementation(), " ")
	if (name == "openmpi") != open || (name == "mpich") != mpich || version == "" {
		t.Errorf("implementation is %q", mpi.Implementation())
	}
	if want := os.Getenv("FIELDSTONE_MPI"); want != "" && want != name {
		t.Errorf("built for %s, linked to %s", want, name)
	}
}

// Signals reach Go whatever the library does with them, and faults in Go are
// panics that can be recovered from.
func TestSignalsBelongToGo(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		for _, sig := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGTERM, syscall.SIGHUP} {
			inbox := make(chan os.Signal, 1)
			signal.Notify(inbox, sig)
			for range 100 {
				if err := syscall.Kill(os.Getpid(), sig); err != nil {
					t.Fatal(err)
				}
				select {
				case <-inbox:
				case <-time.After(time.Minute):
					t.Fatalf("%v does not arrive", sig)
				}
			}
			signal.Stop(inbox)
		}
		var zero int
		for name, fault := range map[string]func() int{
			"runtime error: invalid memory address": func() int { return **new(*int) },
			"runtime error: integer divide by zero": func() int { return 1 / zero },
		} {
			err := comm.Protect(func() error { return fmt.Errorf("%d", fault()) })
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v: want %s", err, name)
			}
		}
	})
}

// Pieces of a few bytes drive the loops that large data takes.
func TestDataInPieces(t *testing.T) {
	const limit = time.Minute
	mpitest.Run(t, []int{1, 3}, func(t *mpitest.T, cc *comm.Comm) {
		c := cc.Handle()
		rank, size := c.Rank(), c.Size()
		data := func(rank, n int) []byte {
			b := make([]byte, n)
			for i := range b {
				b[i] = byte(7*rank + i)
			}
			return b
		}
		for _, chunk := range []int{1, 8, 24, 1 << 20} {
			defer mpi.SetChunk(mpi.SetChunk(chunk))
			for _, n := range []int{0, 1, 8, 23, 24, 25, 100, 1015, 1016, 1017, 1100} { // 1016 go with their length
				for root := range size {
					var in []byte
					if rank == root {
						in = data(root, n)
					}
					if got, err := c.Broadcast(root, in, limit); err != nil || !bytes.Equal(got, data(root, n)) {
						t.Errorf("chunk %d: broadcast of %d: %v, %v", chunk, n, got, err)
					}
				}
			}
			for _, n := range []int{0, 1, 8, 23, 24, 25, 100} {
				all, err := c.AllGather(data(rank, n*(rank%2)), limit)
				if err != nil {
					t.Fatal(err)
				}
				for r, got := range all {
					if !bytes.Equal(got, data(r, n*(r%2))) {
						t.Errorf("chunk %d: gather of %d: rank %d brought %v", chunk, n, r, got)
					}
				}
				next, before := (rank+1)%size, (rank+size-1)%size
				got := make([]byte, n+before)
				err = c.SendRecv(next, data(rank, n+rank), before, got, 3, limit)
				if err != nil || !bytes.Equal(got, data(before, n+before)) {
					t.Errorf("chunk %d: ring of %d: got %v, %v", chunk, n, got, err)
				}
			}
		}
		mpi.SetChunk(24) // a reduction's pieces hold at least one element
		v := make([]int64, 100)
		for i := range v {
			v[i] = int64(i + rank)
		}
		if err := c.AllReduceInt64(mpi.Max, v, limit); err != nil {
			t.Fatal(err)
		}
		for i, x := range v {
			if x != int64(i+size-1) {
				t.Errorf("maximum of element %d is %d", i, x)
			}
		}
	})
}

// A long wait leaves its core to others.
func TestLongWaitsCostLittle(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		used := func() time.Duration {
			var u syscall.Rusage
			if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
				t.Fatal(err)
			}
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		// A machine may charge a process for what it is not to blame for: one good wait
		// of several is enough.
		var err error
		for range 5 {
			if err := c.Meet(t.Context()); err != nil {
				t.Fatal(err)
			}
			start, before := time.Now(), used()
			if c.Rank() == 1 {
				time.Sleep(time.Second)
			}
			if err := c.Meet(t.Context()); err != nil {
				t.Fatal(err)
			}
			var much error
			if cpu, wall := used()-before, time.Since(start); c.Rank() == 0 && cpu > wall/5 {
				much = fmt.Errorf("a wait of %v took %v of a core", wall, cpu)
			}
			if err = c.Agree(t.Context(), much); err == nil {
				return
			}
		}
		t.Error(err)
	})
}

// Where the library takes one call at a time, two communicators that are used in
// opposite order on every other rank still do not wait for each other.
func TestCallsTakeTurns(t *testing.T) {
	const limit = time.Minute
	mpitest.Run(t, []int{2}, func(t *mpitest.T, cc *comm.Comm) {
		a, err := cc.Handle().SplitNode(limit)
		if err != nil {
			t.Fatal(err)
		}
		b, err := cc.Handle().SplitNode(limit)
		if err != nil {
			t.Fatal(err)
		}
		if cc.Rank() == 1 {
			a, b = b, a
		}
		defer mpi.SetMultiple(mpi.SetMultiple(false))
		var wg sync.WaitGroup
		first := make(chan struct{})
		wg.Go(func() {
			close(first)
			for range 50 {
				if err := a.AllReduceInt64(mpi.Sum, []int64{1}, limit); err != nil {
					t.Error(err)
				}
			}
		})
		<-first
		time.Sleep(50 * time.Millisecond) // a waits alone on both ranks
		for range 50 {
			if err := b.AllReduceInt64(mpi.Sum, []int64{1}, limit); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	})
}

func TestHandles(t *testing.T) {
	const limit = time.Minute
	mpitest.Run(t, []int{3}, func(t *mpitest.T, cc *comm.Comm) {
		c := cc.Handle()
		if view := c.Empi(); view.Rank() != c.Rank() || view.Size() != c.Size() {
			t.Errorf("empi sees rank %d of %d", view.Rank(), view.Size())
		}
		v := []int64{int64(c.Rank() + 1)}
		if err := c.Empi().AllReduceI64(0, v, nil); err != nil || v[0] != 6 {
			t.Errorf("empi's sum is %d, %v", v[0], err)
		}
		dup, err := mpi.FromFortran(c.Fortran(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := dup.CompareFortran(c.Fortran()); err != nil || r != mpi.Congruent {
			t.Errorf("a duplicate compares as %v, %v", r, err)
		}
		if r, err := dup.CompareFortran(dup.Fortran()); err != nil || r != mpi.Identical {
			t.Errorf("a communicator compares to itself as %v, %v", r, err)
		}
		reversed, err := c.Split(0, -c.Rank(), limit)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := reversed.CompareFortran(c.Fortran()); err != nil || r != mpi.Similar || reversed.Rank() != 2-c.Rank() {
			t.Errorf("the reverse compares as %v, %v, rank %d of it is %d", r, err, c.Rank(), reversed.Rank())
		}
		for _, bad := range []int{-17, 1 << 20, 1 << 40} {
			var mpiErr *mpi.Error
			if _, err := mpi.FromFortran(bad, limit); !errors.As(err, &mpiErr) || mpiErr.Class != "MPI_ERR_COMM" {
				t.Errorf("handle %d gives %v", bad, err)
			}
		}
		for _, free := range []*mpi.Comm{reversed, dup} {
			if err := free.Free(); err != nil {
				t.Error(err)
			}
		}
	})
}

// Each rank writes pieces of a file by itself, and reads those of another one.
func TestFiles(t *testing.T) {
	cases := []struct {
		name  string
		piece int    // bytes
		most  int    // that one call of the library moves
		path  string // some are names that the libraries don't take
	}{
		{"bytes", 1, 1 << 20, "an array, ½"},
		{"pieces of eight", 8, 1 << 20, "12:30:00/an array"},
		{"a piece in three calls", 24, 10, "an:array"},
		{"as many calls as bytes", 5, 1, strings.Repeat("d", 255) + "/" + strings.Repeat("e", 255) + "/an array"},
		{"a long name", 7, 7, strings.Repeat("f", 255)},
		{"what looks like a type", 16, 1 << 20, "nfs:an array"},
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			mpitest.Run(t, []int{1, 2, 4}, func(t *mpitest.T, cc *comm.Comm) {
				defer mpi.SetMaxMove(mpi.SetMaxMove(1 << 20))
				for _, tc := range cases {
					mpi.SetMaxMove(tc.most)
					ctx, c := t.Context(), cc.Handle()
					path := filepath.Join(t.TempDir(), tc.path)
					const pieces = 5
					want := []byte("head")
					for i := range pieces * c.Size() * tc.piece {
						want = append(want, byte('a'+i%26))
					}
					var err error
					if cc.Rank() == 0 {
						blank := append([]byte("head"), make([]byte, len(want)-4)...)
						err = cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, blank, 0o600))
					}
					if err := cc.Agree(ctx, err); err != nil {
						t.Fatal(err)
					}
					// each opens the file and calls move for each piece of a rank.
					each := func(write bool, rank int, move func(f *mpi.File, from, to int) (int, error)) {
						f, err := c.OpenFile(path, write, nil)
						if err != nil {
							t.Fatal(err)
						}
						for k := range pieces {
							from := 4 + (k*c.Size()+rank)*tc.piece
							if n, err := move(f, from, from+tc.piece); err != nil || n != tc.piece {
								t.Fatalf("%s: piece %d: moved %d, %v", tc.name, k, n, err)
							}
						}
						if err := f.Close(); err != nil {
							t.Fatal(err)
						}
						if err := cc.Meet(ctx); err != nil {
							t.Fatal(err)
						}
					}
					each(true, c.Rank(), func(f *mpi.File, from, to int) (int, error) { return f.WriteAt(want[from:to], int64(from)) })
					if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
						t.Fatalf("%s: file is %q, %v, want %q", tc.name, got, err, want)
					}
					each(false, (c.Rank()+1)%c.Size(), func(f *mpi.File, from, to int) (int, error) {
						b := make([]byte, to-from)
						n, err := f.ReadAt(b, int64(from))
						if !bytes.Equal(b, want[from:to]) {
							t.Errorf("%s: bytes %d to %d are %q", tc.name, from, to, b)
						}
						return n, err
					})
				}
			}, component.Options...)
		})
	}
}

func TestFileErrors(t *testing.T) {
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			mpitest.Run(t, []int{2}, func(t *mpitest.T, cc *comm.Comm) {
				c, ctx := cc.Handle(), t.Context()
				path := filepath.Join(t.TempDir(), "file")
				var err error
				if cc.Rank() == 0 {
					err = os.WriteFile(path, make([]byte, 64), 0o600)
				}
				if err := cc.Agree(ctx, err); err != nil {
					t.Fatal(err)
				}
				open := []struct {
					name, path string
					errno      syscall.Errno
				}{
					{"no such file", filepath.Join(t.TempDir(), "none"), syscall.ENOENT},
					{"no such directory", filepath.Join(t.TempDir(), "none", "file"), syscall.ENOENT},
					{"NUL in the path", "a\x00b", syscall.EINVAL},
					{"empty path", "", syscall.EINVAL},
				}
				for _, tc := range open {
					for _, write := range []bool{true, false} {
						if _, err := c.OpenFile(tc.path, write, nil); !errors.Is(err, tc.errno) {
							t.Errorf("%s: open gives %v", tc.name, err)
						}
					}
				}
				for _, hints := range []map[string]string{
					{"": "1"}, {"cb_nodes": ""}, {strings.Repeat("k", 300): "1"}, {"cb_nodes": strings.Repeat("v", 5000)}, {"a\x00": "1"},
				} {
					if _, err := c.OpenFile(path, true, hints); !errors.Is(err, syscall.EINVAL) {
						t.Errorf("hints %v: open gives %v", hints, err)
					}
				}

				f, err := c.OpenFile(path, true, map[string]string{"cb_buffer_size": "1048576"})
				if err != nil {
					t.Fatal(err)
				}
				hints, err := f.Hints()
				if err != nil {
					t.Error(err)
				}
				if component.Name != "ompio" && hints["cb_buffer_size"] != "1048576" {
					t.Errorf("hints in force are %v", hints)
				}
				moves := []struct {
					name string
					call func() (int, error)
				}{
					{"to a negative offset", func() (int, error) { return f.WriteAt(make([]byte, 8), -1) }},
					{"past the largest offset", func() (int, error) { return f.WriteAt(make([]byte, 8), math.MaxInt64-3) }},
					{"in the other direction", func() (int, error) { return f.ReadAt(make([]byte, 8), 0) }},
				}
				for _, tc := range moves {
					if _, err := tc.call(); err == nil {
						t.Errorf("moved %s", tc.name)
					}
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}, component.Options...)
		})
	}
}
