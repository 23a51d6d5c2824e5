package comm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Self is a group of one rank. It needs no MPI and may be made any number of
// times.
func Self() *Comm {
	return newJob(1).comm(0, defaults)
}

// Run calls fn in ranks goroutines, each with its own rank of a new group, and
// returns their errors joined when all have returned. It needs no MPI and is
// meant for tests and tools. A rank that panics fails with a *PanicError.
//
// Unlike MPI, the group notices mistakes: when a rank returns, panics or leaves
// with runtime.Goexit while others wait for it, or when ranks call different
// collectives, the waiting calls fail with an error that names the ranks and
// wraps ErrDead.
func Run(ranks int, fn func(c *Comm) error, opts ...Option) error {
	if ranks < 1 {
		return fmt.Errorf("run: %d ranks", ranks)
	}
	s, err := apply(opts)
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	j := newJob(ranks)
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for rank := range ranks {
		wg.Go(func() {
			err := errors.New("its goroutine exited") // holds after runtime.Goexit
			defer func() {
				if err != nil {
					errs[rank] = fmt.Errorf("rank %d: %w", rank, err)
				}
				j.leave(rank, err)
			}()
			err = Protect(func() error { return fn(j.comm(rank, s)) })
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// A job is the ranks of one Run with all groups that they split into. One lock
// guards all of it: these groups serve tests, not speed.
type job struct {
	mu     sync.Mutex
	world  *group
	groups []*group
	left   map[int]string // ranks that are gone, and why
}

// A group is a set of ranks that meet in rounds.
type group struct {
	job     *job
	members []int // this group's ranks as ranks of the job
	round   *round
	mail    map[route][][]byte
	arrival chan struct{} // closed and replaced whenever mail or dead changes
	dead    error         // why nothing works any more
}

// A round is one collective call: every rank brings something, and the last one
// works out what each takes home.
type round struct {
	op    string
	came  []bool
	in    []any
	out   []any
	err   error
	ended chan struct{}
}

type route struct{ from, to, tag int }

func newJob(ranks int) *job {
	j := &job{left: make(map[int]string)}
	members := make([]int, ranks)
	for i := range members {
		members[i] = i
	}
	j.world = j.newGroup(members)
	return j
}

// newGroup is called with the lock held, or before anyone else has the job.
func (j *job) newGroup(members []int) *group {
	g := &group{job: j, members: members, mail: make(map[route][][]byte), arrival: make(chan struct{})}
	j.groups = append(j.groups, g)
	return g
}

func (j *job) comm(rank int, s settings) *Comm {
	return &Comm{link: &seat{j.world, rank}, rank: rank, size: len(j.world.members), settings: s}
}

// leave fails whoever waits for the rank, now or later.
func (j *job) leave(rank int, why error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.left[rank] = "returned"
	if why != nil {
		j.left[rank] = fmt.Sprintf("returned: %v", why)
	}
	for _, g := range j.groups {
		r := slices.Index(g.members, rank)
		if r < 0 {
			continue
		}
		if g.round != nil {
			g.die(g.gone(g.round.op, r))
		}
		g.ring() // receivers look again
	}
}

func (g *group) gone(op string, rank int) error {
	return fmt.Errorf("%w: %s: %w: rank %d %s", ErrDead, op, ErrLeft, rank, g.job.left[g.members[rank]])
}

// die ends the round and the group. The lock is held.
func (g *group) die(err error) {
	if g.dead == nil {
		g.dead = err
	}
	if r := g.round; r != nil {
		r.err = g.dead
		g.round = nil
		close(r.ended)
	}
	g.ring()
}

func (g *group) ring() {
	close(g.arrival)
	g.arrival = make(chan struct{})
}

// meet brings in to the round that is open and returns what finish, called by
// the last rank to come, put out for this rank.
func (g *group) meet(rank int, op string, limit time.Duration, in any, finish func(in []any) []any) (any, error) {
	j := g.job
	j.mu.Lock()
	if g.dead != nil {
		defer j.mu.Unlock()
		return nil, g.dead
	}
	for other, member := range g.members {
		if _, gone := j.left[member]; gone {
			g.die(g.gone(op, other))
			defer j.mu.Unlock()
			return nil, g.dead
		}
	}
	size := len(g.members)
	r := g.round
	if r == nil {
		r = &round{op: op, came: make([]bool, size), in: make([]any, size), ended: make(chan struct{})}
		g.round = r
	}
	if r.op != op || r.came[rank] {
		first := slices.Index(r.came, true)
		g.die(mismatch(first, r.op, rank, op))
		defer j.mu.Unlock()
		return nil, g.dead
	}
	r.came[rank], r.in[rank] = true, in
	if !slices.Contains(r.came, false) {
		r.out = finish(r.in)
		g.round = nil
		close(r.ended)
	}
	j.mu.Unlock()

	wait := waiting.NewMeter(limit)
	if !wait.Wait(r.ended) {
		j.mu.Lock()
		if g.round == r {
			g.die(fmt.Errorf("%w: waited %v in %s for %s", ErrDead, limit, op, missing(r.came)))
		}
		j.mu.Unlock()
		<-r.ended
	}
	if r.err != nil {
		return nil, r.err
	}
	return r.out[rank], nil
}

func missing(came []bool) string {
	var names []string
	for rank, here := range came {
		if !here {
			names = append(names, fmt.Sprintf("rank %d", rank))
		}
	}
	return strings.Join(names, ", ")
}

// A seat is one rank's place in a group.
type seat struct {
	g    *group
	rank int
}

func reduce[T int64 | float64](s *seat, k call, kind Op, v []T, limit time.Duration, combine func(a, b T) T) error {
	out, err := s.g.meet(s.rank, k.reduction(kind, len(v)), limit, slices.Clone(v), func(in []any) []any {
		total := slices.Clone(in[0].([]T))
		for _, other := range in[1:] {
			for i, x := range other.([]T) {
				total[i] = combine(total[i], x)
			}
		}
		return slices.Repeat([]any{total}, len(in))
	})
	if err != nil {
		return err
	}
	copy(v, out.([]T))
	return nil
}

func (s *seat) reduceInt64(k call, kind Op, v []int64, limit time.Duration) error {
	return reduce(s, k, kind, v, limit, func(a, b int64) int64 {
		switch kind {
		case Min:
			return min(a, b)
		case Max:
			return max(a, b)
		case BitXor:
			return a ^ b
		case BitOr:
			return a | b
		}
		return a + b
	})
}

func (s *seat) reduceFloat64(k call, kind Op, v []float64, limit time.Duration) error {
	return reduce(s, k, kind, v, limit, func(a, b float64) float64 {
		switch kind {
		case Min:
			return min(a, b)
		case Max:
			return max(a, b)
		}
		return a + b
	})
}

func (s *seat) broadcast(k call, root int, data []byte, limit time.Duration) ([]byte, error) {
	var in []byte
	if s.rank == root {
		in = slices.Clone(data)
	}
	out, err := s.g.meet(s.rank, k.broadcast(root), limit, in, func(in []any) []any {
		return slices.Repeat([]any{in[root]}, len(in))
	})
	if err != nil || s.rank == root {
		return data, err
	}
	return slices.Clone(out.([]byte)), nil
}

func (s *seat) gather(k call, data []byte, limit time.Duration) ([][]byte, error) {
	out, err := s.g.meet(s.rank, k.text(), limit, slices.Clone(data), func(in []any) []any {
		return slices.Repeat([]any{in}, len(in))
	})
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, piece := range out.([]any) {
		all = append(all, slices.Clone(piece.([]byte)))
	}
	return all, nil
}

func (s *seat) sendRecv(k call, to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error {
	g, j := s.g, s.g.job
	j.mu.Lock()
	if g.dead != nil {
		defer j.mu.Unlock()
		return g.dead
	}
	if to >= 0 {
		r := route{s.rank, to, tag}
		g.mail[r] = append(g.mail[r], slices.Clone(send))
		g.ring()
	}
	if from < 0 {
		j.mu.Unlock()
		return nil
	}
	r := route{from, s.rank, tag}
	wait := waiting.NewMeter(limit)
	for {
		if box := g.mail[r]; len(box) > 0 {
			g.mail[r] = box[1:]
			defer j.mu.Unlock()
			if got := len(box[0]); got != len(recv) {
				g.die(fmt.Errorf("%w: message of %d bytes for a buffer of %d", ErrDead, got, len(recv)))
				return g.dead
			}
			copy(recv, box[0])
			return nil
		}
		if g.dead != nil {
			defer j.mu.Unlock()
			return g.dead
		}
		if _, gone := j.left[g.members[from]]; gone {
			g.die(g.gone(k.text(), from))
			continue
		}
		arrival := g.arrival
		j.mu.Unlock()
		arrived := wait.Wait(arrival)
		j.mu.Lock()
		if !arrived && len(g.mail[r]) == 0 {
			g.die(fmt.Errorf("%w: waited %v in %s for rank %d", ErrDead, limit, k.text(), from))
		}
	}
}

func (s *seat) split(k call, color, key int, limit time.Duration) (link, int, int, error) {
	type place struct{ color, key, rank int }
	out, err := s.g.meet(s.rank, k.text(), limit, place{color, key, s.rank}, func(in []any) []any {
		places := make([]place, len(in))
		for i := range in {
			places[i] = in[i].(place)
		}
		slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.key, b.key) })
		seats := make([]any, len(in))
		for _, p := range places {
			if p.color < 0 || seats[p.rank] != nil {
				continue
			}
			var ranks, members []int
			for _, q := range places {
				if q.color == p.color {
					ranks, members = append(ranks, q.rank), append(members, s.g.members[q.rank])
				}
			}
			sub := s.g.job.newGroup(members)
			for i, rank := range ranks {
				seats[rank] = &seat{sub, i}
			}
		}
		return seats
	})
	if err != nil || out == nil {
		return nil, 0, 0, err
	}
	sub := out.(*seat)
	return sub, sub.rank, len(sub.g.members), nil
}

func (s *seat) splitNode(k call, limit time.Duration) (link, int, int, error) {
	return s.split(k, 0, 0, limit)
}

func (s *seat) free() error { return nil }

func (s *seat) abort(code int) { os.Exit(code) }

func (s *seat) handle() *mpi.Comm { return nil }
