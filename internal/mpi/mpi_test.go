//go:build mpi

package mpi_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
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

// box is the share of a rank along one axis; with more ranks than cells some are
// empty.
func share(n, ranks, rank int) (start, length int) {
	start = n * rank / ranks
	return start, n*(rank+1)/ranks - start
}

// element is the content of an element by its index in the global array.
func element(index, elemSize int) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%08d", index)), elemSize/8)
}

// cells lists the global indices of a box, x fastest.
func cells(global, local, start [3]int) []int {
	var list []int
	for k := range local[2] {
		for j := range local[1] {
			for i := range local[0] {
				list = append(list, (start[2]+k)*global[1]*global[0]+(start[1]+j)*global[0]+start[0]+i)
			}
		}
	}
	return list
}

func TestFiles(t *testing.T) {
	cases := []struct {
		name     string
		global   [3]int
		split    [2]int // axis along which the writers and the readers split
		elemSize int
		disp     int64
		round    int    // elements that a rank moves at once
		path     string // some are names that the libraries don't take
	}{
		{"rows split, eight bytes", [3]int{5, 4, 3}, [2]int{0, 2}, 8, 0, 1000, "an array, ½"},
		{"slabs, sixteen bytes", [3]int{3, 2, 7}, [2]int{2, 0}, 16, 0, 1000, "12:30:00/an array"},
		{"in rounds of three behind a header", [3]int{4, 3, 5}, [2]int{1, 2}, 8, 24, 3, "an:array"},
		{"sixteen bytes in rounds of one", [3]int{5, 1, 2}, [2]int{0, 1}, 16, 40, 1, strings.Repeat("d", 255) + "/" + strings.Repeat("e", 255) + "/an array"},
		{"fewer planes than ranks", [3]int{6, 5, 2}, [2]int{2, 0}, 8, 0, 7, strings.Repeat("f", 255)},
		{"one cell", [3]int{1, 1, 1}, [2]int{0, 0}, 8, 0, 1, "nfs:an array"},
	}
	for _, component := range mpitest.Components() {
		t.Run(component.Name, func(t *testing.T) {
			mpitest.Run(t, []int{1, 2, 3, 4}, func(t *mpitest.T, cc *comm.Comm) {
				for _, tc := range cases {
					ctx := t.Context()
					c := cc.Handle()
					path := filepath.Join(t.TempDir(), tc.path)
					total := tc.global[0] * tc.global[1] * tc.global[2]
					var want []byte
					want = append(want, bytes.Repeat([]byte{'h'}, int(tc.disp))...)
					for i := range total {
						want = append(want, element(i, tc.elemSize)...)
					}
					var err error
					if cc.Rank() == 0 {
						blank := append(bytes.Repeat([]byte{'h'}, int(tc.disp)), make([]byte, total*tc.elemSize)...)
						err = cmp.Or(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, blank, 0o600))
					}
					if err := cc.Agree(ctx, err); err != nil {
						t.Fatal(err)
					}
					for pass, write := range []bool{true, false} {
						start, local := [3]int{}, tc.global
						axis := tc.split[pass]
						start[axis], local[axis] = share(tc.global[axis], c.Size(), c.Rank())
						mine := cells(tc.global, local, start)
						buf := make([]byte, len(mine)*tc.elemSize)
						if write {
							for i, index := range mine {
								copy(buf[i*tc.elemSize:], element(index, tc.elemSize))
							}
						}
						rounds := []int64{int64((len(mine) + tc.round - 1) / tc.round)}
						if err := cc.AllReduceInt64(ctx, comm.Max, rounds); err != nil {
							t.Fatal(err)
						}
						f, err := c.OpenFile(path, write, nil)
						if err != nil {
							t.Fatal(err)
						}
						if err := f.SetView(tc.disp, tc.elemSize, tc.global, local, start); err != nil {
							t.Fatal(err)
						}
						for round := range int(rounds[0]) {
							from := min(round*tc.round, len(mine))
							to := min(from+tc.round, len(mine))
							piece := buf[from*tc.elemSize : to*tc.elemSize]
							if write {
								err = f.WriteAtAll(int64(from), piece, tc.elemSize)
							} else {
								err = f.ReadAtAll(int64(from), piece, tc.elemSize)
							}
							if err != nil {
								t.Fatalf("%s: round %d: %v", tc.name, round, err)
							}
						}
						if err := f.Close(); err != nil {
							t.Fatal(err)
						}
						if err := cc.Meet(ctx); err != nil {
							t.Fatal(err)
						}
						if write {
							if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
								t.Fatalf("%s: file is %q, %v, want %q", tc.name, got, err, want)
							}
							continue
						}
						for i, index := range mine {
							if got := buf[i*tc.elemSize:][:tc.elemSize]; !bytes.Equal(got, element(index, tc.elemSize)) {
								t.Fatalf("%s: element %d read as %q", tc.name, index, got)
							}
						}
					}
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
				views := []struct {
					name                 string
					elemSize             int
					global, local, start [3]int
				}{
					{"elements of 4 bytes", 4, [3]int{2, 2, 2}, [3]int{1, 1, 1}, [3]int{}},
					{"an empty array", 8, [3]int{2, 0, 2}, [3]int{}, [3]int{}},
					{"a box that ends outside", 8, [3]int{2, 2, 2}, [3]int{1, 1, 2}, [3]int{0, 0, 1}},
					{"a box that begins outside", 8, [3]int{2, 2, 2}, [3]int{1, 1, 1}, [3]int{-1, 0, 0}},
					{"an axis beyond 32 bits", 8, [3]int{1 << 31, 2, 2}, [3]int{1, 1, 1}, [3]int{}},
				}
				for _, tc := range views {
					if err := f.SetView(0, tc.elemSize, tc.global, tc.local, tc.start); err == nil {
						t.Errorf("view of %s is set", tc.name)
					}
				}
				if err := f.SetView(0, 8, [3]int{2, 2, 2}, [3]int{2, 2, 1}, [3]int{0, 0, c.Rank()}); err != nil {
					t.Fatal(err)
				}
				moves := []struct {
					name string
					call func() error
				}{
					{"half an element", func() error { return f.WriteAtAll(0, make([]byte, 12), 8) }},
					{"elements of another size", func() error { return f.WriteAtAll(0, make([]byte, 16), 16) }},
					{"a negative offset", func() error { return f.WriteAtAll(-1, make([]byte, 8), 8) }},
					{"the other direction", func() error { return f.ReadAtAll(0, make([]byte, 8), 8) }},
					{"more than a round", func() error { return f.WriteAtAll(0, make([]byte, mpi.MaxRound+8), 8) }},
				}
				for _, tc := range moves {
					if err := tc.call(); err == nil {
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
