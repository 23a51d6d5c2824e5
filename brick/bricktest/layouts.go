package bricktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
)

// layoutCase is one random case: some of the ranks write files, others read them.
type layoutCase struct {
	Array   array
	Files   int
	Writers []grid.Box // one for each rank that writes, from rank 0 on
	Readers []grid.Box // one for each rank that reads, from the last rank on down
	Staging int64
	Round   int64
	Durable bool // sync and read back
	Before  bool // longer files stand at the paths

	Parts  []int64 // where the arrays begin in files that are there, if they are parts
	Shared bool    // all of them in one file
	Stands int64   // bytes of these files before the write
}

// layouts lets rank 0 draw the cases and send them to the others, so that all
// ranks are in step while a failing case is made smaller.
func (s *suite) layouts() error {
	writers, err := s.groups(func(n int) bool { return s.c.Rank() < n }, s.c.Rank())
	if err != nil {
		return err
	}
	readers, err := s.groups(func(n int) bool { return s.c.Rank() >= s.c.Size()-n }, -s.c.Rank())
	if err != nil {
		return err
	}
	// The ranks that found no error say only that another one did.
	run := func(text []byte) error {
		var lc layoutCase
		err := json.Unmarshal(text, &lc)
		if err == nil {
			err = comm.Protect(func() error { return s.layout(lc, writers[len(lc.Writers)], readers[len(lc.Readers)]) })
		}
		return s.c.Agree(s.ctx, err)
	}
	if s.c.Rank() == 0 {
		s.draw(run)
	} else {
		for {
			text, err := s.c.Broadcast(s.ctx, 0, nil)
			if err != nil || len(text) == 0 {
				return err
			}
			if err := run(text); errors.Is(err, comm.ErrDead) {
				return err
			}
		}
	}
	for _, g := range append(writers, readers...) {
		if g != nil {
			err = errors.Join(err, g.Free())
		}
	}
	return err
}

// groups makes a communicator of the ranks that take part for each number of
// ranks; it is nil on the others.
func (s *suite) groups(member func(n int) bool, key int) ([]*comm.Comm, error) {
	groups := make([]*comm.Comm, s.c.Size()+1)
	for n := 1; n <= s.c.Size(); n++ {
		color := -1
		if member(n) {
			color = 0
		}
		var err error
		if groups[n], err = s.c.Split(color, key); err != nil {
			return nil, err
		}
	}
	return groups, nil
}

// draw checks the property on rank 0. rapid ends the goroutine of a property that
// failed, which must not be that of the rank.
func (s *suite) draw(run func(text []byte) error) {
	t := &reporter{TB: s.t}
	count, failed := 0, false
	done := make(chan struct{})
	go func() {
		defer close(done)
		rapid.Check(t, func(rt *rapid.T) {
			if count++; s.Layouts > 0 && count > s.Layouts && !failed {
				return
			}
			text, err := json.Marshal(drawLayout(rt, s.c.Size()))
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := s.c.Broadcast(s.ctx, 0, text); err != nil {
				rt.Fatal(err)
			}
			if err := run(text); err != nil {
				failed = true
				rt.Fatalf("%s\n%v", text, err)
			}
		})
	}()
	<-done
	if _, err := s.c.Broadcast(s.ctx, 0, nil); err != nil {
		s.t.Errorf("end of the random layouts: %v", err)
	}
}

// reporter is the test as rapid sees it: its FailNow ends a goroutine of the
// suite's own.
type reporter struct {
	rapid.TB
	failed bool
}

func (r *reporter) Failed() bool { return r.failed }
func (r *reporter) Fail()        { r.failed = true; r.TB.Fail() }
func (r *reporter) FailNow()     { r.Fail(); runtime.Goexit() }
func (r *reporter) Errorf(format string, args ...any) {
	r.TB.Helper()
	r.failed = true
	r.TB.Errorf(format, args...)
}

