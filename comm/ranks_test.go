package comm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

var errPaper = errors.New("no more paper")

func init() {
	comm.Register("comm_test.errPaper", errPaper)
	mpitest.Register("wait in vain", waitInVain)
}

func TestMain(m *testing.M) { os.Exit(mpitest.Main(m)) }

// One launch serves all collectives, since starting the ranks takes longer than
// the calls.
func TestCollectives(t *testing.T) {
	mpitest.Run(t, []int{1, 2, 3, 4, 7}, func(t *mpitest.T, c *comm.Comm) {
		for _, part := range []struct {
			name string
			run  func(t *mpitest.T, c *comm.Comm)
		}{
			{"agree", agree},
			{"agree on a maximum", agreeMax},
			{"broadcast", broadcast},
			{"gather", gather},
			{"reduce", reduce},
			{"send and receive", sendRecv},
			{"split", split},
			{"node", node},
			{"wrong use", wrongUse},
		} {
			part.run(t, c)
			// A part that failed on one rank only must not run into the next.
			var failed error
			if t.Failed() {
				failed = errors.New("failed")
			}
			if err := c.Agree(context.Background(), failed); err != nil {
				t.Fatalf("%s: %v", part.name, err)
			}
		}
	})
}

func agree(t *mpitest.T, c *comm.Comm) {
	ctx, rank, size := t.Context(), c.Rank(), c.Size()
	if err := c.Agree(ctx, nil); err != nil {
		t.Errorf("all well, but: %v", err)
	}
	if err := c.Meet(ctx); err != nil {
		t.Errorf("meet: %v", err)
	}

	// Every subset of two failing ranks: the lower one's error, everywhere.
	for low := range size {
		for high := low; high < size; high++ {
			var own error
			if rank == low || rank == high {
				own = fmt.Errorf("write field %d: %w", rank, &fs.PathError{Op: "write", Path: "psi.bin", Err: syscall.ENOSPC})
			}
			err := c.Agree(ctx, own)
			want := fmt.Sprintf("rank %d: write field %d: write psi.bin: no space left on device", low, low)
			if err == nil || err.Error() != want {
				t.Fatalf("ranks %d and %d fail: %v, want %s", low, high, err, want)
			}
			var re *comm.RankError
			if !errors.As(err, &re) || re.Rank != low || re.Errno != syscall.ENOSPC || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("errno is lost in %#v", err)
			}
			if (re.Cause() != nil) != (rank == low) || (rank == low && re.Cause() != own) {
				t.Errorf("cause is %v", re.Cause())
			}
			if errors.Is(err, errPaper) || errors.Is(err, fs.ErrExist) {
				t.Errorf("error is another's: %v", err)
			}
		}
	}

	last := size - 1
	for _, tc := range []struct {
		name string
		err  error
		is   []error
	}{
		{"a registered error", fmt.Errorf("print: %w", errPaper), []error{errPaper}},
		{"two at once", errors.Join(errPaper, context.DeadlineExceeded), []error{errPaper, context.DeadlineExceeded}},
		{"what an errno stands for", syscall.EEXIST, []error{syscall.EEXIST, fs.ErrExist}},
		{"a panic", comm.Protect(func() error { panic(errPaper) }), []error{errPaper}},
		{"a text in UTF-8 with NUL", errors.New("µ\x00½"), nil},
		{"a very long text", errors.New(strings.Repeat("long ", 100_000)), nil},
	} {
		var own error
		if rank == last {
			own = tc.err
		}
		err := c.Agree(ctx, own)
		if err == nil || err.Error() != fmt.Sprintf("rank %d: %v", last, tc.err) {
			t.Errorf("%s: %.80v", tc.name, err)
		}
		for _, sentinel := range tc.is {
			if !errors.Is(err, sentinel) {
				t.Errorf("%s: %v is not %v", tc.name, err, sentinel)
			}
		}

		// Wrapped and agreed on again it names the rank once.
		again := c.Agree(ctx, fmt.Errorf("publish: %w", err))
		if again == nil || again.Error() != fmt.Sprintf("publish: rank %d: %v", last, tc.err) {
			t.Errorf("%s, again: %.80v", tc.name, again)
		}
		var re *comm.RankError
		if !errors.As(again, &re) || re.Rank != last {
			t.Errorf("%s, again: rank is lost in %.80v", tc.name, again)
		}
		for _, sentinel := range tc.is {
			if !errors.Is(again, sentinel) {
				t.Errorf("%s, again: %v is not %v", tc.name, again, sentinel)
			}
		}
	}

	// A context that is cancelled on one rank stops all.
	live := ctx
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(errPaper)
	if rank == last {
		live = cancelled
	}
	for name, err := range map[string]error{"agree": c.Agree(live, nil), "meet": c.Meet(live)} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, errPaper) || err.Error() != fmt.Sprintf("rank %d: context canceled: no more paper", last) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
	// A nil dereference is a panic like others, whatever signal handlers MPI has.
	err := c.Agree(ctx, comm.Protect(func() error {
		var p *int
		*p = 1
		return nil
	}))
	if err == nil || !strings.HasPrefix(err.Error(), "rank 0: panic: runtime error") {
		t.Errorf("nil dereference: %v", err)
	}
}

