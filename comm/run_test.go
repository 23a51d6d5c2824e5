package comm_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"pgregory.net/rapid"
)

// The mistakes that a Run group notices. Each rank does its part; all of those
// that wait must fail with an error that says what is wrong.
func TestRunNotices(t *testing.T) {
	ctx := context.Background()
	const short = 200 * time.Millisecond
	cases := []struct {
		name  string
		part  func(c *comm.Comm) error // of rank 1; the others call Meet
		want  []string                 // in the error of rank 0
		is    []error
		watch time.Duration // 0: the default, which nothing here waits for
	}{
		{
			"a rank that returns early",
			func(c *comm.Comm) error { return nil },
			[]string{"rank 1 returned", "Meet"},
			[]error{comm.ErrLeft, comm.ErrDead}, 0,
		},
		{
			"a rank that returns an error",
			func(c *comm.Comm) error { return errors.New("no more paper") },
			[]string{"rank 1 returned: no more paper"},
			[]error{comm.ErrLeft, comm.ErrDead}, 0,
		},
		{
			"a rank that panics",
			func(c *comm.Comm) error { panic("ouch") },
			[]string{"rank 1 returned: panic: ouch"},
			[]error{comm.ErrLeft, comm.ErrDead}, 0,
		},
		{
			"a rank whose goroutine exits",
			func(c *comm.Comm) error { runtime.Goexit(); return nil },
			[]string{"rank 1 returned: its goroutine exited"},
			[]error{comm.ErrLeft, comm.ErrDead}, 0,
		},
		{
			"another collective",
			func(c *comm.Comm) error { _, err := c.AllGather(ctx, nil); return err },
			[]string{"AllGather", "Meet"},
			[]error{comm.ErrMismatch, comm.ErrDead}, 0,
		},
		{
			"another length of the same reduction",
			func(c *comm.Comm) error { return c.AllReduceInt64(ctx, comm.Sum, make([]int64, 2)) },
			[]string{"AllReduceInt64 (sum of 2)", "Meet"},
			[]error{comm.ErrMismatch, comm.ErrDead}, 0,
		},
		{
			"another root",
			func(c *comm.Comm) error { _, err := c.Broadcast(ctx, 2, nil); return err },
			[]string{"Broadcast from 2"},
			[]error{comm.ErrMismatch, comm.ErrDead}, 0,
		},
		{
			"a message longer than its buffer",
			func(c *comm.Comm) error { return c.SendRecv(ctx, 1, make([]byte, 2), 1, make([]byte, 1), 0) },
			[]string{"message of 2 bytes for a buffer of 1"},
			[]error{comm.ErrDead}, 0,
		},
		{
			"a split",
			func(c *comm.Comm) error { _, err := c.Split(0, 0); return err },
			[]string{"rank 1 called Split"},
			[]error{comm.ErrMismatch, comm.ErrDead}, 0,
		},
		{
			"a partner that sends nothing",
			func(c *comm.Comm) error { return c.SendRecv(ctx, -1, nil, 0, make([]byte, 1), 0) },
			[]string{"waited " + short.String() + " in"},
			[]error{comm.ErrDead}, short,
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var first error
			var opts []comm.Option
			if tc.watch != 0 {
				opts = append(opts, comm.Watch(tc.watch))
			}
			comm.Run(3, func(c *comm.Comm) error {
				if c.Rank() == 1 {
					return tc.part(c)
				}
				err := c.Meet(ctx)
				if c.Rank() == 0 {
					first = err
					if again := c.Meet(ctx); again == nil || again.Error() != err.Error() {
						t.Errorf("a later call gives %v, the first gave %v", again, err)
					}
				}
				return err
			}, opts...)
			if first == nil {
				t.Fatal("no error")
			}
			for _, text := range tc.want {
				if !strings.Contains(first.Error(), text) {
					t.Errorf("error %q lacks %q", first, text)
				}
			}
			for _, sentinel := range tc.is {
				if !errors.Is(first, sentinel) {
					t.Errorf("error %q is not %q", first, sentinel)
				}
			}
		})
	}
}

