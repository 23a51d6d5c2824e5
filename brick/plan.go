package brick

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Element is the type of one cell on disk, little-endian.
type Element int

// The elements that a file can hold.
const (
	Float64    Element = iota // 8 bytes
	Complex128                // 16 bytes: real part, imaginary part
)

// Size returns the bytes of one element.
func (e Element) Size() int {
	if e == Complex128 {
		return 16
	}
	return 8
}

func (e Element) String() string {
	switch e {
	case Float64:
		return "float64"
	case Complex128:
		return "complex128"
	}
	return fmt.Sprintf("element(%d)", int(e))
}

// ErrLayout is in the chain of every error that says that the ranks' boxes and
// sizes don't make up one array. The cause is a *[grid.GapError],
// *[grid.OverlapError] or *[grid.OutsideError], or a text that names the rank
// that disagrees.
var ErrLayout = errors.New("the ranks' boxes do not make up the array")

// Plan is the layout of a global array over the ranks of a communicator: the
// same array size and element everywhere, one box per rank.
type Plan struct {
	c       *comm.Comm
	opt     options
	size    [3]int
	box     grid.Box
	elem    Element
	drv     driver
	why     string
	largest int64 // bytes of the largest brick of any rank
	staging []byte
	closed  bool
}

// layout is what one rank tells the others when a plan is made.
type layout struct {
	Size    [3]int
	Box     grid.Box
	Element Element
	Driver  Driver
	Staging int64
	Round   int64
	Sync    bool
	Check   bool
}

// NewPlan makes the plan for arrays of size cells (x, y, z; x fastest) of which
// this rank owns box. It is collective. All ranks give the same size, element
// and options, and their boxes tile the array exactly; empty boxes are legal.
// Otherwise all ranks get the same error, with [ErrLayout] in its chain.
func NewPlan(ctx context.Context, c *comm.Comm, size [3]int, box grid.Box, elem Element, opts ...Option) (*Plan, error) {
	opt, err := newOptions(opts)
	if err == nil {
		err = checkSize(size, elem)
	}
	mine := layout{size, box, elem, opt.driver, opt.staging, opt.round, opt.sync, opt.readBack}
	text, jerr := json.Marshal(mine)
	if err := c.Agree(ctx, errors.Join(err, jerr)); err != nil {
		return nil, fmt.Errorf("plan bricks: %w", err)
	}
	all, err := c.AllGather(ctx, text)
	if err != nil {
		return nil, fmt.Errorf("plan bricks: %w", err)
	}
	// Every rank judges the same gathered list, so every rank comes to the same
	// verdict without another agreement.
	boxes := make([]grid.Box, len(all))
	var largest int64
	for r, b := range all {
		var l layout
		if err := json.Unmarshal(b, &l); err != nil {
			return nil, fmt.Errorf("plan bricks: layout of rank %d: %w", r, err)
		}
		var first layout
		if err := json.Unmarshal(all[0], &first); err != nil {
			return nil, fmt.Errorf("plan bricks: layout of rank 0: %w", err)
		}
		boxes[r] = l.Box
		largest = max(largest, l.Box.Cells()*int64(elem.Size()))
		l.Box, first.Box = grid.Box{}, grid.Box{}
		if l != first {
			return nil, fmt.Errorf("plan bricks: %w: rank 0 has %s, rank %d has %s", ErrLayout, first, r, l)
		}
	}
	if err := grid.Tile(grid.Box{Size: size}, boxes); err != nil {
		return nil, fmt.Errorf("plan bricks: %w: %w", ErrLayout, err)
	}
	p := &Plan{c: c, opt: opt, size: size, box: box, elem: elem, largest: largest}
	p.drv, p.why, err = chooseDriver(c, opt)
	if err := c.Agree(ctx, err); err != nil {
		return nil, fmt.Errorf("plan bricks: %w", err)
	}
	opt.log.Debug("brick driver", "driver", p.drv.name(), "why", p.why, "rank", c.Rank(), "ranks", c.Size())
	return p, nil
}

func (l layout) String() string {
	return fmt.Sprintf("size %v of %s (driver %s, staging %d, round %d, sync %t, read back %t)",
		l.Size, l.Element, l.Driver, l.Staging, l.Round, l.Sync, l.Check)
}

