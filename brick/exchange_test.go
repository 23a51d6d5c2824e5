package brick

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// exchanged is the driver mpiio on the files of a plan, for ranks without MPI.
type exchanged struct{ mpiio }

type exchangeCase struct {
	size    [3]int
	boxes   []grid.Box
	elem    Element
	staging int64
	round   int64
	files   int
	within  bool
}

// splitAt cuts a box along the axes into as many parts as given, at any places.
func splitAt(r *rand.Rand, b grid.Box, parts [3]int) []grid.Box {
	list := []grid.Box{b}
	for axis, n := range parts {
		var next []grid.Box
		for _, b := range list {
			cuts := []int{0, b.Size[axis]}
			for range n - 1 {
				cuts = append(cuts, r.IntN(b.Size[axis]+1))
			}
			slices.Sort(cuts)
			for k := range n {
				part := b
				part.Low[axis] += cuts[k]
				part.Size[axis] = cuts[k+1] - cuts[k]
				next = append(next, part)
			}
		}
		list = next
	}
	return list
}

func exchangeCases() (list []exchangeCase) {
	r := rand.New(rand.NewPCG(3, 7))
	for range 60 {
		c := exchangeCase{size: [3]int{1 + r.IntN(9), 1 + r.IntN(7), 1 + r.IntN(6)}, elem: Element(r.IntN(2)), files: 1 + r.IntN(3), within: r.IntN(2) == 0}
		c.boxes = splitAt(r, grid.Box{Size: c.size}, [3]int{1 + r.IntN(3), 1 + r.IntN(2), 1 + r.IntN(2)})
		c.staging = []int64{16, 64, 200, 1000, 0}[r.IntN(5)]
		c.round = []int64{16, 48, maxRound}[r.IntN(3)]
		list = append(list, c)
	}
	// Slots with an end at a page, and of several ranks.
	wide := [3]int{96, 40, 30}
	list = append(list, exchangeCase{size: wide, boxes: splitAt(r, grid.Box{Size: wide}, [3]int{2, 2, 1}), files: 2, staging: 400 << 10, round: maxRound})
	return list
}

// offset is where the array of a file begins.
func (c exchangeCase) offset(file int) int64 {
	if !c.within {
		return 0
	}
	return int64(3 + 5*file)
}

// cell is the content of a cell of a file.
func (c exchangeCase) cell(file int, cell int64) []byte {
	return bytes.Repeat([]byte(fmt.Sprintf("%01d%06d.", file, cell)), c.elem.Size()/8)
}

// packed is what a rank has of a file.
func (c exchangeCase) packed(rank, file int) []byte {
	var b []byte
	for n := range c.size[0] * c.size[1] * c.size[2] {
		if c.boxes[rank].ContainsCell([3]int{n % c.size[0], n / c.size[0] % c.size[1], n / c.size[0] / c.size[1]}) {
			b = append(b, c.cell(file, int64(n))...)
		}
	}
	return b
}

// inOrder yields or takes cells, which are asked for one after the other.
type inOrder struct {
	packed []byte
	elem   int
	next   int
}

func (o *inOrder) move(n int, first int64, do func(b []byte)) error {
	if at := int(first) * o.elem; at != o.next {
		return fmt.Errorf("cells from %d on, after byte %d", first, o.next)
	}
	do(o.packed[o.next : o.next+n])
	o.next += n
	return nil
}

func (o *inOrder) ReadCells(dst []byte, first int64) error {
	return o.move(len(dst), first, func(b []byte) { copy(dst, b) })
}

func (o *inOrder) WriteCells(src []byte, first int64) error {
	return o.move(len(src), first, func(b []byte) { copy(b, src) })
}

var _ pack.Source = (*inOrder)(nil)

// run writes the files of a case and reads them again, on each rank with its filesystem.
// It returns the ranks' errors, and what the first one to fail is about.
func (c exchangeCase) run(fsys func(rank int) vfs.FS) (written, read []error) {
	written, read = make([]error, len(c.boxes)), make([]error, len(c.boxes))
	err := comm.Run(len(c.boxes), func(k *comm.Comm) error {
		ctx := context.Background()
		p, err := NewPlan(ctx, k, c.size, c.boxes[k.Rank()], c.elem, Staging(max(c.staging, 16)), Round(c.round), Filesystem(fsys(k.Rank())), Using(POSIX))
		if err != nil {
			return err
		}
		defer p.Close()
		p.drv, p.opt.staging = exchanged{}, c.staging
		var writes []WriteJob
		var reads []ReadJob
		var sinks []*inOrder
		for f := range c.files {
			name, path := fmt.Sprint("field ", f), fmt.Sprintf("/%d.bin", f)
			full := c.packed(k.Rank(), f)
			sink := &inOrder{packed: make([]byte, len(full)), elem: c.elem.Size()}
			sinks = append(sinks, sink)
			writes = append(writes, WriteJob{Name: name, Path: path, Source: &inOrder{packed: full, elem: c.elem.Size()}, Within: c.within, Offset: c.offset(f)})
			reads = append(reads, ReadJob{Name: name, Path: path, Sink: sink, Within: c.within, Offset: c.offset(f)})
		}
		sums, err := p.Write(ctx, writes)
		if written[k.Rank()] = err; err != nil {
			return nil
		}
		got, err := p.Read(ctx, reads)
		if read[k.Rank()] = err; err != nil {
			return nil
		}
		for f := range c.files {
			if got[f] != sums[f].CRC {
				return fmt.Errorf("file %d: checksum %x, want %x", f, got[f], sums[f].CRC)
			}
			if !bytes.Equal(sinks[f].packed, c.packed(k.Rank(), f)) {
				return fmt.Errorf("file %d is read as %q", f, sinks[f].packed)
			}
		}
		return nil
	})
	if err != nil {
		written[0] = errors.Join(written[0], err)
	}
	return written, read
}

