package comm

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// A Comm is a communicator: a group of ranks of which this process, or this
// goroutine, is one.
type Comm struct {
	link link
	rank int
	size int
	settings
	freed bool
	node  place // once known
	calls atomic.Int64
}

// place is a rank's place among those of its node; the size is 0 while unknown.
type place struct{ rank, size int }

// link is what moves data between the ranks: MPI, or memory of one process. The
// calls are named in error texts. Each of them waits at most for limit and
// then returns an error that wraps ErrDead, now and on every later call.
type link interface {
	reduceInt64(k call, kind Op, v []int64, limit time.Duration) error
	reduceFloat64(k call, kind Op, v []float64, limit time.Duration) error
	broadcast(k call, root int, data []byte, limit time.Duration) ([]byte, error)
	gather(k call, data []byte, limit time.Duration) ([][]byte, error)
	sendRecv(k call, to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error
	split(k call, color, key int, limit time.Duration) (l link, rank, size int, err error)
	splitNode(k call, limit time.Duration) (l link, rank, size int, err error)
	free() error
	abort(code int)
	handle() *mpi.Comm
}

// An Option changes how a communicator is made.
type Option func(*settings) error

// settings are the limits of waits.
type settings struct {
	watch time.Duration // for ranks that don't come
	work  time.Duration // for ranks that have come and are at work
	hang  time.Duration // for the library's calls on files; 0 is none
}

var defaults = settings{watch: defaultWatch, work: waiting.None}

func apply(opts []Option) (settings, error) {
	s := defaults
	for _, opt := range opts {
		if err := opt(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// An Op combines the ranks' numbers in a reduction.
type Op int

// The reductions. BitXor and BitOr are for integers only.
const (
	Sum Op = iota
	Min
	Max
	BitXor
	BitOr
)

var opNames = [...]string{"sum", "min", "max", "bitxor", "bitor"}

// String gives the operation's name.
func (o Op) String() string {
	if o < 0 || int(o) >= len(opNames) {
		return fmt.Sprintf("op %d", int(o))
	}
	return opNames[o]
}

// Rank is this rank's number, from 0.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Collectives is the number of collective calls that this rank has made on the
// communicator: what a protocol on top of it costs. Node counts when it
// communicates, and what an agreement does about an error doesn't.
func (c *Comm) Collectives() int { return int(c.calls.Load()) }

// Handle is the MPI communicator underneath, for this module's own packages; nil
// for Self and Run.
func (c *Comm) Handle() *mpi.Comm {
	if c.freed {
		return nil
	}
	return c.link.handle()
}

// Fortran is the communicator's Fortran handle, and whether it has one: Self and
// Run have none. The handle is valid until Free.
func (c *Comm) Fortran() (int, bool) {
	h := c.Handle()
	if h == nil {
		return 0, false
	}
	return h.Fortran(), true
}

// Free releases the communicator. Collective. Free of a dead communicator
// releases nothing and returns nil: the pending wait still uses it.
func (c *Comm) Free() error {
	if c.freed {
		return nil
	}
	c.freed = true
	if err := c.link.free(); err != nil {
		return fmt.Errorf("free communicator: %w", err)
	}
	return nil
}

// Abort ends the whole job at once with the exit status code, or 1 if code is
// 0. It does not return.
func (c *Comm) Abort(code int) {
	if code == 0 {
		code = 1
	}
	c.link.abort(code)
}

// Split makes a communicator of the ranks with the same color, ordered by key
// and then by rank. A rank with a negative color joins none and gets nil.
// Collective.
func (c *Comm) Split(color, key int) (*Comm, error) {
	if c.freed {
		return nil, fmt.Errorf("split: %w", ErrFreed)
	}
	c.calls.Add(1)
	l, rank, size, err := c.link.split(call{name: "Split"}, color, key, c.watch)
	return c.child("split", l, rank, size, err)
}

// SplitNode makes a communicator of the ranks that share this rank's memory,
// that is, run on the same node, in the order of their ranks. Collective.
func (c *Comm) SplitNode() (*Comm, error) {
	if c.freed {
		return nil, fmt.Errorf("split by node: %w", ErrFreed)
	}
	return c.splitNode(context.Background())
}

func (c *Comm) splitNode(ctx context.Context) (*Comm, error) {
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	l, rank, size, err := c.link.splitNode(called(ctx, "SplitNode"), c.WaitLimit(ctx))
	return c.child("split by node", l, rank, size, err)
}

// Node gives this rank's place among the ranks of its node, in the order of their
// ranks: its number there, from 0, and how many they are. It is collective at the
// first call, and until one has succeeded; then it returns what it knows. The
// error is the same on all ranks, as that of Agree.
func (c *Comm) Node(ctx context.Context) (rank, size int, err error) {
	if c.freed {
		return 0, 0, fmt.Errorf("place on the node: %w", ErrFreed)
	}
	if c.node.size > 0 {
		return c.node.rank, c.node.size, nil
	}
	node, err := c.splitNode(ctx)
	// A cancelled context must not keep the ranks from freeing what they split.
	if err := c.Agree(context.WithoutCancel(ctx), err); err != nil {
		return 0, 0, fmt.Errorf("place on the node: %w", err)
	}
	if err := c.Agree(ctx, node.Free()); err != nil {
		return 0, 0, fmt.Errorf("place on the node: %w", err)
	}
	c.node = place{node.rank, node.size}
	return node.rank, node.size, nil
}

func (c *Comm) child(what string, l link, rank, size int, err error) (*Comm, error) {
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if l == nil {
		return nil, nil
	}
	if m := l.handle(); m != nil {
		m.SetHangLimit(c.hang)
	}
	return &Comm{link: l, rank: rank, size: size, settings: c.settings}, nil
}

// Agree returns nil on every rank if err is nil and ctx is live on every rank.
// Otherwise it returns the same *RankError on every rank, that of the lowest
// failing rank. Collective; one small reduction when all is well.
//
// An err that already is a RankError of this communicator keeps its rank: what
// was agreed on once may be wrapped and agreed on again.
//
// Only when the ranks cannot be reached does it return another error, which
// wraps ErrDead and may differ between ranks.
func (c *Comm) Agree(ctx context.Context, err error) error { return c.agree("Agree", ctx, err) }

// Meet waits until all ranks have come. Collective. A context that is cancelled
// on any rank is an error on all of them, as in Agree.
func (c *Comm) Meet(ctx context.Context) error { return c.agree("Meet", ctx, nil) }

// AgreeMax is Agree and, if all is well, an element-wise maximum over the ranks'
// v, in place, for the price of one of them. After an error v has undefined
// content. All ranks pass the same length. Collective.
func (c *Comm) AgreeMax(ctx context.Context, err error, v []int64) error {
	message := make([]int64, 1+len(v))
	copy(message[1:], v)
	if err := c.agreeOn("AgreeMax", ctx, err, message); err != nil {
		return err
	}
	copy(v, message[1:])
	return nil
}

func (c *Comm) agree(op string, ctx context.Context, err error) error {
	return c.agreeOn(op, ctx, err, make([]int64, 1))
}

// agreeOn reduces the message, whose first element it fills in: how far this rank
// is from the end of the ranks if it failed, so that the lowest one wins.
func (c *Comm) agreeOn(op string, ctx context.Context, err error, message []int64) error {
	if c.freed {
		return errors.Join(err, fmt.Errorf("agree: %w", ErrFreed))
	}
	if err == nil {
		err = waiting.Cancelled(ctx)
	}
	if err != nil {
		message[0] = int64(c.size - c.rank)
	}
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	limit, k := c.WaitLimit(ctx), called(ctx, op)
	if linkErr := c.link.reduceInt64(k, Max, message, limit); linkErr != nil {
		return unreached(err, linkErr)
	}
	if message[0] == 0 {
		return nil
	}
	root := c.size - int(message[0])
	var data []byte
	if c.rank == root {
		data = c.encodeError(err)
	}
	data, linkErr := c.link.broadcast(k.onAnError(), root, data, limit)
	if linkErr != nil {
		return unreached(err, linkErr)
	}
	agreed, decodeErr := c.decodeError(data)
	if decodeErr != nil {
		return decodeErr
	}
	if c.rank == root {
		agreed.cause = err
	}
	return agreed
}

// unreached keeps the rank's own error beside that of the failed agreement, except
// where that is one text on all ranks.
func unreached(own, linkErr error) error {
	linkErr = fmt.Errorf("agree: %w", linkErr)
	if own == nil || errors.Is(own, ErrDead) || errors.Is(linkErr, ErrMismatch) {
		return linkErr
	}
	return fmt.Errorf("%w (this rank's own error: %w)", linkErr, own)
}

// Broadcast gives root's data, of any length, to every rank; the others pass
// nil. Root gets its own slice back. Collective.
func (c *Comm) Broadcast(ctx context.Context, root int, data []byte) ([]byte, error) {
	if err := c.usable(); err != nil {
		return nil, fmt.Errorf("broadcast: %w", err)
	}
	if root < 0 || root >= c.size {
		return nil, fmt.Errorf("broadcast: root %d is not one of %d ranks", root, c.size)
	}
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	data, err := c.link.broadcast(called(ctx, "Broadcast"), root, data, c.WaitLimit(ctx))
	if err != nil {
		return nil, fmt.Errorf("broadcast: %w", err)
	}
	return data, nil
}

// AllGather gives every rank's data, each of any length, to every rank, in the
// order of the ranks. The slices are the caller's own. Collective.
func (c *Comm) AllGather(ctx context.Context, data []byte) ([][]byte, error) {
	if err := c.usable(); err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	all, err := c.link.gather(called(ctx, "AllGather"), data, c.WaitLimit(ctx))
	if err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	return all, nil
}

// AllReduceInt64 combines the ranks' v element by element, in place. All ranks
// pass the same op and length. Sums wrap around. Collective.
func (c *Comm) AllReduceInt64(ctx context.Context, op Op, v []int64) error {
	if err := c.usable(); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	if op < Sum || op > BitOr {
		return fmt.Errorf("reduce: unknown %v", op)
	}
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	if err := c.link.reduceInt64(called(ctx, "AllReduceInt64"), op, v, c.WaitLimit(ctx)); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	return nil
}

// AllReduceFloat64 combines the ranks' v element by element, in place, with Sum,
// Min or Max. All ranks pass the same op and length. All ranks get the same
// bits; the order of a sum is not specified, nor the minimum or maximum of NaN.
// Collective.
func (c *Comm) AllReduceFloat64(ctx context.Context, op Op, v []float64) error {
	if err := c.usable(); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	if op < Sum || op > Max {
		return fmt.Errorf("reduce: %v of floats", op)
	}
	c.calls.Add(1)
	defer waiting.ForOthers(ctx).End()
	if err := c.link.reduceFloat64(called(ctx, "AllReduceFloat64"), op, v, c.WaitLimit(ctx)); err != nil {
		return fmt.Errorf("reduce: %w", err)
	}
	return nil
}

// SendRecv sends send to the rank to and fills recv from the rank from, both at
// the same time, so that a ring of ranks cannot block itself. A partner of -1 is
// none: nothing is sent, or recv stays as it is. A partner may be this rank.
// The received length must be that of recv exactly; if it isn't, the ranks are
// out of step and the communicator is dead. A message to this rank is received
// in the same call. Messages between two ranks
// with the same tag arrive in the order in which they were sent. Tags run from 0
// to 32767.
func (c *Comm) SendRecv(ctx context.Context, to int, send []byte, from int, recv []byte, tag int) error {
	if err := c.usable(); err != nil {
		return fmt.Errorf("send and receive: %w", err)
	}
	for _, partner := range []int{to, from} {
		if partner < -1 || partner >= c.size {
			return fmt.Errorf("send and receive: partner %d is not one of %d ranks", partner, c.size)
		}
	}
	if tag < 0 || tag > 32767 { // the least upper bound that MPI promises
		return fmt.Errorf("send and receive: tag %d is not in 0 to 32767", tag)
	}
	defer waiting.ForOthers(ctx).End()
	if err := c.link.sendRecv(called(ctx, "SendRecv"), to, send, from, recv, tag, c.WaitLimit(ctx)); err != nil {
		return fmt.Errorf("send to %d, receive from %d, tag %d: %w", to, from, tag, err)
	}
	return nil
}

func (c *Comm) usable() error {
	if c.freed {
		return ErrFreed
	}
	return nil
}
