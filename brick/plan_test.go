package brick

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestOptionsValidate(t *testing.T) {
	cases := []struct {
		name string
		opts []Option
		want string // "" is no error
	}{
		{"none", nil, ""},
		{"all good ones", []Option{Using(POSIX), Hints(map[string]string{"cb_nodes": "2"}), Staging(16), Round(16), Sync(),
			ReadBack(), Logger(slog.Default()), Filesystem(vfs.NewMem())}, ""},
		{"nil", []Option{nil}, "an option is nil"},
		{"an unknown driver", []Option{Using(9)}, "unknown driver 9"},
		{"a negative driver", []Option{Using(-1)}, "unknown driver -1"},
		{"mpiio on other files", []Option{Using(MPIIO), Filesystem(vfs.NewMem())}, "driver mpiio works on the operating system's files only"},
		{"mpiio on other files, in the other order", []Option{Filesystem(vfs.NewMem()), Using(MPIIO)}, "driver mpiio works"},
		{"staging of less than an element", []Option{Staging(15)}, "staging of 15 bytes"},
		{"rounds of less than an element", []Option{Round(15)}, "round of 15 bytes"},
		{"rounds above the limit of MPI", []Option{Round(1<<30 + 1)}, "round of 1073741825 bytes: from 16 to 1073741824"},
		{"a hint without a key", []Option{Hints(map[string]string{"": "1"})}, `hint ""="1"`},
		{"a hint without a value", []Option{Hints(map[string]string{"a": ""})}, `hint "a"=""`},
		{"a hint with a NUL", []Option{Hints(map[string]string{"a": "1\x002"})}, `hint "a"="1\x002"`},
		{"a hint that is too long", []Option{Hints(map[string]string{strings.Repeat("k", 256): "1"})}, "a key has 1 to 255 bytes"},
		{"sections of no plane", []Option{Sections(0)}, "sections of 0 planes"},
		{"no logger", []Option{Logger(nil)}, "the logger is nil"},
		{"no filesystem", []Option{Filesystem(nil)}, "the filesystem is nil"},
		{"the first error counts", []Option{Staging(1), Round(1)}, "staging of 1 bytes"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			_, err := newOptions(tc.opts)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("error is %q, want %q", got, tc.want)
			}
		})
	}
}

func TestHintsAreTheCallersNoMore(t *testing.T) {
	hints := map[string]string{"cb_nodes": "2"}
	opt := Hints(hints)
	hints["cb_nodes"] = "3"
	o, err := newOptions([]Option{opt})
	if err != nil || o.hints["cb_nodes"] != "2" {
		t.Errorf("hints are %v, %v", o.hints, err)
	}
}

func TestSizes(t *testing.T) {
	type sizeCase struct {
		name string
		size [3]int
		elem Element
		want string
	}
	cases := []sizeCase{
		{"one cell", [3]int{1, 1, 1}, Float64, ""},
		{"a zero", [3]int{4, 0, 1}, Float64, "size of axis y is 0: must be positive"},
		{"a negative", [3]int{4, 1, -3}, Float64, "size of axis z is -3"},
		{"more than a file holds", [3]int{1 << 20, 1 << 20, 1 << 20}, Float64, "does not fit a file"},
		{"as much as a file holds", [3]int{1 << 20, 1 << 20, 1<<20 - 1}, Float64, ""},
		{"more than a file holds, of complex", [3]int{1 << 20, 1 << 20, 1<<19 + 1}, Complex128, "does not fit a file"},
		{"another element", [3]int{1, 1, 1}, 2, "element(2) is not an element of files"},
	}
	if n := int64(math.MaxInt32 + 1); strconv.IntSize > 32 {
		cases = append(cases, sizeCase{"an axis that MPI can't count", [3]int{int(n), 1, 1}, Float64, "size of axis x is 2147483648: at most 2147483647"})
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := checkSize(tc.size, tc.elem)
			if got := fmt.Sprint(err); tc.want == "" && err != nil || tc.want != "" && !strings.Contains(got, tc.want) {
				t.Errorf("error is %q, want %q", got, tc.want)
			}
		})
	}
}

// Every rank gets whole chunks, the last one the rest, and nothing is left out.
func TestSharesCoverTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(0, 100*readChunk), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "size")
		ranks := rapid.IntRange(1, 1000).Draw(t, "ranks")
		end := int64(0)
		for r := range ranks {
			low, high := part(size, r, ranks)
			if low != end || high < low {
				t.Fatalf("rank %d has %d to %d after %d", r, low, high, end)
			}
			if over := high - low - size/int64(ranks); over > 2*readChunk {
				t.Fatalf("rank %d has %d bytes more than its part of %d", r, over, size)
			}
			end = high
		}
		if end != size {
			t.Fatalf("the shares end at %d of %d", end, size)
		}
	})
}

