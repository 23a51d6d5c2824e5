package comm_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
)

// The mistakes that a Run group notices. Each rank does its part; all of those
// that wait must fail with an error that says what is wrong.
func TestRunNotices(t *testing.T) {
	ctx := context.Background()
	cases := []struct {
		name string
		part func(c *comm.Comm) error // of rank 1; the others call Meet
		want []string                 // in the error of rank 0
		is   []error
	}{
		{
			"a rank that returns early",
			func(c *comm.Comm) error { return nil },
			[]string{"rank 1 returned", "Meet"},
			[]error{comm.ErrLeft, comm.ErrDead},
		},
		{
			"a rank that returns an error",
			func(c *comm.Comm) error { return errors.New("no more paper") },
			[]string{"rank 1 returned: no more paper"},
			[]error{comm.ErrLeft, comm.ErrDead},
		},
		{
			"a rank that panics",
			func(c *comm.Comm) error { panic("ouch") },
			[]string{"rank 1 returned: panic: ouch"},
			[]error{comm.ErrLeft, comm.ErrDead},
		},
		{
			"a rank whose goroutine exits",
			func(c *comm.Comm) error { runtime.Goexit(); return nil },
			[]string{"rank 1 returned: its goroutine exited"},
			[]error{comm.ErrLeft, comm.ErrDead},
		},
		{
			"another collective",
			func(c *comm.Comm) error { _, err := c.AllGather(ctx, nil); return err },
			[]string{"AllGather", "Meet"},
			[]error{comm.ErrMismatch, comm.ErrDead},
		},
		{
			"a partner that sends nothing",
			func(c *comm.Comm) error { return c.SendRecv(ctx, -1, nil, 0, make([]byte, 1), 0) },
			[]string{"waited 200ms in"},
			[]error{comm.ErrDead},
		},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var first error
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
			}, comm.Watch(200*time.Millisecond))
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
