package publish

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
)

// entry is one input that must be equal on all ranks.
type entry struct {
	What  string
	Value string
}

// pathEntry is the path as the caller gave it.
const pathEntry = "the path"

// errPaths says that the ranks' paths differ: then no path can name the call in
// an error that is to be the same on all ranks.
var errPaths = fmt.Errorf("%w: the ranks disagree about the path", ErrInput)

// named puts the call before an error that all ranks share.
func named(op, path string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errPaths):
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s %s: %w", op, path, err)
}

// inputs is what a rank tells the others: the path, and a digest of all entries.
type inputs struct {
	Path   string
	Digest [sha256.Size]byte
}

// agreeInputs is the first agreement of every call: the ranks mean the same path,
// no rank has an error with its own inputs, and all ranks gave the same. The
// first entry is the path. The error names the first entry that differs, with
// the value of rank 0 and that of the lowest rank that has another. The entries
// themselves travel only to say what differs.
func agreeInputs(ctx context.Context, c *comm.Comm, invalid error, entries []entry) error {
	text, err := json.Marshal(entries)
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	mine, err := json.Marshal(inputs{entries[0].Value, sha256.Sum256(text)})
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	// All ranks judge the same gathered lists, so their verdicts are the same.
	all, err := gather[inputs](ctx, c, mine)
	if err != nil {
		return err
	}
	same := true
	for r, in := range all {
		if in.Path != all[0].Path {
			return fmt.Errorf("%w: rank 0 has %s, rank %d has %s", errPaths, all[0].Path, r, in.Path)
		}
		same = same && in.Digest == all[0].Digest
	}
	if err := c.Agree(ctx, inputError(invalid)); err != nil || same {
		return err
	}
	lists, err := gather[[]entry](ctx, c, text)
	if err != nil {
		return err
	}
	for r, list := range lists {
		if err := sameEntries(lists[0], list, r); err != nil {
			return err
		}
	}
	return nil
}

func gather[T any](ctx context.Context, c *comm.Comm, text []byte) ([]T, error) {
	texts, err := c.AllGather(ctx, text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &all[r]); err != nil {
			return nil, fmt.Errorf("inputs of rank %d: %w", r, err)
		}
	}
	return all, nil
}

func sameEntries(zero, other []entry, rank int) error {
	for i := range min(len(zero), len(other)) {
		if a, b := zero[i], other[i]; a != b {
			if a.What != b.What {
				return fmt.Errorf("%w: the ranks disagree: rank 0 has %s %s, rank %d has %s %s",
					ErrInput, a.What, a.Value, rank, b.What, b.Value)
			}
			return fmt.Errorf("%w: the ranks disagree about %s: rank 0 has %s, rank %d has %s",
				ErrInput, a.What, a.Value, rank, b.Value)
		}
	}
	if len(zero) != len(other) {
		return fmt.Errorf("%w: the ranks disagree: rank 0 gives %d inputs, rank %d gives %d", ErrInput, len(zero), rank, len(other))
	}
	return nil
}

func inputError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrInput, err)
}