func drawLayout(t *rapid.T, ranks int) layoutCase {
	lc := layoutCase{
		Array: array{
			Seed: rapid.Uint64().Draw(t, "seed"),
			Size: drawSize(t),
			Elem: rapid.SampledFrom([]brick.Element{brick.Float64, brick.Complex128}).Draw(t, "element"),
		},
		Files:   rapid.IntRange(1, 3).Draw(t, "files"),
		Durable: rapid.IntRange(0, 15).Draw(t, "durable") == 0,
		Before:  rapid.Bool().Draw(t, "before"),
	}
	if rapid.Bool().Draw(t, "parts") {
		lc.drawParts(t)
	}
	lc.Writers = drawTiles(t, lc.Array.Size, rapid.IntRange(1, ranks).Draw(t, "writers"), "writers")
	lc.Readers = drawTiles(t, lc.Array.Size, rapid.IntRange(1, ranks).Draw(t, "readers"), "readers")
	// Between one element and everything at once, in not too many rounds.
	limit := func(label string) int64 {
		return max(lc.Array.fileSize()/rapid.SampledFrom([]int64{1, 2, 7, 40}).Draw(t, label), 16) +
			rapid.Int64Range(0, 17).Draw(t, label+" more")
	}
	lc.Staging, lc.Round = limit("staging"), limit("round")
	return lc
}

// drawParts draws where the arrays lie in files: anywhere, and in one file beside each
// other in any order. The files end before, in or behind them.
func (lc *layoutCase) drawParts(t *rapid.T) {
	lc.Shared = rapid.Bool().Draw(t, "shared")
	end := int64(0)
	for range lc.Files {
		offset := rapid.Int64Range(0, 5000).Draw(t, "gap")
		if lc.Shared {
			offset += end
		}
		lc.Parts = append(lc.Parts, offset)
		end = offset + lc.Array.fileSize()
	}
	if lc.Shared {
		lc.Parts = rapid.Permutation(lc.Parts).Draw(t, "order of parts")
	}
	lc.Stands = rapid.Int64Range(0, end+5000).Draw(t, "bytes before")
}

// names are those of the files, one for each array.
func (lc *layoutCase) names() []string {
	names := make([]string, lc.Files)
	for i := range names {
		names[i] = fmt.Sprintf("file %d.bin", i)
		if lc.Shared {
			names[i] = "shared.bin"
		}
	}
	return names
}

// part says where an array lies.
func (lc *layoutCase) part(i int) (within bool, offset int64) {
	if lc.Parts == nil {
		return false, 0
	}
	return true, lc.Parts[i]
}

// contents is what the file of a name must hold in the end.
func (lc *layoutCase) contents(names []string, name string) []byte {
	b := around(lc.Stands)
	for i := range names {
		if names[i] == name {
			b = overlay(b, lc.Parts[i], lc.Array.bytes(i))
		}
	}
	return b
}

// drawSize draws an array of one, two or three dimensions, along any axes.
func drawSize(t *rapid.T) [3]int {
	size := [3]int{1, 1, 1}
	axes := rapid.Permutation([]int{0, 1, 2}).Draw(t, "axes")
	dims := rapid.IntRange(1, 3).Draw(t, "dimensions")
	most := []int{300, 25, 9}[dims-1]
	for _, axis := range axes[:dims] {
		size[axis] = rapid.IntRange(1, most).Draw(t, "extent")
	}
	return size
}

// drawTiles cuts the array into boxes for the given number of ranks, some of them
// empty: as a Cartesian grid, or by one cut after the other and in any order.
func drawTiles(t *rapid.T, size [3]int, ranks int, label string) []grid.Box {
	if rapid.Bool().Draw(t, label+" cartesian") {
		p := [3]int{1, 1, 1}
		for rest := ranks; rest > 1; {
			f := 2
			for rest%f != 0 {
				f++
			}
			p[rapid.IntRange(0, 2).Draw(t, label+" axis")] *= f
			rest /= f
		}
		d, err := grid.Decompose(grid.Domain{Size: size, Spacing: [3]float64{1, 1, 1}}, ranks, grid.ProcessGrid(p[0], p[1], p[2]))
		if err != nil {
			t.Fatal(err)
		}
		boxes := make([]grid.Box, ranks)
		for r := range boxes {
			boxes[r] = d.Box(r)
		}
		return boxes
	}
	boxes := []grid.Box{{Size: size}}
	for len(boxes) < ranks {
		i := rapid.IntRange(0, len(boxes)-1).Draw(t, label+" box")
		axis := rapid.IntRange(0, 2).Draw(t, label+" axis")
		low, high := boxes[i], boxes[i]
		low.Size[axis] = rapid.IntRange(0, boxes[i].Size[axis]).Draw(t, label+" cut")
		high.Low[axis] += low.Size[axis]
		high.Size[axis] -= low.Size[axis]
		boxes[i] = low
		boxes = append(boxes, high)
	}
	return rapid.Permutation(boxes).Draw(t, label+" order")
}