// A group that ranks split off knows of a rank that leaves, and a message that
// was sent before arrives all the same.
func TestRunNoticesInParts(t *testing.T) {
	ctx := context.Background()
	var mail []byte
	err := comm.Run(4, func(c *comm.Comm) error {
		part, err := c.Split(c.Rank()/2, 0)
		if err != nil {
			return err
		}
		switch c.Rank() {
		case 0, 1:
			return part.Meet(ctx) // nobody is missing here
		case 3:
			return part.SendRecv(ctx, 0, []byte("last words"), -1, nil, 0)
		}
		mail = make([]byte, len("last words"))
		if err := part.SendRecv(ctx, -1, nil, 1, mail, 0); err != nil {
			return err
		}
		if err := part.SendRecv(ctx, -1, nil, 1, mail, 0); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("received from a rank that left: %w", err)
		}
		if err := part.Meet(ctx); !errors.Is(err, comm.ErrLeft) {
			return fmt.Errorf("met a rank that left: %w", err)
		}
		return nil
	})
	if err != nil || string(mail) != "last words" {
		t.Errorf("mail %q, %v", mail, err)
	}
}

// Two goroutines that use one communicator at once are found out, while the
// other rank has not come yet.
func TestRunNoticesTwoCallsAtOnce(t *testing.T) {
	ctx := context.Background()
	found := make(chan struct{})
	var errs [2]error
	comm.Run(2, func(c *comm.Comm) error {
		if c.Rank() == 0 {
			<-found
			return c.Meet(ctx)
		}
		defer close(found)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = c.Meet(ctx) })
		}
		wg.Wait()
		return nil
	})
	for _, err := range errs {
		if !errors.Is(err, comm.ErrMismatch) {
			t.Errorf("a call beside another gave %v", err)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	nop := func(c *comm.Comm) error { return nil }
	for name, err := range map[string]error{
		"no ranks":         comm.Run(0, nop),
		"a limit of zero":  comm.Run(1, nop, comm.Watch(0)),
		"a negative limit": comm.Run(1, nop, comm.Watch(-time.Second)),
	} {
		if err == nil {
			t.Errorf("run with %s", name)
		}
	}
}

// The ranks' errors and panics come back, each with its rank.
func TestRunJoinsErrors(t *testing.T) {
	err := comm.Run(3, func(c *comm.Comm) error {
		switch c.Rank() {
		case 0:
			return errPaper
		case 2:
			panic("ouch")
		}
		return nil
	})
	var p *comm.PanicError
	if !errors.Is(err, errPaper) || !errors.As(err, &p) || p.Value != "ouch" || !strings.Contains(string(p.Stack), "TestRunJoinsErrors") {
		t.Errorf("joined errors are %v", err)
	}
	if err.Error() != "rank 0: no more paper\nrank 2: panic: ouch" {
		t.Errorf("text is %q", err)
	}
}

func TestRegisterRefuses(t *testing.T) {
	for name, register := range map[string]func(){
		"a name that is taken": func() { comm.Register("comm_test.errPaper", errors.New("other")) },
		"nil":                  func() { comm.Register("comm_test.nil", nil) },
	} {
		if err := comm.Protect(func() error { register(); return nil }); err == nil {
			t.Errorf("registered %s", name)
		}
	}
	comm.Register("comm_test.errPaper", errPaper) // the same again
}

// Random ranks fail with random texts: all ranks agree on the lowest one's.
func TestAgreeProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(rapid.String(), 1, 9).Draw(t, "texts")
		fails := rapid.SliceOfN(rapid.Bool(), len(texts), len(texts)).Draw(t, "fails")
		agreed := make([]error, len(texts))
		err := comm.Run(len(texts), func(c *comm.Comm) error {
			var own error
			if fails[c.Rank()] {
				own = errors.New(texts[c.Rank()])
			}
			agreed[c.Rank()] = c.Agree(context.Background(), own)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		first := slices.Index(fails, true)
		for rank, err := range agreed {
			if first < 0 && err != nil {
				t.Fatalf("rank %d: %v", rank, err)
			}
			if first >= 0 && (err == nil || err.Error() != fmt.Sprintf("rank %d: %s", first, texts[first])) {
				t.Fatalf("rank %d: %v", rank, err)
			}
		}
	})
}

func ExampleComm_Agree() {
	ctx := context.Background()
	comm.Run(2, func(c *comm.Comm) error {
		var err error
		if c.Rank() == 1 {
			_, err = os.Open("no such file")
		}
		// Both ranks see rank 1's error, errno and all, and can branch alike.
		err = c.Agree(ctx, err)
		if c.Rank() == 0 {
			fmt.Println(err)
			fmt.Println(errors.Is(err, fs.ErrNotExist))
		}
		return nil
	})
	// Output:
	// rank 1: open no such file: no such file or directory
	// true
}

