package field

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/pack"
)

// forgotten is after how many uses of the ring a reader counts as gone that
// hasn't come back for its cells.
const forgotten = 1 << 12

const pageSize = 4096

// slotBytes is the size of a chunk where no field asks for one.
var slotBytes int64 = DefaultRingChunk

// ringSize is what one field asks of its ring, or what all of them do. 0 is no wish.
type ringSize struct {
	chunk int64
	slots int
}

func (a ringSize) max(b ringSize) ringSize {
	return ringSize{max(a.chunk, b.chunk), max(a.slots, b.slots)}
}

// or replaces what is no wish.
func (a ringSize) or(b ringSize) ringSize {
	return ringSize{cmp.Or(a.chunk, b.chunk), cmp.Or(a.slots, b.slots)}
}

// ring is what the fields of one space have in common: a few chunks of memory on
// the device and of pinned memory, through which all of their cells go on the direct
// path. It is made at the first use and freed with the last field.
//
// Cells are packed and unpacked on the stream of their field, in the order of what
// the solver does there, and copied on the ring's, so that one chunk is packed while
// another one is copied.
type ring struct {
	space device.Space

	// What follows is protected by the lock of rings.

	fields  int
	largest int64    // bytes of the owned cells of the largest field, whole pages
	asked   ringSize // the largest that any field asked for

	mu     sync.Mutex
	turned sync.Cond // a slot isn't in use any more
	size   int64     // of a slot
	slots  []*slot   // nil until they are needed
	clock  uint64
	lent   int  // slots that are in use by nobody of this package
	last   bool // the last field has gone
	lost   bool // somebody has been told that the device is lost
	warned map[string]bool
	unsaid []func() // warnings for [ring.say]

	memory  device.Memory     // behind the slots; nil on the strided path
	pinned  device.HostMemory // nil if it is pageable
	stream  device.Stream     // for copies; nil on the strided path
	kernels map[device.BoxKernel]device.Kernel
}

// slot is one chunk.
type slot struct {
	host []byte
	raw  []byte     // float32 cells, where the host converts
	ptr  device.Ptr // 0 on the strided path
	// moved is between the two halves of a transfer, done behind it.
	moved, done device.Event

	// What follows is protected by the ring's lock.

	owner *reader    // whose cells first to end are in it, or will be when done is passed
	users int        // calls that have it in use, and loans
	loans int        // the latter alone
	used  uint64     // the ring's clock then
	of    *residence // whose stream the events may be of; nil: of none that matters

	// What follows belongs to who has it in use.

	busy       bool // done may not be passed
	widen      bool // once it is, raw has to go to host
	first, end int64
}

var rings = struct {
	sync.Mutex
	of map[device.Space]*ring
}{of: map[device.Space]*ring{}}

// joinRing is for a field that is made on a space, and has that many bytes of owned
// cells. leave ends that.
func joinRing(space device.Space, bytes int64, asked ringSize) *ring {
	rings.Lock()
	defer rings.Unlock()
	g := rings.of[space]
	if g == nil {
		g = &ring{space: space, warned: map[string]bool{}}
		g.turned.L = &g.mu
		rings.of[space] = g
	}
	g.fields++
	g.largest = max(g.largest, (bytes+pageSize-1)/pageSize*pageSize)
	g.asked = g.asked.max(asked)
	return g
}

// wanted is the size that the fields have use for: a chunk isn't larger than all of
// them.
func (g *ring) wanted() ringSize {
	rings.Lock()
	defer rings.Unlock()
	w := g.asked.or(ringSize{slotBytes, DefaultRingChunks})
	w.chunk = min(w.chunk, g.largest)
	return w
}

// leave frees the ring with its last field. Cells that are still lent keep it until
// they are returned.
func (g *ring) leave() error {
	rings.Lock()
	g.fields--
	last := g.fields == 0
	if last {
		delete(rings.of, g.space)
	}
	rings.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last = last; !last || g.lent > 0 {
		return nil
	}
	return g.free()
}

// ready makes the ring's memory unless it is there, and anew if a field has come that
// has use for more, while nobody uses it. The ring is locked.
func (g *ring) ready(log *slog.Logger) error {
	want := g.wanted()
	if g.slots != nil {
		have := ringSize{g.size, len(g.slots)}
		if have.max(want) == have || !g.idle() {
			return nil
		}
		if err := g.free(); err != nil {
			return err
		}
	}
	g.size = want.chunk
	if err := g.allocate(log, want.slots); err != nil {
		g.lost = g.lost || errors.Is(err, device.ErrLost)
		return errors.Join(err, g.free())
	}
	return nil
}