// layout runs one case. The groups are nil on ranks that don't take part.
func (s *suite) layout(lc layoutCase, writers, readers *comm.Comm) error {
	if err := s.clear(s.Dir); err != nil {
		return err
	}
	names := lc.names()
	for _, name := range names {
		before := longer(lc.Array.fileSize())
		if lc.Parts != nil {
			before = around(lc.Stands)
		}
		if lc.Before || lc.Parts != nil {
			if err := s.put(name, before); err != nil {
				return err
			}
		}
	}
	opts := s.options(brick.Staging(lc.Staging), brick.Round(lc.Round))
	if lc.Durable {
		opts = append(opts, brick.Sync(), brick.ReadBack())
	}
	var err error
	if writers != nil {
		err = s.writeLayout(lc, writers, names, opts)
	}
	// Who does not write has to know that the files are there.
	if err := s.c.Agree(s.ctx, err); err != nil {
		return err
	}
	if readers != nil {
		err = s.readLayout(lc, readers, names, opts)
	}
	return err
}

func (s *suite) writeLayout(lc layoutCase, c *comm.Comm, names []string, opts []brick.Option) error {
	box := lc.Writers[c.Rank()]
	plan, err := brick.NewPlan(s.ctx, c, lc.Array.Size, box, lc.Array.Elem, opts...)
	if err != nil {
		return err
	}
	defer plan.Close()
	jobs := make([]brick.WriteJob, len(names))
	sources := make([]*source, len(names))
	for i, name := range names {
		sources[i] = newSource(lc.Array, i, box)
		jobs[i] = brick.WriteJob{Name: name, Path: s.path(name), Source: sources[i]}
		jobs[i].Within, jobs[i].Offset = lc.part(i)
	}
	sums, err := plan.Write(s.ctx, jobs)
	if err != nil {
		return err
	}
	for _, src := range sources {
		err = errors.Join(err, src.complete())
	}
	if lc.Parts != nil {
		err = errors.Join(err, written(lc.Array, names, sums))
		for _, name := range names {
			err = errors.Join(err, s.holds(name, lc.contents(names, name)))
		}
		return err
	}
	err = errors.Join(err, s.compare(lc.Array, names, sums))
	return errors.Join(err, s.sums(c, names, lc.Array.fileSize(), sums))
}

// sums reads the files' sums without any layout.
func (s *suite) sums(c *comm.Comm, names []string, size int64, want []brick.Sum) error {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = s.path(name)
	}
	got, err := brick.Checksums(s.ctx, c, s.FS, paths, size)
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("sums of the whole files are %x, want %x", got, want)
	}
	return err
}

func (s *suite) readLayout(lc layoutCase, c *comm.Comm, names []string, opts []brick.Option) error {
	box := lc.Readers[c.Rank()]
	plan, err := brick.NewPlan(s.ctx, c, lc.Array.Size, box, lc.Array.Elem, opts...)
	if err != nil {
		return err
	}
	defer plan.Close()
	jobs := make([]brick.ReadJob, len(names))
	sinks := make([]*sink, len(names))
	for i, name := range names {
		sinks[i] = newSink(lc.Array, i, box)
		jobs[i] = brick.ReadJob{Name: name, Path: s.path(name), Sink: sinks[i]}
		jobs[i].Within, jobs[i].Offset = lc.part(i)
	}
	crcs, err := plan.Read(s.ctx, jobs)
	if err != nil {
		return err
	}
	for _, k := range sinks {
		err = errors.Join(err, k.complete())
	}
	return errors.Join(err, checksums(lc.Array, names, crcs))
}
