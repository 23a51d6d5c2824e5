package comm

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"
)

// A RankError is the error that all ranks agreed on: that of the lowest failing
// rank. It is equal on all ranks but for Cause.
type RankError struct {
	Rank  int           // the lowest failing rank, in the communicator that agreed
	Text  string        // the error's text on that rank
	Errno syscall.Errno // the operating system's error behind it, 0 if none

	sentinels []error // registered errors that the cause wraps
	agreed    bool    // the text names the rank already: an earlier agreement of the same ranks
	link      link    // where it was agreed on
	cause     error
}

// Error gives "rank 2: write field: no space left on device".
func (e *RankError) Error() string {
	if e.agreed {
		return e.Text
	}
	return fmt.Sprintf("rank %d: %s", e.Rank, e.Text)
}

// Unwrap gives the errno and the registered errors that the cause wrapped, the
// same ones on every rank.
func (e *RankError) Unwrap() []error {
	var list []error
	if e.Errno != 0 {
		list = append(list, e.Errno)
	}
	return append(list, e.sentinels...)
}

// Cause is the error itself on the rank that had it, for a log, and nil on the
// others. It is not part of Unwrap, lest ranks branch differently.
func (e *RankError) Cause() error { return e.cause }

// Register makes a sentinel error known under a name that is the same on all
// ranks: an error returned by Agree then wraps it on every rank if the failing
// rank's error did. Call it from a package's init. It panics on a name that
// stands for another error already, as that is a mistake in the program. The
// errors of this module's packages and some of the standard library's are known
// without it.
func Register(name string, sentinelError error) { sentinel.Register(name, sentinelError) }

// wireError is a RankError in transit.
type wireError struct {
	Rank      int      `json:"rank"`
	Text      string   `json:"text"`
	Errno     int      `json:"errno,omitempty"`
	Sentinels []string `json:"sentinels,omitempty"`
	Agreed    bool     `json:"agreed,omitempty"`
}

func (c *Comm) encodeError(err error) []byte {
	w := wireError{Rank: c.rank, Text: err.Error()}
	if re, ok := errors.AsType[*RankError](err); ok && re.link == c.link {
		w.Rank, w.Agreed = re.Rank, true
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		w.Errno = int(errno)
	}
	w.Sentinels = sentinel.Names(err)
	slices.Sort(w.Sentinels)
	data, jsonErr := json.Marshal(w)
	if jsonErr != nil { // strings and ints always marshal
		return []byte(`{"text":"error that cannot be sent"}`)
	}
	return data
}

func (c *Comm) decodeError(data []byte) (*RankError, error) {
	var w wireError
	if err := json.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("decode a rank's error: %w", err)
	}
	e := &RankError{Rank: w.Rank, Text: w.Text, Errno: syscall.Errno(w.Errno), agreed: w.Agreed, link: c.link,
		sentinels: sentinel.Errors(w.Sentinels)}
	return e, nil
}