// pattern is n bytes that differ by rank.
func pattern(rank, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(31*rank + i + i>>8)
	}
	return b
}

// Longer than what MPI sends before the receiver is there.
const long = 300_003

func agreeMax(t *mpitest.T, c *comm.Comm) {
	ctx, rank, size := t.Context(), c.Rank(), c.Size()
	for _, n := range []int{0, 1, 9} {
		v := make([]int64, n)
		for i := range v {
			v[i] = int64(rank*(1-2*(i%2))) - 100 // the last rank has the maximum, or the first
		}
		if err := c.AgreeMax(ctx, nil, v); err != nil {
			t.Errorf("maximum of %d: %v", n, err)
		}
		for i, got := range v {
			if want := int64((size-1)*(1-i%2) - 100); got != want {
				t.Errorf("element %d of %d is %d, want %d", i, n, got, want)
			}
		}
	}
	// Extreme values reach all ranks, and are no error.
	v := []int64{math.MinInt64, math.MinInt64, math.MaxInt64}
	if rank == 0 {
		v[0], v[1] = -5, math.MaxInt64
	}
	if err := c.AgreeMax(ctx, nil, v); err != nil || !slices.Equal(v, []int64{-5, math.MaxInt64, math.MaxInt64}) && size > 1 {
		t.Errorf("extreme values: %d, %v", v, err)
	}
	for low := range size {
		var own error
		if rank >= low {
			own = fmt.Errorf("%w, says rank %d", errPaper, rank)
		}
		err := c.AgreeMax(ctx, own, []int64{int64(rank), math.MaxInt64})
		want := fmt.Sprintf("rank %d: no more paper, says rank %d", low, low)
		if err == nil || err.Error() != want || !errors.Is(err, errPaper) {
			t.Fatalf("ranks from %d on fail: %v, want %s", low, err, want)
		}
	}
	cut, cancel := context.WithCancel(ctx)
	defer cancel()
	if rank == size-1 {
		cancel()
	}
	if err := c.AgreeMax(cut, nil, []int64{0}); !errors.Is(err, context.Canceled) || !strings.HasPrefix(err.Error(), fmt.Sprintf("rank %d: ", size-1)) {
		t.Errorf("cancelled on the last rank: %v", err)
	}
}

func broadcast(t *mpitest.T, c *comm.Comm) {
	for root := range c.Size() {
		lengths := []int{0, 1, 1000}
		if root == c.Size()-1 {
			lengths = append(lengths, long)
		}
		for _, n := range lengths {
			var in []byte
			if c.Rank() == root {
				in = pattern(root, n)
			}
			got, err := c.Broadcast(t.Context(), root, in)
			if err != nil || !bytes.Equal(got, pattern(root, n)) {
				t.Errorf("broadcast of %d bytes from %d: %d bytes, %v", n, root, len(got), err)
			}
			if n == 0 {
				continue
			}
			got[0]++ // the slice is this rank's own
		}
	}
}