func checkSize(size [3]int, elem Element) error {
	if elem != Float64 && elem != Complex128 {
		return fmt.Errorf("%s is not an element of files", elem)
	}
	bytes := int64(elem.Size())
	for axis, n := range size {
		if n <= 0 {
			return fmt.Errorf("size of axis %c is %d: must be positive", 'x'+rune(axis), n)
		}
		if n > math.MaxInt32 {
			return fmt.Errorf("size of axis %c is %d: at most %d", 'x'+rune(axis), n, math.MaxInt32)
		}
		if bytes > math.MaxInt64/int64(n) {
			return fmt.Errorf("size %v of %s does not fit a file", size, elem)
		}
		bytes *= int64(n)
	}
	return nil
}

// Close frees the staging memory. The plan can't be used afterwards. It is not
// collective.
func (p *Plan) Close() {
	p.staging = nil
	p.closed = true
}

// Driver returns the driver that the plan uses, and why it was chosen.
func (p *Plan) Driver() (Driver, string) { return p.drv.name(), p.why }

// Box returns this rank's box.
func (p *Plan) Box() grid.Box { return p.box }

// FileSize returns the bytes of a whole file.
func (p *Plan) FileSize() int64 {
	return int64(p.size[0]) * int64(p.size[1]) * int64(p.size[2]) * int64(p.elem.Size())
}

// stage returns the plan's staging memory: page-aligned, made once, reused for
// every file. Its length is a multiple of the element size.
func (p *Plan) stage() []byte {
	if p.staging == nil {
		n := max(min(p.opt.staging, p.opt.round, p.box.Cells()*int64(p.elem.Size())), int64(p.elem.Size()))
		n -= n % int64(p.elem.Size())
		p.staging = pageAligned(int(n))
	}
	return p.staging
}

// rounds returns the number of collective rounds that a file takes: the same
// number on every rank, enough for the largest brick.
func (p *Plan) rounds() int64 {
	per := min(p.opt.staging, p.opt.round)
	per = max(per-per%int64(p.elem.Size()), int64(p.elem.Size()))
	return max((p.largest+per-1)/per, 1)
}

// WriteJob is one file to write. Name says what it is in errors (`field "psi"`),
// Path is the same on all ranks, Source yields this rank's cells.
type WriteJob struct {
	Name, Path string
	Source     pack.Source
}

// ReadJob is one file to read. Sink receives this rank's cells, packed, from
// cell first of its box on; the slice is only valid during the call.
type ReadJob struct {
	Name, Path string
	Sink       func(src []byte, first int64) error
}

// SizeError says that a file has not the size of the array.
type SizeError struct {
	Path      string
	Got, Want int64
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s has %d bytes: want %d", e.Path, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrSize) hold, on every rank.
func (e *SizeError) Is(target error) bool { return target == ErrSize }

var (
	// ErrSize is in the chain of errors about a file of the wrong size.
	ErrSize = errors.New("wrong file size")
	// ErrReadBack is in the chain of the error that says that a file doesn't
	// hold what was written to it.
	ErrReadBack = errors.New("what was read back is not what was written")
)

func init() {
	comm.Register("brick.ErrSize", ErrSize)
	comm.Register("brick.ErrReadBack", ErrReadBack)
	comm.Register("brick.ErrLayout", ErrLayout)
}

// Write writes the files of all jobs, creating or truncating them, and returns
// the CRC-64/NVME of each. It is collective; all ranks give the same names and
// paths in the same order.
//
// Rank 0 creates every file and allocates its space before any rank writes, so
// a full disk is found while nothing is half done. With the [Sync] option, on
// return the data of each file is durable (its directory entry isn't: that is
// the caller's).
func (p *Plan) Write(ctx context.Context, jobs []WriteJob) ([]uint64, error) {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = job{j.Name, j.Path}
	}
	var err error
	for _, j := range jobs {
		if j.Source == nil {
			err = fmt.Errorf("%s has no source", j.Name)
		}
	}
	if err := p.begin(ctx, "write", ids, err); err != nil {
		return nil, err
	}
	if p.c.Rank() == 0 {
		err = p.create(ids)
	}
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	sums := p.checksums(len(jobs))
	err = p.drv.write(ctx, p, jobs, sums)
	if errors.Is(err, comm.ErrDead) {
		return nil, err
	}
	crcs, err := p.finish(ctx, sums, err)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(ids))
	for i, j := range ids {
		paths[i] = j.Path
	}
	if p.opt.sync {
		if err := Durable(ctx, p.c, p.opt.fs, paths); err != nil {
			return nil, fmt.Errorf("sync: %w", err)
		}
	}
	again, err := p.mustReadBack(ctx, paths)
	if err != nil {
		return nil, err
	}
	if again {
		if err := p.readBack(ctx, ids, crcs); err != nil {
			return nil, err
		}
	}
	return crcs, nil
}

