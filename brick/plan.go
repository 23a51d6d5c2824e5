package brick

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"math"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/shm"
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

// Plan is the layout of a global array over the ranks of a communicator: the
// same array size and element everywhere, one box per rank.
type Plan struct {
	c        *ranks
	opt      options
	size     [3]int
	box      grid.Box // the zero box if this rank has no cells
	elem     Element
	drv      driver
	why      string
	largest  int64      // bytes of the largest brick of any rank
	shortest int64      // bytes of the shortest contiguous run of any rank
	pieces   bool       // some rank has more than one run
	workers  int        // goroutines that this rank has cores for
	ownCores bool       // every rank has one
	oneNode  bool       // all ranks are on one
	boxes    []grid.Box // of all ranks

	steps     []stretch // of an exchange, once known
	toldHints bool      // those in force have been logged

	staging  *shm.Memory // made at the first use, like the following
	rows     []byte
	kinds    []shm.Kind // ways to share a window, the best one first
	window   *shm.Window
	slot     int64 // bytes of a slot of the window
	made     made
	sections [][]uint64 // of the last call
	noWindow,
	closed bool
}

// layout is what one rank tells the others when a plan is made.
type layout struct {
	Box      grid.Box
	Node     int       // ranks on this rank's node
	Cores    cores     // that this rank may use
	Array    []setting // must be the same on all ranks
	Settings []setting // likewise
}

type setting struct{ Name, Value string }

// NewPlan makes the plan for arrays of size cells (x, y, z; x fastest) of which
// this rank owns box. It is collective, and the plan uses c for its calls: free
// c after the last of them. All ranks give the same size and element, and the
// same options but for [Logger]; their boxes tile the array exactly, where empty
// boxes are legal. Otherwise all ranks get the same error, with [ErrLayout] or
// [ErrDisagree] in its chain. Nothing is created.
func NewPlan(ctx context.Context, c *comm.Comm, size [3]int, box grid.Box, elem Element, opts ...Option) (*Plan, error) {
	ctx = waiting.Named(ctx, "NewPlan")
	p, err := newPlan(ctx, c, size, box, elem, opts)
	if err != nil {
		return nil, fmt.Errorf("plan bricks: %w", err)
	}
	return p, nil
}

func newPlan(ctx context.Context, c *comm.Comm, size [3]int, box grid.Box, elem Element, opts []Option) (*Plan, error) {
	if c == nil {
		return nil, errors.New("no communicator")
	}
	p := &Plan{c: &ranks{Comm: c}, size: size, box: box, elem: elem}
	err := comm.Protect(func() (err error) {
		if p.opt, err = newOptions(opts); err != nil {
			return err
		}
		if err := checkSize(size, elem); err != nil {
			return err
		}
		return drivable(c, p.opt)
	})
	if err := p.c.Agree(ctx, err); err != nil {
		return nil, err
	}
	ctx = c.AtWork(ctx)
	mine := layout{
		Box:      box,
		Cores:    usableCores(),
		Array:    []setting{{"the size", fmt.Sprint(size)}, {"the element", elem.String()}},
		Settings: p.opt.settings(),
	}
	if _, mine.Node, err = onedir.From(ctx).Place(ctx, c); err != nil {
		return nil, err
	}
	text, _ := json.Marshal(mine) // plain numbers and strings: it can't fail
	all, err := p.c.AllGather(ctx, text)
	if err != nil {
		return nil, err
	}
	// Every rank judges the same gathered list, so every rank comes to the same
	// verdict without another agreement.
	layouts, err := judge(size, all)
	if err != nil {
		return nil, err
	}
	p.shortest = p.FileSize()
	nodes := make([]int, len(layouts))
	masks := make([]cores, len(layouts))
	for r, l := range layouts {
		nodes[r], masks[r] = l.Node, l.Cores
		if !l.Box.Empty() {
			r := newRuns(size, l.Box, elem)
			p.largest = max(p.largest, l.Box.Cells()*r.elem)
			p.shortest = min(p.shortest, r.rowRun*r.elem)
			p.pieces = p.pieces || r.rows*r.planes > 1
		}
		p.boxes = append(p.boxes, l.Box)
	}
	p.oneNode = !slices.ContainsFunc(nodes, func(n int) bool { return n != c.Size() })
	if p.drv, p.why, err = chooseDriver(c, p.opt, p.oneNode); err != nil {
		return nil, err
	}
	p.workers, p.ownCores = shareCores(masks, mine)
	p.kinds = []shm.Kind{shm.Anonymous, shm.Named}
	if c.Handle() == nil {
		p.kinds = []shm.Kind{shm.Process}
	}
	if box.Empty() {
		p.box = grid.Box{} // wherever it lies: MPI wants a start inside the array
	}
	p.opt.log.Debug("brick plan", "driver", p.drv.name(), "why", p.why, "rank", c.Rank(), "ranks", c.Size(),
		"size", size, "element", elem, "box", box.String(), "workers", p.workers)
	return p, nil
}