func gather(t *mpitest.T, c *comm.Comm) {
	for _, length := range []func(rank int) int{
		func(rank int) int { return 0 },
		func(rank int) int { return 5 },
		func(rank int) int { return 1000 * (rank % 3) },
		func(rank int) int { return long / (rank + 1) / (rank + 1) },
	} {
		all, err := c.AllGather(t.Context(), pattern(c.Rank(), length(c.Rank())))
		if err != nil || len(all) != c.Size() {
			t.Fatalf("gather: %d pieces, %v", len(all), err)
		}
		for rank, got := range all {
			if !bytes.Equal(got, pattern(rank, length(rank))) {
				t.Errorf("gather: rank %d brought %d bytes", rank, len(got))
			}
			for i := range got {
				got[i]++ // the slice is this rank's own
			}
		}
	}
}

func reduce(t *mpitest.T, c *comm.Comm) {
	rank, size := int64(c.Rank()), int64(c.Size())
	var or, xor int64
	for r := range size {
		or, xor = or|1<<r, xor^(r*0x5555)
	}
	for _, tc := range []struct {
		op       comm.Op
		in, want int64
	}{
		{comm.Sum, rank + 1, size * (size + 1) / 2},
		{comm.Min, 10 - rank, 11 - size},
		{comm.Max, rank - 10, size - 11},
		{comm.BitXor, rank * 0x5555, xor},
		{comm.BitOr, 1 << rank, or},
	} {
		v := []int64{tc.in, 7, tc.in}
		if err := c.AllReduceInt64(t.Context(), tc.op, v); err != nil || v[0] != tc.want || v[2] != tc.want {
			t.Errorf("%v of integers: %v, %v, want %d", tc.op, v, err, tc.want)
		}
	}
	for _, tc := range []struct {
		op       comm.Op
		in, want float64
	}{
		{comm.Sum, 0.5, 0.5 * float64(size)},
		{comm.Min, -0.25 * float64(rank), -0.25 * float64(size-1)},
		{comm.Max, 0.25 * float64(rank), 0.25 * float64(size-1)},
	} {
		v := []float64{tc.in}
		if err := c.AllReduceFloat64(t.Context(), tc.op, v); err != nil || v[0] != tc.want {
			t.Errorf("%v of floats: %v, %v, want %v", tc.op, v, err, tc.want)
		}
	}
	if err := c.AllReduceInt64(t.Context(), comm.Sum, nil); err != nil {
		t.Errorf("reduce nothing: %v", err)
	}
	v := make([]float64, long/8)
	for i := range v {
		v[i] = float64(i) + float64(rank)
	}
	if err := c.AllReduceFloat64(t.Context(), comm.Max, v); err != nil {
		t.Errorf("reduce many: %v", err)
	}
	for i, x := range v {
		if x != float64(i)+float64(size-1) {
			t.Fatalf("maximum of element %d is %v", i, x)
		}
	}
}

func sendRecv(t *mpitest.T, c *comm.Comm) {
	ctx, rank, size := t.Context(), c.Rank(), c.Size()
	next, before := (rank+1)%size, (rank+size-1)%size
	for _, n := range []int{0, 1, 1000, long} {
		got := make([]byte, n)
		if err := c.SendRecv(ctx, next, pattern(rank, n), before, got, 32767); err != nil || !bytes.Equal(got, pattern(before, n)) {
			t.Errorf("ring of %d bytes: %v", n, err)
		}
		clear(got)
		if err := c.SendRecv(ctx, rank, pattern(rank, n), rank, got, 0); err != nil || !bytes.Equal(got, pattern(rank, n)) {
			t.Errorf("%d bytes to itself: %v", n, err)
		}
	}
	// Along a line the ends have no partner.
	got := []byte{99}
	to, from := rank+1, rank-1
	if to == size {
		to = -1
	}
	if err := c.SendRecv(ctx, to, []byte{byte(rank)}, from, got, 1); err != nil {
		t.Errorf("line: %v", err)
	}
	if want := byte(max(from, 0)); (rank == 0 && got[0] != 99) || (rank > 0 && got[0] != want) {
		t.Errorf("line: got %d", got[0])
	}
	// The order of two messages, and tags.
	if size > 1 && rank == 0 {
		for _, m := range []struct {
			data []byte
			tag  int
		}{{[]byte("first"), 1}, {[]byte("other"), 2}, {[]byte("second"), 1}} {
			if err := c.SendRecv(ctx, 1, m.data, -1, nil, m.tag); err != nil {
				t.Error(err)
			}
		}
	}
	if rank == 1 {
		for _, m := range []struct {
			want string
			tag  int
		}{{"other", 2}, {"first", 1}, {"second", 1}} {
			got := make([]byte, len(m.want))
			if err := c.SendRecv(ctx, -1, nil, 0, got, m.tag); err != nil || string(got) != m.want {
				t.Errorf("tag %d brings %q, %v, want %q", m.tag, got, err, m.want)
			}
		}
	}
}

