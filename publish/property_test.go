package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// layoutCase is a domain cut into boxes, one per rank.
type layoutCase struct {
	boxes   []grid.Box
	halos   [][3]int // each rank has its own
	staging int64
	inPlace bool
}

func (l layoutCase) ranks() int { return len(l.boxes) }

func (l layoutCase) String() string {
	return fmt.Sprintf("boxes %v, halos %v, staging %d, in place %t", l.boxes, l.halos, l.staging, l.inPlace)
}

// restartCase is a state that is saved in one layout and loaded in another.
type restartCase struct {
	domain      grid.Domain
	spaces      []space
	increment   int64
	save, load  layoutCase
	durability  Durability
	destination []space // may be float64 where a float32 field was saved
}

// anyRestart draws cases of up to the given number of ranks.
func anyRestart(ranks int) *rapid.Generator[restartCase] {
	return rapid.Custom(func(t *rapid.T) restartCase {
		r := restartCase{domain: testDomain, increment: rapid.Int64Range(0, 1<<62-1).Draw(t, "increment")}
		for axis := range 3 {
			r.domain.Size[axis] = rapid.IntRange(1, 8).Draw(t, "size")
			r.domain.Periodic[axis] = rapid.Bool().Draw(t, "periodic")
		}
		anySpace := rapid.SampledFrom([]space{host64, host32, device64, device32})
		r.spaces = rapid.SliceOfN(anySpace, 1, 3).Draw(t, "spaces")
		for _, s := range r.spaces {
			s.single = s.single && rapid.Bool().Draw(t, "single")
			s.onDevice = rapid.Bool().Draw(t, "on a device")
			r.destination = append(r.destination, s)
		}
		r.durability = rapid.SampledFrom([]Durability{Full, None}).Draw(t, "durability")
		r.save = anyLayout(t, r.domain, ranks)
		r.load = anyLayout(t, r.domain, ranks)
		return r
	})
}

// anyLayout cuts the domain by random planes, again and again: the boxes tile it,
// but not as a grid of processes does. Some are empty.
func anyLayout(t *rapid.T, domain grid.Domain, ranks int) layoutCase {
	n := rapid.IntRange(1, ranks).Draw(t, "ranks")
	l := layoutCase{
		boxes:   []grid.Box{domain.Box()},
		staging: rapid.SampledFrom([]int64{16, 40, 256, 1 << 20}).Draw(t, "staging"),
		inPlace: rapid.Bool().Draw(t, "in place"),
	}
	for len(l.boxes) < n {
		i := rapid.IntRange(0, len(l.boxes)-1).Draw(t, "box")
		axis := rapid.IntRange(0, 2).Draw(t, "axis")
		low, high := l.boxes[i], l.boxes[i]
		low.Size[axis] = rapid.IntRange(0, low.Size[axis]).Draw(t, "at")
		high.Low[axis] += low.Size[axis]
		high.Size[axis] -= low.Size[axis]
		l.boxes[i] = low
		l.boxes = append(l.boxes, high)
	}
	l.boxes = rapid.Permutation(l.boxes).Draw(t, "order")
	for range n {
		l.halos = append(l.halos, [3]int{
			rapid.IntRange(0, 4).Draw(t, "halo"), rapid.IntRange(0, 4).Draw(t, "halo"), rapid.IntRange(0, 4).Draw(t, "halo")})
	}
	return l
}

func (l layoutCase) part(r restartCase, c *comm.Comm, spaces []space) (*part, error) {
	return newPart(r.domain, l.boxes[c.Rank()], l.halos[c.Rank()], spaces...)
}

// runSave publishes the state; it is collective.
func (r restartCase) runSave(c *comm.Comm, fsys vfs.FS, dir string) error {
	p, err := r.save.part(r, c, r.spaces)
	if err != nil {
		return err
	}
	if err := p.set(r.increment); err != nil {
		return err
	}
	err = SaveBundle(context.Background(), c, dir, p.state(r.increment),
		Filesystem(fsys), WithDurability(r.durability), Bricks(brick.Staging(r.save.staging)))
	return errors.Join(err, p.check(r.increment), p.close())
}

