package publish

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// mostPlans is how many plans are kept at the same time: that of the bundles, and
// that of dumps of complex fields.
const mostPlans = 2

// Plans keeps, from one call to the next, what calls with the same layout have in
// common: the agreed layout, staging memory and the window that the ranks of a node
// share. [Reuse] hands it to [SaveBundle], [LoadBundle], [NewDumps] or [NewService];
// without it each call makes all of that anew and frees it at its end, and a
// [Service] or [Dumps] keeps its own until Close.
//
// That it must be asked for is on purpose: the memory is the caller's to give, between
// checkpoints too, and where it ends is where Close is called. It is bounded: at most
// two plans are kept, each with the memory that package brick says. A third one
// takes the place of the one that was not used for longest. A plan serves again when
// communicator, size and box of the fields and options are those that it was made
// with, on all ranks; otherwise, and after any error, another one is made.
//
// Each rank has its own Plans and hands it to the same calls as the others. It may
// be used from several goroutines.
type Plans struct {
	mu     sync.Mutex
	kept   []*keptPlan // the one used last comes last
	closed bool
}

// NewPlans returns a Plans that keeps nothing yet.
func NewPlans() *Plans { return &Plans{} }

// Close frees all memory that is kept. Calls that are given a closed Plans work as
// without one. It is not collective, and may be called several times.
func (p *Plans) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		k.plan.Close()
	}
	p.kept, p.closed = nil, true
}

// Reuse makes a call take its plan from p if one fits, and leave it there.
func Reuse(p *Plans) Option {
	return func(o *options) {
		if p == nil {
			o.err = errors.New("there are no plans to reuse")
			return
		}
		o.plans = p
	}
}

// planKey is what a plan was made with, as one rank sees it.
type planKey struct {
	c        *comm.Comm
	size     [3]int
	box      grid.Box
	elem     brick.Element
	fs       vfs.FS
	log      *slog.Logger
	settings string
}

type keptPlan struct {
	planKey
	number int64 // of all plans that the ranks of c made
	plan   *brick.Plan
}

// planNumbers is the highest number of a plan in this process.
var planNumbers atomic.Int64

// take returns the kept plan of a key, which is the caller's from now on; nil if
// there is none.
func (p *Plans) take(key planKey) *keptPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, k := range p.kept {
		if k.planKey == key {
			p.kept = slices.Delete(p.kept, i, i+1)
			return k
		}
	}
	return nil
}

// put keeps a plan, or closes it.
func (p *Plans) put(k *keptPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		k.plan.Close()
		return
	}
	if p.kept = append(p.kept, k); len(p.kept) > mostPlans {
		p.kept[0].plan.Close()
		p.kept = slices.Delete(p.kept, 0, 1)
	}
}

// planning is how one call comes to its plan. The ranks tell each other in the first
// agreement of the call whether they all keep the same one.
type planning struct {
	plans *Plans // nil: none are kept
	opts  []brick.Option
	key   planKey
	held  *keptPlan
	// What travels: the number of the plan that this rank keeps, 0 if none, and its
	// negative; and the highest number so far.
	number, negative, highest int64
}

// planning looks for a kept plan of fields of the given layout, which may be
// anything that isn't valid.
func (o *options) planning(c *comm.Comm, size [3]int, box grid.Box, elem brick.Element) *planning {
	n := &planning{
		plans:   o.plans,
		opts:    o.bricks(),
		key:     planKey{c: c, size: size, box: box, elem: elem, fs: o.fs, log: o.log},
		highest: planNumbers.Load(),
	}
	if n.plans == nil {
		return n
	}
	var err error
	if n.key.settings, err = brick.Settings(n.opts...); err != nil {
		n.plans = nil // making one will say so
		return n
	}
	if n.held = n.plans.take(n.key); n.held != nil {
		n.number, n.negative = n.held.number, -n.held.number
	}
	return n
}

// maxima travel with the call's first agreement.
func (n *planning) maxima() []*int64 { return []*int64{&n.number, &n.negative, &n.highest} }

// plan returns the plan of the call, for which done is called at its end. It is
// collective, after the agreement.
func (n *planning) plan(ctx context.Context) (*brick.Plan, error) {
	if n.number > 0 && n.number == -n.negative {
		return n.held.plan, nil
	}
	n.drop()
	plan, err := brick.NewPlan(ctx, n.key.c, n.key.size, n.key.box, n.key.elem, n.opts...)
	if err != nil {
		return nil, err
	}
	// No rank has seen a plan of this number on this communicator.
	number := n.highest + 1
	for {
		old := planNumbers.Load()
		if old >= number || planNumbers.CompareAndSwap(old, number) {
			break
		}
	}
	n.held = &keptPlan{n.key, number, plan}
	return plan, nil
}

// done ends the use of the plan. After an error nobody uses it again.
func (n *planning) done(err error) {
	if err == nil && n.plans != nil && n.held != nil {
		n.plans.put(n.held)
		n.held = nil
	}
	n.drop()
}

func (n *planning) drop() {
	if n.held != nil {
		n.held.plan.Close()
		n.held = nil
	}
}
