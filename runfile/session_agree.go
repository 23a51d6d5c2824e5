package runfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// call names a collective call of a session.
type call int64

const (
	callSave call = iota + 1
	callCheckpoint
	callClose
)

func (k call) String() string {
	return map[call]string{callSave: "SaveState", callCheckpoint: "Checkpoint", callClose: "Close"}[k]
}

// atWork returns the context of a call to which all ranks have come, and what ends the
// call: however long one of them takes with the files, the others wait, and it is told,
// by the logger of the rank itself.
func (s *Session) atWork(ctx context.Context, call string) (work context.Context, end func()) {
	return waiting.Begin(s.c.AtWork(ctx), s.cfg.Logger, s.c.Rank(), call+" run "+s.cfg.Name)
}

// cleanUp is for the end of a call in which all ranks got the same error: rank 0 removes
// something, and the others wait for it where they know that it is at work. That one
// doesn't come is for the next call to say.
func (s *Session) cleanUp(ctx context.Context, err error, what string, remove func() error) {
	ctx = context.WithoutCancel(ctx)
	if s.c.Rank() == 0 {
		if err := waiting.Step(ctx, "remove", what, remove)(); err != nil {
			s.log.Warn(what+" is left", "error", err)
		}
	}
	if s.apart == nil && !errors.Is(err, comm.ErrDead) {
		_ = s.c.Meet(ctx)
	}
}

func boolFlag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// flagBits is how many reasons to stop there can be.
const flagBits = 16

// together is the agreement that every collective call of a session begins with: all
// ranks are in the same call, at the same accepted time, with as many calls of SetFields,
// without an error. flags are
// whether a checkpoint is due and the bits of the reasons to stop, or for Close whether
// there was a wrong call, after which the times may differ; they become those of all
// ranks. The message is the same for all calls, so that ranks in different ones find
// out.
//
// Once the ranks are out of step no rank waits for another again: which of them still
// calls, nobody knows.
func (s *Session) together(ctx context.Context, k call, err error, flags []int64) error {
	if s.apart != nil {
		return s.apart
	}
	err = s.meet(ctx, k, err, flags)
	if errors.Is(err, ErrOutOfStep) {
		s.apart = err
	}
	return err
}

func (s *Session) meet(ctx context.Context, k call, err error, flags []int64) error {
	const head = 6
	bits := int64(math.Float64bits(s.time))
	v := make([]int64, head+1+flagBits)
	// The maximum of ^x is ^ of the minimum.
	v[0], v[1], v[2], v[3], v[4], v[5] = int64(k), ^int64(k), bits, ^bits, s.swaps, ^s.swaps
	if flags != nil {
		v[head] = flags[0]
		for i := range flagBits {
			v[head+1+i] = flags[1] >> i & 1
		}
	}
	if err := s.c.AgreeMax(ctx, err, v); err != nil {
		return err
	}
	if first, second := call(v[0]), call(^v[1]); first != second {
		return fmt.Errorf("%w: some are in %v, others in %v", ErrOutOfStep, first, second)
	}
	if wrong := k == callClose && v[head] != 0; v[2] != ^v[3] && !wrong {
		return fmt.Errorf("%w: their accepted times are %v s and %v s", ErrOutOfStep,
			math.Float64frombits(uint64(v[2])), math.Float64frombits(uint64(^v[3])))
	}
	// Nothing is read from fields any more when a session is closed.
	if k != callClose && v[4] != ^v[5] {
		return fmt.Errorf("%w: they have called SetFields %d and %d times", ErrOutOfStep, v[4], ^v[5])
	}
	if flags != nil {
		flags[0], flags[1] = v[head], 0
		for i := range flagBits {
			flags[1] |= v[head+1+i] << i
		}
	}
	return nil
}

// An input is a part of the configuration that all ranks give alike.
type input struct{ What, Value string }

// agreeInputs compares the configurations of all ranks. The error names the first
// input that differs.
func agreeInputs(ctx context.Context, c *comm.Comm, err error, list []input) error {
	text, jerr := json.Marshal(list)
	if err == nil {
		err = jerr
	}
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	texts, err := c.AllGather(ctx, text)
	if err != nil {
		return err
	}
	lists := make([][]input, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &lists[r]); err != nil {
			return fmt.Errorf("inputs of rank %d: %w", r, err)
		}
		for i := range min(len(lists[0]), len(lists[r])) {
			if a, b := lists[0][i], lists[r][i]; a != b {
				return fmt.Errorf("%w: the ranks disagree about %s: rank 0 has %s, rank %d has %s", ErrInput, a.What, a.Value, r, b.Value)
			}
		}
	}
	return nil
}
