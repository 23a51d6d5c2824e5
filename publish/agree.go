package publish

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/fieldstone-io/fieldstone/comm"
)

// entry is one input that must be equal on all ranks.
type entry struct {
	What  string
	Value string
}

const (
	pathEntry     = "the path"     // as the caller gave it
	metadataEntry = "the metadata" // their text, which an error takes apart
)

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

// agreeInputs is the first agreement of every call: the ranks mean the same path,
// no rank has an error with its own inputs, and all ranks gave the same. The
// first entry is the path. maxima become those of all ranks: what else the ranks
// have to know of each other travels in the same message.
//
// The error names the first entry that differs, with the value of rank 0 and that
// of the lowest rank that has another.
func agreeInputs(ctx context.Context, c *comm.Comm, invalid error, entries []entry, maxima ...*int64) error {
	const words = sha256.Size / 8
	digest := digestEntries(entries)
	v := make([]int64, 1+2*words, 1+2*words+len(maxima))
	if invalid != nil {
		v[0] = 1
	}
	for i := range words {
		w := int64(binary.LittleEndian.Uint64(digest[8*i:]))
		v[1+i], v[1+words+i] = w, ^w // the maximum of ^w is ^ of the minimum
	}
	for _, m := range maxima {
		v = append(v, *m)
	}
	if err := c.AgreeMax(ctx, nil, v); err != nil {
		return err
	}
	for i, m := range maxima {
		*m = v[1+2*words+i]
	}
	same := v[0] == 0
	for i := range words {
		same = same && v[1+i] == ^v[1+words+i]
	}
	if same {
		return nil
	}
	return explainInputs(ctx, c, invalid, entries)
}

func digestEntries(entries []entry) [sha256.Size]byte {
	var b []byte
	for _, e := range entries {
		for _, s := range []string{e.What, e.Value} {
			b = binary.AppendUvarint(b, uint64(len(s)))
			b = append(b, s...)
		}
	}
	return sha256.Sum256(b)
}

// explainInputs says what is wrong, or different, on which rank. All ranks judge
// the same gathered lists, so their verdicts are the same.
func explainInputs(ctx context.Context, c *comm.Comm, invalid error, entries []entry) error {
	paths, err := gather(ctx, c, entries[0].Value)
	if err != nil {
		return err
	}
	for r, path := range paths {
		if path != paths[0] {
			return fmt.Errorf("%w: rank 0 has %s, rank %d has %s", errPaths, paths[0], r, path)
		}
	}
	if err := c.Agree(ctx, inputError(invalid)); err != nil {
		return err
	}
	var list []entry
	for _, e := range entries {
		if e.What == metadataEntry {
			list = append(list, metadataParts(e.Value)...)
		} else {
			list = append(list, e)
		}
	}
	lists, err := gather(ctx, c, list)
	if err != nil {
		return err
	}
	for r, list := range lists {
		if err := sameEntries(lists[0], list, r); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the ranks disagree", ErrInput)
}

// metadataParts are the keys of an encoded metadata.json, one by one.
func metadataParts(text string) []entry {
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return []entry{{metadataEntry, text}}
	}
	var list []entry
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		list = append(list, entry{"the metadata's " + key, string(keys[key])})
	}
	return list
}

// gather gives all ranks' values, which JSON can hold, to all ranks.
func gather[T any](ctx context.Context, c *comm.Comm, value T) ([]T, error) {
	text, err := json.Marshal(value)
	if err := c.Agree(ctx, err); err != nil {
		return nil, err
	}
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