func ExampleComm_Split() {
	ctx := context.Background()
	comm.Run(5, func(c *comm.Comm) error {
		half, err := c.Split(c.Rank()%2, c.Rank())
		if err != nil {
			return err
		}
		sum := []int64{int64(c.Rank())}
		if err := half.AllReduceInt64(ctx, comm.Sum, sum); err != nil {
			return err
		}
		if c.Rank() == 0 {
			fmt.Println("even ranks:", half.Size(), "sum:", sum[0])
		}
		return half.Free()
	})
	// Output: even ranks: 3 sum: 6
}

func ExampleRun() {
	err := comm.Run(3, func(c *comm.Comm) error {
		var err error
		if c.Rank() == 2 {
			err = errors.New("write field \"psi\": no space left on device")
		}
		return c.Agree(context.Background(), err)
	})
	fmt.Println(err)
	// Output:
	// rank 0: rank 2: write field "psi": no space left on device
	// rank 1: rank 2: write field "psi": no space left on device
	// rank 2: rank 2: write field "psi": no space left on device
}

func ExampleSelf() {
	c := comm.Self()
	fmt.Println(c.Rank(), c.Size(), c.Agree(context.Background(), nil))
	// Output: 0 1 <nil>
}

func TestOnRootRunsOnRankZeroAndItsOutcomeIsThatOfAllRanks(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name string
		own  func(rank int) error
		f    func() error
		want string
		ran  int64
	}{
		{"success", func(int) error { return nil }, func() error { return nil }, "", 1},
		{"failure", func(int) error { return nil }, func() error { return boom }, "rank 0: boom", 1},
		{"panic", func(int) error { return nil }, func() error { panic(boom) }, "rank 0: panic: boom", 1},
		{"another rank's error", func(r int) error {
			if r == 2 {
				return boom
			}
			return nil
		}, func() error { return nil }, "rank 2: boom", 1},
		{"rank 0's own error", func(r int) error {
			if r == 0 {
				return boom
			}
			return nil
		}, func() error { return nil }, "rank 0: boom", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var ran atomic.Int64
			if err := comm.Run(3, func(c *comm.Comm) error {
				err := c.OnRoot(context.Background(), tc.own(c.Rank()), func() error {
					ran.Add(1)
					return tc.f()
				})
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != tc.want) {
					return fmt.Errorf("rank %d got %v, want %q", c.Rank(), err, tc.want)
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
			if ran.Load() != tc.ran {
				t.Errorf("f ran %d times, want %d", ran.Load(), tc.ran)
			}
		})
	}
}

// Every collective call counts once, whether the ranks are well or not.
func TestCollectivesAreCounted(t *testing.T) {
	ctx := context.Background()
	if err := comm.Run(2, func(c *comm.Comm) error {
		failed := errors.New("no more paper")
		for _, call := range []struct {
			name string
			want int
			run  func()
		}{
			{"Agree", 1, func() { c.Agree(ctx, nil) }},
			{"Agree on an error", 1, func() { c.Agree(ctx, failed) }},
			{"AgreeMax", 1, func() { c.AgreeMax(ctx, nil, []int64{1}) }},
			{"OnRoot", 1, func() { c.OnRoot(ctx, nil, func() error { return nil }) }},
			{"Meet", 1, func() { c.Meet(ctx) }},
			{"Broadcast", 1, func() { c.Broadcast(ctx, 0, nil) }},
			{"AllGather", 1, func() { c.AllGather(ctx, nil) }},
			{"AllReduceInt64", 1, func() { c.AllReduceInt64(ctx, comm.Sum, nil) }},
			{"AllReduceFloat64", 1, func() { c.AllReduceFloat64(ctx, comm.Sum, nil) }},
			{"Split", 1, func() { c.Split(0, 0) }},
			{"SplitNode", 1, func() { c.SplitNode() }},
			{"the first Node", 3, func() { c.Node(ctx) }},
			{"a later Node", 0, func() { c.Node(ctx) }},
			{"SendRecv", 0, func() { c.SendRecv(ctx, -1, nil, -1, nil, 0) }},
		} {
			before := c.Collectives()
			call.run()
			if got := c.Collectives() - before; got != call.want {
				t.Errorf("%s counts %d, want %d", call.name, got, call.want)
			}
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