func (r restartCase) runLoad(c *comm.Comm, fsys vfs.FS, dir string) error {
	p, err := r.load.part(r, c, r.destination)
	if err != nil {
		return err
	}
	opts := []Option{Filesystem(fsys), Bricks(brick.Staging(r.load.staging))}
	if r.load.inPlace {
		opts = append(opts, InPlace())
	}
	loaded, err := LoadBundle(context.Background(), c, dir, Request{Fields: p.named()}, opts...)
	if err == nil && (!loaded.Verified || loaded.Metadata.AcceptedIncrement != r.increment) {
		err = fmt.Errorf("loaded %+v", loaded)
	}
	// What was float32 when it was saved has the bits of that.
	return errors.Join(err, p.compareWith(r.increment, func(i int, increment int64) func([3]int, bool, int) uint64 {
		return func(cell [3]int, owned bool, index int) uint64 {
			if !owned {
				return blank(cell, false, index)
			}
			return cellBits(p.ids[i], r.spaces[i].single, increment, cell)
		}
	}), p.close())
}

// TestAnyLayoutRestartsInAnyOther: whatever the domain, the boxes, the halos, the
// element types, the memory spaces and the sizes of pieces, a bundle has the
// bytes and checksums of its state, and loads into any other layout bit for bit
// with ghost cells untouched.
func TestAnyLayoutRestartsInAnyOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRestart(5).Draw(t, "case")
		fsys := vfs.NewMem()
		err := comm.Run(r.save.ranks(), func(c *comm.Comm) error { return r.runSave(c, fsys, "/b") })
		if err != nil {
			t.Fatalf("save: %v", err)
		}
		if err := checkBundle(fsys, "/b", r.domain, r.increment, r.spaces...); err != nil {
			t.Fatal(err)
		}
		err = comm.Run(r.load.ranks(), func(c *comm.Comm) error { return r.runLoad(c, fsys, "/b") })
		if err != nil {
			t.Fatalf("load: %v", err)
		}
	})
}

// TestAnyLayoutRestartsInAnyOtherUnderMPI draws the same cases on all ranks, whose
// first ones save and load.
func TestAnyLayoutRestartsInAnyOtherUnderMPI(t *testing.T) {
	const cases = 12
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mpitest.Run(t, []int{4}, func(t *mpitest.T, c *comm.Comm) {
			draw := anyRestart(c.Size())
			for seed := range cases {
				r := draw.Example(seed)
				dir := filepath.Join(t.TempDir(), fmt.Sprintf("seed-%d", seed))
				err := onFirst(c, r.save.ranks(), func(c *comm.Comm) error { return r.runSave(c, vfs.OS, dir) })
				if err == nil && c.Rank() == 0 {
					err = checkBundle(vfs.OS, dir, r.domain, r.increment, r.spaces...)
				}
				if err := c.Agree(t.Context(), err); err != nil {
					t.Fatalf("seed %d, %+v: save: %v", seed, r, err)
				}
				err = onFirst(c, r.load.ranks(), func(c *comm.Comm) error { return r.runLoad(c, vfs.OS, dir) })
				if err := c.Agree(t.Context(), err); err != nil {
					t.Fatalf("seed %d, %+v: load: %v", seed, r, err)
				}
			}
		}, opts...)
	})
}

// onFirst runs f on a group of the first n ranks. It is collective over c.
func onFirst(c *comm.Comm, n int, f func(c *comm.Comm) error) error {
	color := -1
	if c.Rank() < n {
		color = 0
	}
	group, err := c.Split(color, c.Rank())
	if err != nil || group == nil {
		return err
	}
	return cmp.Or(f(group), group.Free())
}