// newFiles has the files that parts are put into.
func (c exchangeCase) newFiles(t *testing.T) *vfs.Mem {
	t.Helper()
	m := vfs.NewMem()
	for f := range c.files {
		if c.within {
			if err := vfs.WriteFile(m, fmt.Sprintf("/%d.bin", f), []byte("before"), 0o666, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	return m
}

// Every cell gets to its place and back, whatever the layout and the memory.
func TestExchangeMovesEveryCell(t *testing.T) {
	for n, c := range exchangeCases() {
		m := c.newFiles(t)
		written, read := c.run(func(int) vfs.FS { return m })
		if err := errors.Join(append(written, read...)...); err != nil {
			t.Fatalf("case %d, %+v: %v", n, c, err)
		}
		for f := range c.files {
			var want []byte
			if c.within {
				want = append(want, "before"...)
				if more := int(c.offset(f)) - len(want); more > 0 {
					want = append(want, make([]byte, more)...)
				}
				want = want[:c.offset(f)]
			}
			for cell := range int64(c.size[0] * c.size[1] * c.size[2]) {
				want = append(want, c.cell(f, cell)...)
			}
			got, err := vfs.ReadFile(m, fmt.Sprintf("/%d.bin", f), 1<<30)
			if err != nil || len(got) < len(want) || !bytes.Equal(got[:len(want)], want) {
				t.Fatalf("case %d, %+v: file %d is %q, %v", n, c, f, got, err)
			}
		}
	}
}

// Each rank's operations on the files fail in turn: nobody waits for it, and all ranks have
// its error.
func TestExchangeWithAFailingRank(t *testing.T) {
	size := [3]int{6, 4, 3}
	c := exchangeCase{size: size, files: 3, staging: 200, round: maxRound,
		boxes: splitAt(rand.New(rand.NewPCG(1, 2)), grid.Box{Size: size}, [3]int{3, 1, 1})}
	failed := make(map[vfs.Kind]int)
	for rank := range c.boxes {
		for _, kind := range []vfs.Kind{vfs.OpOpen, vfs.OpWriteAt, vfs.OpReadAt, vfs.OpClose} {
			for skip := 0; ; skip++ {
				m := c.newFiles(t)
				fired := false
				written, read := c.run(func(r int) vfs.FS {
					in := vfs.NewInject(m)
					if r == rank {
						var mu sync.Mutex
						left := skip
						match := func(vfs.Op) bool {
							mu.Lock()
							defer mu.Unlock()
							left--
							fired = fired || left == -1
							return left == -1
						}
						if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{kind}, Match: match, Err: syscall.EIO}); err != nil {
							t.Error(err)
						}
					}
					return in
				})
				if !fired {
					break
				}
				failed[kind]++
				errs := written
				if written[0] == nil {
					errs = read
				}
				for r, err := range errs {
					if !errors.Is(err, syscall.EIO) || err.Error() != errs[0].Error() || !bytes.HasPrefix([]byte(err.Error()), fmt.Appendf(nil, "rank %d: ", rank)) {
						t.Errorf("rank %d, %v %d: rank %d has %v, rank 0 has %v", rank, kind, skip, r, err, errs[0])
					}
				}
			}
		}
	}
	for _, kind := range []vfs.Kind{vfs.OpOpen, vfs.OpWriteAt, vfs.OpReadAt, vfs.OpClose} {
		if failed[kind] < 10 {
			t.Errorf("%v failed %d times: want it in several steps of several ranks", kind, failed[kind])
		}
	}
}

// The stretches make up a file, and no rank has more of one than its memory takes. Their slots
// make up the stretches.
func TestStretches(t *testing.T) {
	for n, c := range exchangeCases() {
		p := &Plan{size: c.size, elem: c.elem, boxes: c.boxes, opt: options{staging: c.staging, round: c.round}}
		for _, b := range c.boxes {
			p.largest = max(p.largest, b.Cells()*int64(c.elem.Size()))
		}
		end := int64(0)
		for _, s := range p.stretches() {
			if s.first != end || s.end <= s.first {
				t.Fatalf("case %d: %v comes after %d", n, s, end)
			}
			end = s.end
			for rank := range c.boxes {
				if _, has := p.has(rank, s); has > p.perStretch() {
					t.Fatalf("case %d: rank %d has %d cells of %v, more than %d", n, rank, has, s, p.perStretch())
				}
			}
			members, slots := p.deal(n, s)
			if len(slots) != len(members) {
				t.Fatalf("case %d: %d slots of %d ranks", n, len(slots), len(members))
			}
			slices.SortFunc(slots, func(a, b stretch) int { return int(a.first - b.first) })
			at := s.first
			_, memory, _ := p.exchangeMemory()
			for _, slot := range slots {
				if slot.cells() == 0 {
					continue
				}
				if slot.first != at || slot.cells()*int64(c.elem.Size()) > memory {
					t.Fatalf("case %d: slot %v after %d, in %d bytes", n, slot, at, memory)
				}
				at = slot.end
			}
			if at != s.end {
				t.Fatalf("case %d: the slots of %v end at %d", n, s, at)
			}
		}
		if want := p.FileSize() / int64(c.elem.Size()); end != want {
			t.Fatalf("case %d: the stretches end at %d of %d", n, end, want)
		}
	}
}