func split(t *mpitest.T, c *comm.Comm) {
	ctx, rank, size := t.Context(), c.Rank(), c.Size()
	parity, err := c.Split(rank%2, -rank)
	if err != nil {
		t.Fatal(err)
	}
	wantSize := (size + 1 - rank%2) / 2
	wantRank := wantSize - 1 - rank/2
	if parity.Size() != wantSize || parity.Rank() != wantRank {
		t.Errorf("split by parity: rank %d of %d, want %d of %d", parity.Rank(), parity.Size(), wantRank, wantSize)
	}
	// An agreed error of the part names the part's rank, and the whole's before it.
	err = parity.Agree(ctx, errPaper)
	if err == nil || err.Error() != "rank 0: no more paper" {
		t.Errorf("agree in a part: %v", err)
	}
	if err := c.Agree(ctx, err); err == nil || err.Error() != "rank 0: rank 0: no more paper" {
		t.Errorf("agree in the whole: %v", err)
	}
	color := 0
	if rank == 0 {
		color = -1
	}
	rest, err := c.Split(color, 0)
	if err != nil {
		t.Fatal(err)
	}
	if (rest == nil) != (rank == 0) || (rest != nil && (rest.Size() != size-1 || rest.Rank() != rank-1)) {
		t.Errorf("split without rank 0 gives %+v", rest)
	}
	node, err := c.SplitNode()
	if err != nil {
		t.Fatal(err)
	}
	if node.Size() != size || node.Rank() != rank {
		t.Errorf("on one node: rank %d of %d", node.Rank(), node.Size())
	}
	// Communicators are apart: two at once, in opposite order on every other rank.
	var wg sync.WaitGroup
	for _, m := range []*comm.Comm{c, node} {
		wg.Go(func() {
			for range 20 {
				v := []int64{1}
				if err := m.AllReduceInt64(ctx, comm.Sum, v); err != nil || v[0] != int64(size) {
					t.Errorf("sum of ones is %d, %v", v[0], err)
				}
			}
		})
	}
	wg.Wait()
	if handle, ok := node.Fortran(); ok {
		same, err := comm.FromFortran(handle)
		if err != nil {
			t.Fatal(err)
		}
		if same.Rank() != rank || same.Size() != size {
			t.Errorf("from Fortran: rank %d of %d", same.Rank(), same.Size())
		}
		if err := same.Meet(ctx); err != nil {
			t.Error(err)
		}
		if err := same.Free(); err != nil {
			t.Error(err)
		}
	} else if mpi.Enabled {
		t.Error("no Fortran handle")
	}
	for _, m := range []*comm.Comm{parity, rest, node} {
		if m == nil {
			continue
		}
		if err := m.Free(); err != nil {
			t.Error(err)
		}
		if err := m.Free(); err != nil {
			t.Errorf("second free: %v", err)
		}
		_, splitErr := m.Split(0, 0)
		for name, err := range map[string]error{
			"agree": m.Agree(ctx, nil), "reduce": m.AllReduceInt64(ctx, comm.Sum, nil), "split": splitErr,
			"send": m.SendRecv(ctx, -1, nil, -1, nil, 0),
		} {
			if !errors.Is(err, comm.ErrFreed) {
				t.Errorf("%s after free: %v", name, err)
			}
		}
	}
}