// Read reads this rank's box of the files of all jobs and returns the
// CRC-64/NVME of each whole file, which the caller compares. It is collective;
// all ranks give the same names and paths in the same order. The sizes of all
// files are checked before anything is read.
func (p *Plan) Read(ctx context.Context, jobs []ReadJob) ([]uint64, error) {
	ids := make([]job, len(jobs))
	for i, j := range jobs {
		ids[i] = job{j.Name, j.Path}
	}
	var err error
	for _, j := range jobs {
		if j.Sink == nil {
			err = fmt.Errorf("%s has no sink", j.Name)
		}
	}
	if err := p.begin(ctx, "read", ids, err); err != nil {
		return nil, err
	}
	if p.c.Rank() == 0 {
		err = p.checkSizes(ids)
	}
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	sums := p.checksums(len(jobs))
	err = p.drv.read(ctx, p, jobs, sums)
	if errors.Is(err, comm.ErrDead) {
		return nil, err
	}
	return p.finish(ctx, sums, err)
}

// job is what the ranks must agree on before they touch a file.
type job struct{ Name, Path string }

func (j job) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", op, j.Name, err)
}

// begin is the agreement that every call starts with: the ranks all got here,
// without an error, with the same jobs.
func (p *Plan) begin(ctx context.Context, op string, jobs []job, err error) error {
	if p.closed {
		err = errors.Join(errors.New("the plan is closed"), err)
	}
	if err := p.c.Agree(ctx, err); err != nil {
		return fmt.Errorf("%s bricks: %w", op, err)
	}
	text, err := json.Marshal(jobs)
	if err != nil {
		return fmt.Errorf("%s bricks: %w", op, err)
	}
	all, err := p.c.AllGather(ctx, text)
	if err != nil {
		return fmt.Errorf("%s bricks: %w", op, err)
	}
	for r, b := range all {
		if !bytes.Equal(b, all[0]) {
			return fmt.Errorf("%s bricks: the ranks disagree about the files: rank 0 has %s, rank %d has %s", op, all[0], r, b)
		}
	}
	return nil
}

func (p *Plan) create(jobs []job) error {
	for _, j := range jobs {
		f, err := p.opt.fs.OpenFile(j.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
		if err != nil {
			return j.fail("write", err)
		}
		if err := errors.Join(f.Allocate(p.FileSize()), f.Close()); err != nil {
			return j.fail("write", err)
		}
	}
	return nil
}

func (p *Plan) checkSizes(jobs []job) error {
	for _, j := range jobs {
		info, err := p.opt.fs.Stat(j.Path)
		if err != nil {
			return j.fail("read", err)
		}
		if !info.Mode().IsRegular() {
			return j.fail("read", fmt.Errorf("%s is not a regular file", j.Path))
		}
		if info.Size() != p.FileSize() {
			return j.fail("read", &SizeError{j.Path, info.Size(), p.FileSize()})
		}
	}
	return nil
}

func (p *Plan) checksums(n int) []*pack.Checksum {
	sums := make([]*pack.Checksum, n)
	for i := range sums {
		sums[i] = pack.NewChecksum(p.FileSize())
	}
	return sums
}

// finish agrees on the outcome and combines the ranks' parts of the checksums.
func (p *Plan) finish(ctx context.Context, sums []*pack.Checksum, err error) ([]uint64, error) {
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	if len(sums) == 0 {
		return nil, nil
	}
	parts := make([]int64, len(sums))
	for i, s := range sums {
		parts[i] = int64(s.Part())
	}
	if err := p.c.AllReduceInt64(ctx, comm.BitXor, parts); err != nil {
		return nil, err
	}
	crcs := make([]uint64, len(sums))
	for i, part := range parts {
		crcs[i] = pack.Finish(uint64(part), p.FileSize())
	}
	return crcs, nil
}
