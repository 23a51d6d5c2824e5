//go:build linux && (amd64 || arm64)

package gputest

import (
	"errors"
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
	// Release is the function that gives a context back, and everything in it
	// if it is lost. Where there is none, the driver keeps it.
	Release string
	// Forget makes the next opening load the library again.
	Forget func()
}

// Faults makes each call of each function of the driver fail, one by one, with each of
// the faults. Each time there must be one clear error, and in the end nothing left.
func Faults(t *testing.T, c Config, faults []Fault) {
	whole := script{image: c.Image}
	if whole.run(c.Space); len(whole.errs) > 0 {
		t.Fatalf("without a fault: %v", errors.Join(whole.errs...))
	}
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
		if live := c.live(function, f); live != (fakegpu.Live{}) {
			t.Errorf("call %d, %s: left over: %+v", nth, f.Name, live)
		}
		if len(s.errs) == 0 {
			return nth - 1
		}
		if err := s.check(f, c.Space); err != nil {
			t.Errorf("call %d, %s: %v", nth, f.Name, err)
			return nth
		}
	}
}

// live returns what is left over and should not be.
func (c Config) live(function string, f Fault) fakegpu.Live {
	live := c.GPU.Live()
	switch {
	case c.Release == "" && f.Sticky:
		return fakegpu.Live{}
	case c.Release == "", function == c.Release && f.Sticky:
		live.Contexts = 0
	}
	return live
}