func node(t *mpitest.T, c *comm.Comm) {
	ctx, rank, size := t.Context(), c.Rank(), c.Size()
	fresh, err := c.Split(0, 0) // knows nothing of nodes yet
	if err != nil {
		t.Fatal(err)
	}
	cut, cancel := context.WithCancel(ctx)
	if rank == size-1 {
		cancel()
	}
	defer cancel()
	if _, _, err := fresh.Node(cut); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context on the last rank: %v", err)
	}
	for call := range 3 {
		if r, n, err := fresh.Node(ctx); r != rank || n != size || err != nil {
			t.Errorf("call %d: rank %d of %d on the node, %v; want %d of %d", call, r, n, err, rank, size)
		}
	}
	// Now it is no longer collective, and no context matters.
	if rank == 0 {
		cancel()
		if r, n, err := fresh.Node(cut); r != 0 || n != size || err != nil {
			t.Errorf("alone: rank %d of %d on the node, %v", r, n, err)
		}
	}
	parity, err := fresh.Split(rank%2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r, n, err := parity.Node(ctx); r != rank/2 || n != (size+1-rank%2)/2 || err != nil {
		t.Errorf("of a part: rank %d of %d on the node, %v", r, n, err)
	}
	for _, m := range []*comm.Comm{parity, fresh} {
		if err := m.Free(); err != nil {
			t.Error(err)
		}
		if _, _, err := m.Node(ctx); !errors.Is(err, comm.ErrFreed) {
			t.Errorf("after free: %v", err)
		}
	}
	if r, n, err := comm.Self().Node(ctx); r != 0 || n != 1 || err != nil {
		t.Errorf("of one rank: rank %d of %d on the node, %v", r, n, err)
	}
}

// MPICH can take the odd ranks for those of another node.
func TestRanksOfTwoNodes(t *testing.T) {
	mpitest.Run(t, []int{3}, func(t *mpitest.T, c *comm.Comm) {
		rank, size := c.Rank(), c.Size()
		if strings.HasPrefix(mpi.Implementation(), "mpich") {
			rank, size = rank/2, 2-rank%2
		}
		if r, n, err := c.Node(t.Context()); r != rank || n != size || err != nil {
			t.Errorf("rank %d of %d on the node, %v; want %d of %d", r, n, err, rank, size)
		}
	}, mpitest.Env("MPIR_CVAR_ODD_EVEN_CLIQUES=1"))
}