// idle reports whether all slots are nobody's. The ring is locked.
func (g *ring) idle() bool {
	for _, s := range g.slots {
		if s.owner != nil || s.users > 0 || s.await() != nil {
			return false
		}
	}
	return true
}

func (g *ring) allocate(log *slog.Logger, slots int) error {
	var err error
	if g.kernels, err = boxKernels(g.space); err == nil {
		g.memory, err = g.space.Allocate(int64(slots) * g.size)
	}
	stride := g.size
	if err != nil {
		if isLost(err) {
			return err
		}
		g.warn(log, "cells are copied row by row, which is slow: the device can't pack them", err)
		g.kernels, g.memory = nil, nil
		stride += g.size / 2
	} else if g.stream, err = g.space.NewStream(); err != nil {
		return err
	}
	host, pinned, err := g.hostMemory(log, int64(slots)*stride)
	if err != nil {
		return err
	}
	g.pinned = pinned
	for i := range int64(slots) {
		host := host[i*stride : (i+1)*stride]
		s := &slot{host: host[:g.size:g.size], raw: host[g.size:]}
		g.slots = append(g.slots, s)
		if s.done, err = g.space.NewEvent(); err == nil && g.memory != nil {
			s.ptr = g.memory.Ptr().Add(i * g.size)
			s.moved, err = g.space.NewEvent()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// boxKernels are those of a space that has them.
func boxKernels(space device.Space) (map[device.BoxKernel]device.Kernel, error) {
	box, ok := space.(device.BoxKernels)
	if !ok {
		return nil, fmt.Errorf("%s has no kernels for that: %w", space.Name(), device.ErrUnsupported)
	}
	module, err := box.BoxModule()
	if err != nil {
		return nil, err
	}
	kernels := map[device.BoxKernel]device.Kernel{}
	for _, name := range []device.BoxKernel{device.PackFloat64, device.PackFloat32, device.UnpackFloat64, device.UnpackFloat32} {
		if kernels[name], err = module.Kernel(string(name)); err != nil {
			return nil, err
		}
	}
	return kernels, nil
}

// hostMemory returns pinned memory, or pageable memory if there is none.
func (g *ring) hostMemory(log *slog.Logger, bytes int64) ([]byte, device.HostMemory, error) {
	pinned, err := g.space.AllocateHost(bytes)
	if err == nil {
		return pinned.Bytes(), pinned, nil
	}
	if isLost(err) {
		return nil, nil, err
	}
	g.warn(log, "host memory can't be pinned: copies are slow", err)
	return pack.Bytes(make([]complex128, (bytes+15)/16))[:bytes], nil, nil
}

// warn leaves a warning for say, once for each text. The ring is locked.
func (g *ring) warn(log *slog.Logger, text string, err error) {
	if !g.warned[text] {
		g.warned[text] = true
		g.unsaid = append(g.unsaid, func() { log.Warn(text, "space", g.space.Name(), "error", err) })
	}
}

// say logs what was left for it. Loggers are the solver's, and may use fields and change the
// current context: the caller holds neither a lock nor a context.
func (g *ring) say() {
	g.mu.Lock()
	unsaid := g.unsaid
	g.unsaid = nil
	g.mu.Unlock()
	for _, log := range unsaid {
		log()
	}
}

// free gives the ring's memory back. The ring is locked and nobody uses it.
func (g *ring) free() error {
	var errs []error
	if g.stream != nil {
		errs = append(errs, g.unlessLost(g.stream.Synchronize()))
	}
	for _, s := range g.slots {
		for _, e := range []device.Event{s.moved, s.done} {
			if e != nil {
				errs = append(errs, e.Close())
			}
		}
	}
	if g.stream != nil {
		errs = append(errs, g.stream.Close()) // after the events: none is of a stream that is gone
	}
	if g.pinned != nil {
		errs = append(errs, g.pinned.Free())
	}
	if g.memory != nil {
		errs = append(errs, g.memory.Free())
	}
	g.slots, g.stream, g.pinned, g.memory, g.kernels = nil, nil, nil, nil, nil
	g.turned.Broadcast()
	return errors.Join(errs...)
}

// isLost tells an error of the whole space from one of what was asked for.
func isLost(err error) bool {
	return errors.Is(err, device.ErrLost) || errors.Is(err, device.ErrClosed)
}

// note remembers that the caller is told that the device is lost.
func (g *ring) note(err error) error {
	if errors.Is(err, device.ErrLost) {
		g.mu.Lock()
		g.lost = true
		g.mu.Unlock()
	}
	return err
}

// unlessLost leaves out that the device is lost where somebody knows it: giving
// things back works all the same. The ring is locked.
func (g *ring) unlessLost(err error) error {
	if g.lost && errors.Is(err, device.ErrLost) {
		return nil
	}
	return err
}

// take puts a slot to use. With keep it is one that a reader may keep for a later
// call, if there are enough: kept says so. Without must, no slot is an answer too.
func (g *ring) take(log *slog.Logger, rd *reader, keep, must bool) (s *slot, kept bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	if rd != nil {
		rd.used = g.clock
	}
	for {
		if err := g.ready(log); err != nil {
			return nil, false, err
		}
		free, gone, owned := (*slot)(nil), (*slot)(nil), 0
		for _, t := range g.slots {
			switch {
			case t.owner != nil:
				owned++
				if t.users == 0 && g.clock-t.owner.used > forgotten {
					gone = t
				}
			case t.users == 0 && (free == nil || t.used < free.used):
				free = t
			}
		}
		if gone != nil {
			free = gone
			free.owner = nil
			owned--
		}
		kept = keep && owned < len(g.slots)-1 // one at least is left, so that everybody comes to a slot
		if free != nil && (kept || must) {
			if free.users = 1; kept {
				free.owner = rd
			}
			return free, kept, nil
		}
		if !must {
			return nil, false, nil
		}
		g.turned.Wait()
	}
}

// ahead is how many chunks one reader has packed before they are wanted: half of them,
// for there may be other readers. The caller has a slot in use, or holds the ring's lock.
func (g *ring) ahead() int { return len(g.slots) / 2 }

// leaveSlot ends a use of a slot. Its owner gives it up with it, or keeps it.
func (g *ring) leaveSlot(s *slot, keep bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.clock++
	s.users--
	s.used = g.clock
	if !keep {
		s.owner = nil
	}
	g.turned.Broadcast()
}

// lend makes a slot that is in use one that is lent.
func (g *ring) lend(s *slot, keep bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lent++
	s.loans++
	if !keep {
		s.owner = nil
	}
}

// giveBack is for what was lent. With it the ring may come to its end.
func (g *ring) giveBack(cells []byte, log *slog.Logger) {
	defer g.say()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		from := uintptr(unsafe.Pointer(unsafe.SliceData(cells))) - uintptr(unsafe.Pointer(unsafe.SliceData(s.host)))
		if from < uintptr(len(s.host)) {
			s.users--
			s.loans--
			g.lent--
		}
	}
	g.turned.Broadcast()
	if g.last && g.lent == 0 && g.slots != nil {
		if err := g.free(); err != nil {
			g.warn(log, "memory of a freed field", err)
		}
	}
}

// begin notes that a field is going to record a slot's events, which nobody waits for. The
// slot is in use.
func (g *ring) begin(s *slot, r *residence) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.of != r {
		s.of = r
		g.turned.Broadcast()
	}
}

// part takes a field's readers their slots away, and puts the slots to use whose events
// may be of its stream. Another field that has one in use is waiting for such an event, or
// is done with it; a borrower has nothing to do with them.
func (g *ring) part(r *residence) (left []*slot, lost bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range g.slots {
		if s.owner != nil && s.owner.r == r {
			s.owner = nil
		}
	}
	g.turned.Broadcast()
	for slices.ContainsFunc(g.slots, func(s *slot) bool { return s.of == r && s.users > s.loans }) {
		g.turned.Wait()
	}
	for _, s := range g.slots {
		if s.of == r {
			s.users++
			left = append(left, s)
		}
	}
	return left, g.lost
}

// parted leaves the slots of a field whose stream may go now.
func (g *ring) parted(left []*slot) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, s := range left {
		s.of = nil
		s.users--
	}
	g.turned.Broadcast()
}

// await waits until a slot's transfer is over. Its users call it.
func (s *slot) await() error {
	if !s.busy {
		return nil
	}
	if err := s.done.Synchronize(); err != nil {
		return err
	}
	s.busy = false
	if s.widen {
		s.widen = false
		raw, err := pack.View[float32](s.raw)
		if err != nil {
			return err
		}
		n := int(s.end - s.first)
		return pack.WidenBytes(s.host[:8*n], raw[:n], flat(n), 0)
	}
	return nil
}

// flat is the layout of n cells without gaps.
func flat(n int) pack.Layout { return pack.Layout{Size: [3]int{n, 1, 1}} }