// The workers' chunks are the staging memory, within its limit and no more than the
// brick has.
func TestStagingIsBounded(t *testing.T) {
	cases := []struct {
		name           string
		drv            driver
		staging        int64
		box            [3]int
		cores          int
		workers, bytes int
	}{
		{"a small brick has one worker", posix{}, 0, [3]int{2, 3, 4}, 8, 1, 2 * 3 * 4 * 8},
		{"one core, one chunk", posix{}, 0, [3]int{256, 256, 256}, 1, 1, 2 << 20},
		{"two cores, two chunks", node{}, 0, [3]int{256, 256, 256}, 2, 2, 4 << 20},
		{"more cores have smaller chunks", posix{}, 0, [3]int{256, 256, 256}, 6, 6, 6 * (4 << 20 / 6 / 4096 * 4096)},
		{"but not too small ones", posix{}, 0, [3]int{256, 256, 256}, 100, 8, 4 << 20},
		{"a limit", posix{}, 100, [3]int{256, 256, 256}, 8, 1, 96},
		{"a limit of one element", posix{}, 16, [3]int{256, 1, 1}, 8, 1, 16},
		{"a large limit is not used up", posix{}, 1 << 40, [3]int{256, 256, 256}, 2, 2, 4 << 20},
		{"no cells", posix{}, 0, [3]int{0, 256, 256}, 2, 1, 0},
		{"MPI-IO is called by one thread", mpiio{}, 0, [3]int{256, 256, 256}, 2, 1, 2 << 20},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := &Plan{opt: options{staging: tc.staging, round: maxRound, log: slog.New(slog.DiscardHandler)}, drv: tc.drv,
				box: grid.Box{Size: tc.box}, size: tc.box, workers: tc.cores, noWindow: true}
			defer p.Close()
			if err := p.reserve(3); err != nil {
				t.Fatal(err)
			}
			b := p.staging.Bytes
			if len(b) != tc.bytes {
				t.Errorf("%d bytes of staging, want %d", len(b), tc.bytes)
			}
			if len(b) > 0 && uintptr(unsafe.Pointer(&b[0]))%4096 != 0 {
				t.Error("not at a page")
			}
			chunks := p.chunks()
			end := 0
			for _, c := range chunks {
				if len(c) > 0 && &c[0] != &b[end] {
					t.Errorf("a chunk of %d bytes is not at %d", len(c), end)
				}
				end += len(c)
			}
			if len(chunks) != tc.workers || end != len(b) {
				t.Errorf("%d chunks of %d bytes, want %d of %d", len(chunks), end, tc.workers, len(b))
			}
			if err := p.reserve(3); err != nil || len(b) > 0 && &p.staging.Bytes[0] != &b[0] {
				t.Errorf("the second call has other memory: %v", err)
			}
		})
	}
}

// Texts say operation, thing and cause, and say each only once.
func TestErrorTexts(t *testing.T) {
	j := job{Name: `field "psi"`, Path: "/x/psi.bin"}
	pathError := func(op, path string) error { return &fs.PathError{Op: op, Path: path, Err: syscall.ENOSPC} }
	cases := []struct {
		name string
		job  job
		op   string
		err  error
		want string
	}{
		{"the call is the operation", j, "write", pathError("write", j.Path), `write field "psi": no space left on device`},
		{"the call is a part of it", j, "write", pathError("open", j.Path), `write field "psi": open: no space left on device`},
		{"another path stays", j, "write", pathError("open", "/y"), `write field "psi": open /y: no space left on device`},
		{"any other error", j, "read", errors.New("boom"), `read field "psi": boom`},
		{"without a name the path is the name", job{Path: "/x/psi.bin"}, "write", pathError("write", j.Path), `write "/x/psi.bin": no space left on device`},
		{"a second failure in the same line", j, "write", also(errors.New("boom"), errors.New("bang")), `write field "psi": boom (then bang)`},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.job.fail(tc.op, tc.err)
			if err.Error() != tc.want {
				t.Errorf("error is %q, want %q", err, tc.want)
			}
			if errors.Is(tc.err, syscall.ENOSPC) && !errors.Is(err, syscall.ENOSPC) {
				t.Error("the errno is lost")
			}
		})
	}
	if err := j.fail("write", nil); err != nil {
		t.Errorf("no error becomes %v", err)
	}
}

// Lists of files are compared byte for byte: a path is not always UTF-8.
func TestJobsTravelUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
		var jobs []job
		for range rapid.IntRange(0, 4).Draw(t, "jobs") {
			jobs = append(jobs, job{text.Draw(t, "name"), text.Draw(t, "path"), rapid.Bool().Draw(t, "within"), rapid.Int64().Draw(t, "offset")})
		}
		if err := differ(decodeJobs(encodeJobs(jobs)), jobs); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPathsThatDifferInInvalidUTF8Differ(t *testing.T) {
	err := comm.Run(2, func(c *comm.Comm) error {
		r := ranks{Comm: c}
		_, err := r.sameJobs(t.Context(), []job{{Path: string([]byte{'a', 0xF0 + byte(c.Rank())})}}, nil)
		if !errors.Is(err, ErrDisagree) {
			return fmt.Errorf("error is %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDriverIsChosenByCommunicator(t *testing.T) {
	err := comm.Run(2, func(c *comm.Comm) error {
		box := grid.Box{Low: [3]int{0, 0, c.Rank()}, Size: [3]int{1, 1, 1}}
		p, err := NewPlan(t.Context(), c, [3]int{1, 1, 2}, box, Float64)
		if err != nil {
			return err
		}
		if d, why := p.Driver(); d != Node || why != "2 ranks on one node" {
			return fmt.Errorf("driver %s, %s", d, why)
		}
		_, err = NewPlan(t.Context(), c, [3]int{1, 1, 2}, box, Float64, Using(MPIIO))
		if want := "plan bricks: rank 0: driver mpiio needs a communicator of MPI (build with the tag mpi)"; fmt.Sprint(err) != want {
			return fmt.Errorf("error is %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	p, err := NewPlan(t.Context(), comm.Self(), [3]int{1, 1, 1}, grid.Box{Size: [3]int{1, 1, 1}}, Float64)
	if err != nil {
		t.Fatal(err)
	}
	if d, why := p.Driver(); d != POSIX || why != "one rank" {
		t.Errorf("driver %s, %s", d, why)
	}
	if _, err := NewPlan(t.Context(), nil, [3]int{1, 1, 1}, grid.Box{}, Float64); err == nil {
		t.Error("a plan without a communicator")
	}
}
