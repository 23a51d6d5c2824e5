package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
)

// entry is one input that must be equal on all ranks.
type entry struct {
	What  string
	Value string
}

// agreeInputs is the first agreement of every call: no rank has an error with its
// own inputs, and all ranks gave the same. The error names the first entry that
// differs, with the value of rank 0 and that of the lowest rank that has another.
func agreeInputs(ctx context.Context, c *comm.Comm, err error, entries []entry) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrInput, err)
	}
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	text, err := json.Marshal(entries)
	if err != nil {
		return err
	}
	all, err := c.AllGather(ctx, text)
	if err != nil {
		return err
	}
	for r, b := range all {
		if !bytes.Equal(b, all[0]) {
			return disagreement(all[0], b, r)
		}
	}
	return nil
}

func disagreement(zero, other []byte, rank int) error {
	var a, b []entry
	if json.Unmarshal(zero, &a) == nil && json.Unmarshal(other, &b) == nil {
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				return fmt.Errorf("%w: the ranks disagree about %s: rank 0 has %s, rank %d has %s",
					ErrInput, a[i].What, a[i].Value, rank, b[i].Value)
			}
		}
	}
	return fmt.Errorf("%w: the ranks disagree: rank 0 has %s, rank %d has %s", ErrInput, zero, rank, other)
}