// Calls that are refused at once, on every rank, and harm nothing.
func wrongUse(t *mpitest.T, c *comm.Comm) {
	ctx := t.Context()
	_, rootErr := c.Broadcast(ctx, c.Size(), nil)
	for name, err := range map[string]error{
		"root that is no rank":    rootErr,
		"partner that is no rank": c.SendRecv(ctx, c.Size(), nil, -1, nil, 0),
		"partner below -1":        c.SendRecv(ctx, -1, nil, -2, nil, 0),
		"negative tag":            c.SendRecv(ctx, -1, nil, -1, nil, -1),
		"tag beyond the promise":  c.SendRecv(ctx, -1, nil, -1, nil, 32768),
		"xor of floats":           c.AllReduceFloat64(ctx, comm.BitXor, []float64{1}),
		"unknown reduction":       c.AllReduceInt64(ctx, comm.Op(9), []int64{1}),
	} {
		if err == nil || errors.Is(err, comm.ErrDead) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// waitInVain is a program whose last rank never comes to what the others wait
// for. They find the communicator dead and end the job with status 7. What the test
// is to know they say by files: what they print may die with the launcher.
func waitInVain(c *comm.Comm, args []string) error {
	ctx := context.Background()
	call, dir := args[0], args[1]
	if err := c.Meet(ctx); err != nil {
		return err
	}
	if err := say(dir, "together", c.Rank()); err != nil {
		return err
	}
	if c.Rank() == c.Size()-1 {
		time.Sleep(time.Hour)
	}
	var err error
	switch call {
	case "Agree":
		err = c.Agree(ctx, errPaper)
	case "AllGather":
		_, err = c.AllGather(ctx, make([]byte, 100))
	case "SendRecv":
		err = c.SendRecv(ctx, -1, nil, c.Size()-1, make([]byte, 100), 0)
	case "Split":
		_, err = c.Split(0, 0)
	case "Node":
		_, _, err = c.Node(ctx)
	}
	if !errors.Is(err, comm.ErrDead) {
		return fmt.Errorf("waited for a rank that never came: %v", err)
	}
	if call == "Agree" && !errors.Is(err, errPaper) {
		return fmt.Errorf("the rank's own error is lost in %v", err)
	}
	for range 1000 { // at once, or the watchdog of the test comes first
		if again := c.Meet(ctx); !errors.Is(again, comm.ErrDead) {
			return fmt.Errorf("a later call gave %v", again)
		}
	}
	if err := c.Free(); err != nil {
		return err
	}
	if err := say(dir, "found out", c.Rank()); err != nil {
		return err
	}
	for c.Rank() == 0 {
		if said(dir, "found out", c.Size()-1) == c.Size()-1 {
			c.Abort(7)
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Hour)
	return nil
}

func say(dir, word string, rank int) error {
	return os.WriteFile(filepath.Join(dir, fmt.Sprint(word, " ", rank)), nil, 0o666)
}

// said is how many of the first ranks said a word.
func said(dir, word string, ranks int) (n int) {
	for rank := range ranks {
		if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(word, " ", rank))); err == nil {
			n++
		}
	}
	return n
}

func TestMissingRankIsFoundOut(t *testing.T) {
	for _, call := range []string{"Agree", "AllGather", "SendRecv", "Split", "Node"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel() // most of the time the ranks wait
			const ranks = 3
			// Ranks that start one after the other, on a busy machine, are no case of this
			// test: it is tried again with more patience.
			for _, watch := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
				dir := t.TempDir()
				j := mpitest.Start(t, ranks, "wait in vain", []string{call, dir}, mpitest.Watch(watch))
				output, exit := j.Wait()
				if said(dir, "together", ranks) < ranks && watch < time.Minute {
					continue
				}
				if found := said(dir, "found out", ranks); found != ranks-1 || strings.Contains(output, "program wait in vain:") {
					t.Errorf("%d ranks found out; output:\n%s", found, output)
				}
				if exit != 7 {
					t.Errorf("exit status is %d, want that of Abort", exit)
				}
				return
			}
		})
	}
}

// Where World runs alone, in a process of its own: MPI starts once in each. The
// environment of another launcher says that it is not alone, and then the
// process must not take itself for the whole.
func TestWorldOfOneProcess(t *testing.T) {
	const child = "COMM_TEST_CHILD"
	if os.Getenv(child) != "" {
		c, err := comm.World()
		if err != nil {
			t.Fatal(err)
		}
		if c.Rank() != 0 || c.Size() != 1 {
			t.Errorf("rank %d of %d", c.Rank(), c.Size())
		}
		if err := c.Meet(t.Context()); err != nil {
			t.Error(err)
		}
		if err := comm.Finalize(); err != nil {
			t.Error(err)
		}
		return
	}
	// Variables of the MPI that is linked in would start a real job.
	foreign := []string{"OMPI_COMM_WORLD_SIZE=2", "PMI_SIZE=2", "PMIX_RANK=1"}
	switch name, _, _ := strings.Cut(mpi.Implementation(), " "); name {
	case "openmpi":
		foreign = []string{"PMI_SIZE=2"}
	case "mpich":
		foreign = []string{"OMPI_COMM_WORLD_SIZE=2", "PMIX_RANK=1"}
	}
	for _, variable := range append(foreign, "PMI_SIZE=1", "OMPI_COMM_WORLD_SIZE=", "NO_LAUNCHER=1") {
		refused := slices.Contains(foreign, variable)
		name, _, _ := strings.Cut(variable, "=")
		if mpi.Enabled && !refused && name != "NO_LAUNCHER" {
			continue
		}
		t.Run(variable, func(t *testing.T) {
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^"+t.Name()[:strings.Index(t.Name(), "/")]+"$")
			cmd.Env = append(os.Environ(), child+"=1", variable, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			output, err := cmd.CombinedOutput()
			said := bytes.Contains(output, []byte(comm.ErrNoMPI.Error())) && bytes.Contains(output, []byte(name))
			if (err != nil) != refused || said != refused {
				t.Errorf("%v:\n%s", err, output)
			}
		})
	}
}
