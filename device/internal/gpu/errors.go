package gpu

import (
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/device"
)

// driverError is a result of the driver that isn't success.
type driverError struct {
	code    Code
	meaning Meaning
	detail  string
}

func (e *driverError) Error() string {
	text := e.meaning.Err.Error() + ": " + e.meaning.Name
	if e.detail != "" {
		text += ": " + e.detail
	}
	return text
}

func (e *driverError) Unwrap() error { return e.meaning.Err }

// lostError is what is left of the first sticky error.
type lostError struct {
	origin string
	cause  *driverError
}

func (e *lostError) Error() string {
	return fmt.Sprintf("%v since %s: %v", device.ErrLost, e.origin, e.cause)
}

func (e *lostError) Unwrap() []error { return []error{device.ErrLost, e.cause} }

// refused is set in a result of making the space's context current.
const refused Code = 1 << 30

// check turns a result into an error. A context that the driver says is none has been
// destroyed by the solver: the space is lost. In other calls the same result may be
// about an argument.
func (s *Space) check(c Code) error {
	if c == Success {
		return nil
	}
	code := c &^ refused
	m := s.api.Meaning(code)
	if c != code && errors.Is(m.Err, device.ErrInvalid) {
		m.Sticky = true
	}
	return &driverError{code: code, meaning: m}
}

// fail returns the error of a call. The first sticky one loses the space.
func (s *Space) fail(op string, err error) error {
	e := &device.Error{Space: s.name, Op: op, Err: err}
	switch err := err.(type) {
	case *driverError:
		e.Code = int(err.code)
		if err.meaning.Sticky {
			if first := s.lose(op, err); first != nil {
				e.Err, e.Code = first, int(first.cause.code)
			} else {
				e.Err = fmt.Errorf("%w: %w", device.ErrLost, err)
			}
		}
	case *lostError:
		e.Code = int(err.cause.code)
	}
	return e
}

// lose marks the space as lost, or returns why it is already.
func (s *Space) lose(op string, cause *driverError) *lostError {
	if k := s.launched.Load(); k != nil {
		// Queued work fails anonymously; this is the best guess.
		cause.detail = fmt.Sprintf("the last kernel launched was %q", k.name)
	}
	if s.lost.CompareAndSwap(nil, &lostError{op, cause}) {
		return nil
	}
	return s.lost.Load()
}
