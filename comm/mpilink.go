package comm

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/mpi"
)

// mpiLink is a link over MPI. MPI matches calls by their order alone: ranks in different
// ones would get each other's data, or be ended by the library. So each collective call
// begins with a message of one length, [mpi.Comm.Exchange], that has a digest of the call.
// Short data travel in the same message.
type mpiLink struct {
	m    *mpi.Comm
	dead error // the ranks were in different calls
}

func overMPI(m *mpi.Comm, s settings) *Comm {
	m.SetHangLimit(s.hang)
	return &Comm{link: &mpiLink{m: m}, rank: m.Rank(), size: m.Size(), settings: s}
}

// digest is FNV-1a over the call and what all ranks give alike.
func digest(k call, details ...int) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for _, s := range [...]string{k.name, k.in} {
		for i := range len(s) {
			h = (h ^ uint64(s[i])) * prime
		}
		h *= prime // as after a zero byte
	}
	for _, n := range details {
		for ; n != 0; n = int(uint(n) >> 8) {
			h = (h ^ uint64(n&0xff)) * prime
		}
		h *= prime
	}
	return h
}

// longestCall bounds the text of a call that ranks tell each other.
const longestCall = 200

// meet exchanges the words. Ranks in different calls get one error, that names what the
// first rank called and what the first other one did.
func (l *mpiLink) meet(digest uint64, op mpi.Op, floats bool, words []int64, limit time.Duration, text func() string) error {
	if l.dead != nil {
		return l.dead
	}
	same, err := l.m.Exchange(digest, op, floats, words, limit)
	if err != nil || same {
		return err
	}
	mine := text()
	calls, err := l.m.GatherShort([]byte(mine[:min(len(mine), longestCall)]), longestCall, limit)
	if err != nil {
		return err
	}
	other := 0
	for other < len(calls)-1 && string(calls[other]) == string(calls[0]) {
		other++
	}
	l.dead = mismatch(0, string(calls[0]), other, string(calls[other]))
	l.m.Stop(l.dead)
	return l.dead
}

// mismatch is the error of ranks that are in different calls.
func mismatch(first int, a string, second int, b string) error {
	return fmt.Errorf("%w: %w: rank %d called %s, rank %d called %s", ErrDead, ErrMismatch, first, a, second, b)
}

func (l *mpiLink) reduceInt64(k call, kind Op, v []int64, limit time.Duration) error {
	d := digest(k, int(kind), len(v))
	text := func() string { return k.reduction(kind, len(v)) }
	if len(v) <= mpi.MessageWords {
		return l.meet(d, mpi.Op(kind), false, v, limit, text)
	}
	if err := l.meet(d, mpi.Max, false, nil, limit, text); err != nil {
		return err
	}
	return l.m.AllReduceInt64(mpi.Op(kind), v, limit)
}

func (l *mpiLink) reduceFloat64(k call, kind Op, v []float64, limit time.Duration) error {
	d := digest(k, int(kind), len(v))
	text := func() string { return k.reduction(kind, len(v)) }
	if len(v) > mpi.MessageWords {
		if err := l.meet(d, mpi.Max, false, nil, limit, text); err != nil {
			return err
		}
		return l.m.AllReduceFloat64(mpi.Op(kind), v, limit)
	}
	words := make([]int64, len(v))
	for i, x := range v {
		words[i] = int64(math.Float64bits(x))
	}
	if err := l.meet(d, mpi.Op(kind), true, words, limit, text); err != nil {
		return err
	}
	for i, w := range words {
		v[i] = math.Float64frombits(uint64(w))
	}
	return nil
}

// broadcast puts short data into the first message: the other ranks bring zeros.
func (l *mpiLink) broadcast(k call, root int, data []byte, limit time.Duration) ([]byte, error) {
	const inside = 8 * (mpi.MessageWords - 1)
	words := make([]int64, mpi.MessageWords)
	isRoot := root == l.m.Rank()
	if isRoot {
		words[0] = int64(len(data))
		var first [inside]byte
		copy(first[:], data)
		for i := range words[1:] {
			words[1+i] = int64(binary.LittleEndian.Uint64(first[8*i:]))
		}
	}
	err := l.meet(digest(k, root), mpi.BitOr, false, words, limit, func() string { return k.broadcast(root) })
	if err != nil {
		return nil, err
	}
	length := words[0]
	if length > inside {
		return l.m.Broadcast(root, data, limit)
	}
	if isRoot {
		return data, nil
	}
	got := make([]byte, 0, inside)
	for _, w := range words[1:] {
		got = binary.LittleEndian.AppendUint64(got, uint64(w))
	}
	return got[:length], nil
}

func (l *mpiLink) gather(k call, data []byte, limit time.Duration) ([][]byte, error) {
	longest := []int64{int64(len(data))}
	if err := l.meet(digest(k), mpi.Max, false, longest, limit, k.text); err != nil {
		return nil, err
	}
	return l.m.GatherShort(data, int(longest[0]), limit)
}

func (l *mpiLink) sendRecv(k call, to int, send []byte, from int, recv []byte, tag int, limit time.Duration) error {
	return l.m.SendRecv(to, send, from, recv, tag, limit)
}

func (l *mpiLink) split(k call, color, key int, limit time.Duration) (link, int, int, error) {
	if err := l.meet(digest(k), mpi.Max, false, nil, limit, k.text); err != nil {
		return nil, 0, 0, err
	}
	return wrapSplit(l.m.Split(color, key, limit))
}

func (l *mpiLink) splitNode(k call, limit time.Duration) (link, int, int, error) {
	if err := l.meet(digest(k), mpi.Max, false, nil, limit, k.text); err != nil {
		return nil, 0, 0, err
	}
	return wrapSplit(l.m.SplitNode(limit))
}

func wrapSplit(m *mpi.Comm, err error) (link, int, int, error) {
	if m == nil || err != nil {
		return nil, 0, 0, err
	}
	return &mpiLink{m: m}, m.Rank(), m.Size(), nil
}

func (l *mpiLink) free() error { return l.m.Free() }

func (l *mpiLink) abort(code int) { l.m.Abort(code) }

func (l *mpiLink) handle() *mpi.Comm { return l.m }
