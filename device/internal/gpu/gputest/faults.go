package gputest

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// Fault is an error of the driver.
type Fault struct {
	Code   int
	Name   string
	Is     error
	Sticky bool
}

// Config tells what to test.
type Config struct {
	GPU   *fakegpu.Driver
	Space string // name of the space
	Image []byte // module of package devicetest
	// Functions are all of the driver that are used.
	Functions []string
	// Quiet are those whose failure is no error, and why.
	Quiet map[string]string
	// Release is the function whose failure for good leaves a context.
	Release string
	// Forget makes the next opening load the library again.
	Forget func()
}

// Faults makes each call of each function of the driver fail, one by one, with each of
// the faults. Each time there must be one clear error, and in the end nothing left.
func Faults(t *testing.T, c Config, faults []Fault) {
	for _, function := range c.Functions {
		t.Run(function, func(t *testing.T) {
			for _, f := range faults {
				calls := c.failEach(t, function, f)
				if _, quiet := c.Quiet[function]; calls == 0 && !quiet {
					t.Errorf("%s: never fails with an error", f.Name)
				}
			}
		})
	}
}

// failEach lets one call after the other fail, and returns how many there were.
func (c Config) failEach(t *testing.T, function string, f Fault) (calls int) {
	for nth := 1; ; nth++ {
		c.GPU.Reset()
		c.Forget()
		c.GPU.Fail(function, nth, f.Code)
		s := script{image: c.Image}
		s.run(c.Space)
		live := c.GPU.Live()
		if function == c.Release && f.Sticky {
			live.Contexts = 0
		}
		if live != (fakegpu.Live{}) {
			t.Errorf("call %d, %s: left over: %+v", nth, f.Name, live)
		}
		if len(s.errs) == 0 {
			return nth - 1
		}
		if err := s.check(f, c.Space); err != nil {
			t.Errorf("call %d, %s: %v", nth, f.Name, err)
		}
	}
}