// judge compares the ranks' layouts and checks that their boxes tile the array.
func judge(size [3]int, all [][]byte) ([]layout, error) {
	layouts := make([]layout, len(all))
	boxes := make([]grid.Box, len(all))
	for r, text := range all {
		if err := json.Unmarshal(text, &layouts[r]); err != nil {
			return nil, fmt.Errorf("layout of rank %d: %w", r, err)
		}
		boxes[r] = layouts[r].Box
	}
	for r, l := range layouts {
		if err := sameSettings(layouts[0].Array, l.Array, r); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLayout, err)
		}
		if err := sameSettings(layouts[0].Settings, l.Settings, r); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrDisagree, err)
		}
	}
	if err := grid.Tile(grid.Box{Size: size}, boxes); err != nil {
		return nil, layoutError(err)
	}
	return layouts, nil
}

func sameSettings(zero, other []setting, rank int) error {
	if slices.Equal(zero, other) {
		return nil
	}
	for i := range min(len(zero), len(other)) {
		if a, b := zero[i], other[i]; a != b {
			return fmt.Errorf("%s is %s on rank 0 and %s on rank %d", a.Name, a.Value, b.Value, rank)
		}
	}
	return fmt.Errorf("rank 0 has %d settings and rank %d has %d", len(zero), rank, len(other))
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
		if n > math.MaxInt32 { // MPI counts the cells of an axis with an int
			return fmt.Errorf("size of axis %c is %d: at most %d", 'x'+rune(axis), n, math.MaxInt32)
		}
		if bytes > math.MaxInt64/int64(n) {
			return fmt.Errorf("size %v of %s does not fit a file", size, elem)
		}
		bytes *= int64(n)
	}
	return nil
}

// Close frees the memory of the plan: this rank's own and its part in what the
// ranks of the node share. The plan can't be used afterwards. It is not collective.
func (p *Plan) Close() {
	err := also(p.staging.Free(), p.closeWindow())
	if err != nil { // of a system that doesn't take its memory back
		p.opt.log.Warn("brick plan: close", "rank", p.c.Rank(), "error", err)
	}
	p.staging, p.rows, p.closed = nil, nil, true
}

// Driver returns the driver that the plan uses, and why it was chosen.
func (p *Plan) Driver() (Driver, string) { return p.drv.name(), p.why }

// Box returns this rank's box, the zero box if it has no cells.
func (p *Plan) Box() grid.Box { return p.box }

// Sections returns the CRC-64/NVME of each section of each array of the last call of
// Write or Read, in the order of the jobs and of z: the same on all ranks. Without the
// option [Sections], and after an error, there are none.
func (p *Plan) Sections() [][]uint64 { return p.sections }

// FileSize returns the bytes of a whole file.
func (p *Plan) FileSize() int64 {
	return int64(p.size[0]) * int64(p.size[1]) * int64(p.size[2]) * int64(p.elem.Size())
}

// stagingLimit is the most memory that a rank packs into.
func (p *Plan) stagingLimit() int64 {
	if p.opt.staging != 0 {
		return p.opt.staging
	}
	return defaultStaging
}

// reserve makes this rank's staging memory, for a call that moves the given number
// of files: page-aligned, made once, reused for every file.
func (p *Plan) reserve(files int) error {
	need := int64(0)
	switch {
	case p.exchanges():
		own, slot, message := p.exchangeMemory()
		need = own + slot + message
	case p.throughWindow(files):
		need = min(max(unitBytes, p.FileSize()), p.slotLimit(p.c.Size())) // one unit, and small files are one
	default:
		workers, chunk := p.cut()
		need = int64(workers) * chunk
	}
	if p.staging != nil && int64(len(p.staging.Bytes)) >= need {
		return nil
	}
	if err := p.staging.Free(); err != nil {
		return err
	}
	var err error
	p.staging, err = shm.Alloc(int(need))
	return err
}

// cut says how many workers a stream has, and the bytes of each one's chunk.
func (p *Plan) cut() (workers int, chunk int64) {
	elem := int64(p.elem.Size())
	own := p.box.Cells() * elem
	limit := min(p.stagingLimit(), 2*maxChunk)
	workers = int(max(1, min(int64(p.workers), limit/minChunk, own/minChunk)))
	if p.drv.name() == MPIIO {
		// Not every library takes calls from several threads.
		workers, limit = 1, min(limit, p.opt.round)
	}
	chunk = min(limit/int64(workers), maxChunk, own)
	if chunk >= pageSize && chunk < own {
		return workers, chunk / pageSize * pageSize
	}
	return workers, chunk / elem * elem
}

// chunks are the workers' parts of the staging memory.
func (p *Plan) chunks() [][]byte {
	workers, chunk := p.cut()
	list := make([][]byte, workers)
	for k := range list {
		at := int64(k) * chunk
		list[k] = p.staging.Bytes[at : at+chunk : at+chunk]
	}
	return list
}
