package publish

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/comm"
)

// Boundary is a boundary condition, or anything else that is applied to the
// fields and that a restart has to find as it was. [Fixed] and [Moving] are
// examples of one without and one with state.
//
// A condition whose restore is more than an assignment implements
// [BoundaryPreparer] too.
type Boundary interface {
	// Config returns the condition's own configuration as JSON. A bundle loads
	// only into conditions whose configuration is equal to the saved one as a
	// JSON value.
	Config() (json.RawMessage, error)

	// CheckpointState returns the state as JSON, nil for a condition that has
	// none. It is collective, and must return the same on all ranks: what a rank
	// knows of its own part has to be agreed first. A rank that fails in it must
	// still take part in the collectives that the others are in.
	CheckpointState(ctx context.Context, c *comm.Comm) (json.RawMessage, error)

	// RestoreCheckpointState puts a saved state in place. It is not collective.
	// state is nil where none was saved: a condition that has state must return
	// an error that says so. With an error nothing may have changed.
	RestoreCheckpointState(state json.RawMessage) error
}

// BoundaryPreparer is implemented by conditions that can check a state without
// taking it. PrepareRestore returns the error that RestoreCheckpointState would
// return, or the function that puts the state in place and can't fail.
//
// Without it a load calls CheckpointState first, so as to be able to put back
// the old state when the restore of another condition fails.
type BoundaryPreparer interface {
	PrepareRestore(state json.RawMessage) (commit func(), err error)
}

// BoundaryRanksError tells that ranks have different configurations or states
// of the same boundary condition. It matches [ErrBoundary].
type BoundaryRanksError struct {
	// Index is the place of the condition in the order of application.
	Index int
	// What is "configuration" or "state".
	What string
	// Ranks are those that differ from rank 0, ascending.
	Ranks []int
}

func (e *BoundaryRanksError) Error() string {
	const most = 8
	more := ""
	ranks := e.Ranks
	if len(ranks) > most {
		more = fmt.Sprintf(" and %d more", len(ranks)-most)
		ranks = ranks[:most]
	}
	return fmt.Sprintf("boundary condition %d: the ranks have not the same %s: ranks %v%s differ from rank 0", e.Index, e.What, ranks, more)
}

// Is makes the error match ErrBoundary.
func (e *BoundaryRanksError) Is(target error) bool { return target == ErrBoundary }

// BoundaryRecords returns what a bundle keeps of the given conditions: the same
// on all ranks. It is collective. The error is the same on all ranks;
// it is a [*BoundaryRanksError] where a hook didn't return the same on all of
// them. [SaveBundle] does this by itself; it is for callers of [Directory].
func BoundaryRecords(ctx context.Context, c *comm.Comm, boundaries []Boundary) ([]BoundaryRecord, error) {
	return saveBoundaries(ctx, c, boundaries)
}

// RestoreBoundaries puts the recorded states into the given conditions, which
// are those that were saved, in the same order. It is collective: the outcome is
// the same on all ranks, and with an error no condition on any rank has
// changed. Number and configurations are compared first, as JSON values: key
// order is free, and 1 equals 1.0.
//
// Nil records, those of a bundle that says nothing about boundary conditions,
// restore conditions without state; one with state returns its error.
// [LoadBundle] does this by itself; it is for callers with metadata only.
func RestoreBoundaries(ctx context.Context, c *comm.Comm, records []BoundaryRecord, boundaries []Boundary) error {
	apply, err := prepareBoundaries(ctx, c, records, boundaries)
	if err != nil {
		return err
	}
	return apply(ctx)
}

func boundaryError(i int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: boundary condition %d: %w", ErrBoundary, i, err)
}

// agreeCount keeps ranks from running into different numbers of collectives.
func agreeCount(ctx context.Context, c *comm.Comm, n int) error {
	extent := []int64{int64(n), -int64(n)}
	if err := c.AllReduceInt64(ctx, comm.Max, extent); err != nil {
		return err
	}
	if most, least := extent[0], -extent[1]; most != least {
		return fmt.Errorf("%w: the ranks have from %d to %d boundary conditions", ErrBoundary, least, most)
	}
	return nil
}

func saveBoundaries(ctx context.Context, c *comm.Comm, boundaries []Boundary) ([]BoundaryRecord, error) {
	if err := agreeCount(ctx, c, len(boundaries)); err != nil {
		return nil, err
	}
	if boundaries == nil {
		return nil, nil
	}
	records := make([]BoundaryRecord, len(boundaries))
	var digests []byte
	for i, b := range boundaries {
		// One agreement for each: the next hook may be collective.
		err := comm.Protect(func() (err error) {
			if records[i].Config, err = readConfig(b); err != nil {
				return err
			}
			records[i].State, err = readState(ctx, c, b)
			return err
		})
		if err := c.Agree(ctx, boundaryError(i, err)); err != nil {
			return nil, err
		}
		digests = append(digests, digest(records[i].Config)...)
		digests = append(digests, digest(records[i].State)...)
	}
	if err := sameOnAllRanks(ctx, c, digests); err != nil {
		return nil, err
	}
	return shareRecords(ctx, c, records)
}

// sameOnAllRanks compares the digests: for each condition that of the
// configuration and that of the state.
func sameOnAllRanks(ctx context.Context, c *comm.Comm, digests []byte) error {
	all, err := c.AllGather(ctx, digests)
	if err != nil {
		return err
	}
	for at := 0; at < len(digests); at += sha256.Size {
		var ranks []int
		for r, d := range all {
			if !bytes.Equal(d[at:at+sha256.Size], all[0][at:at+sha256.Size]) {
				ranks = append(ranks, r)
			}
		}
		if ranks != nil {
			n := at / sha256.Size
			return &BoundaryRanksError{Index: n / 2, What: [2]string{"configuration", "state"}[n%2], Ranks: ranks}
		}
	}
	return nil
}

// shareRecords gives all ranks the spelling of rank 0, so that their metadata
// are equal byte for byte.
func shareRecords(ctx context.Context, c *comm.Comm, records []BoundaryRecord) ([]BoundaryRecord, error) {
	texts := make([][]byte, 0, 2*len(records))
	for _, r := range records {
		texts = append(texts, r.Config, r.State)
	}
	data, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	if data, err = c.Broadcast(ctx, 0, data); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &texts); err != nil {
		return nil, err
	}
	for i := range records {
		records[i] = BoundaryRecord{Config: texts[2*i], State: texts[2*i+1]}
	}
	return records, nil
}

func readConfig(b Boundary) (json.RawMessage, error) {
	config, err := b.Config()
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if err := checkJSON(config); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return jsonValue{raw: bytes.TrimSpace(config)}.compact(), nil
}

// readState returns nil for a condition without state.
func readState(ctx context.Context, c *comm.Comm, b Boundary) (json.RawMessage, error) {
	state, err := b.CheckpointState(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	if len(state) == 0 {
		return nil, nil
	}
	if err := checkJSON(state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	state = jsonValue{raw: bytes.TrimSpace(state)}.compact()
	if string(state) == "null" {
		return nil, nil
	}
	return state, nil
}

// digest is that of the value, whatever its spelling. The text is one that
// checkJSON took, or nil for null.
func digest(text json.RawMessage) []byte {
	canonical := "null"
	if text != nil {
		canonical = jsonValue{raw: text}.canonical()
	}
	sum := sha256.Sum256([]byte(canonical))
	return sum[:]
}

// prepareBoundaries checks whether the records can be restored. It is collective
// and changes nothing; apply is collective too, puts the states in place on all
// ranks, and with an error leaves all conditions as they were.
func prepareBoundaries(ctx context.Context, c *comm.Comm, records []BoundaryRecord, boundaries []Boundary) (apply func(context.Context) error, err error) {
	if err := agreeCount(ctx, c, len(boundaries)); err != nil {
		return nil, err
	}
	err = comm.Protect(func() error { return compareBoundaries(records, boundaries) })
	if err := c.Agree(ctx, err); err != nil {
		return nil, err
	}
	restores := make([]boundaryRestore, len(boundaries))
	plain := make([]int64, len(boundaries)+1) // the number is never 0, for the reduction
	for i, b := range boundaries {
		r := boundaryRestore{boundary: b, none: records == nil}
		if records != nil {
			r.state = records[i].State
		}
		p, ok := b.(BoundaryPreparer)
		if ok {
			err = errors.Join(err, boundaryError(i, comm.Protect(func() (err error) {
				r.commit, err = p.PrepareRestore(r.state)
				return r.explain(err)
			})))
		} else {
			plain[i] = 1
		}
		restores[i] = r
	}
	if err := c.Agree(ctx, err); err != nil {
		return nil, err
	}
	// The old states of the others are read where any rank needs them.
	if err := c.AllReduceInt64(ctx, comm.Max, plain); err != nil {
		return nil, err
	}
	for i := range restores {
		if plain[i] == 0 {
			continue
		}
		err := comm.Protect(func() (err error) {
			restores[i].old, err = readState(ctx, c, boundaries[i])
			return err
		})
		if err := c.Agree(ctx, boundaryError(i, err)); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return applyBoundaries(ctx, c, restores) }, nil
}

// boundaryRestore is a condition with the state that it is going to have.
type boundaryRestore struct {
	boundary Boundary
	state    json.RawMessage
	none     bool            // the bundle says nothing about boundary conditions
	commit   func()          // of a BoundaryPreparer
	old      json.RawMessage // of the others
}

// explain adds why there is no state to an error about that.
func (r *boundaryRestore) explain(err error) error {
	if err != nil && r.none {
		return fmt.Errorf("%w (the bundle has no %s)", err, keyBoundaries)
	}
	return err
}

func applyBoundaries(ctx context.Context, c *comm.Comm, restores []boundaryRestore) error {
	var err error
	done := 0
	for i := range restores {
		r := &restores[i]
		if r.commit == nil {
			err = boundaryError(i, r.explain(comm.Protect(func() error {
				return r.boundary.RestoreCheckpointState(r.state)
			})))
		}
		if err != nil {
			break
		}
		done++
	}
	err = c.Agree(ctx, err)
	if err == nil {
		for i, r := range restores {
			if r.commit != nil {
				err = errors.Join(err, boundaryError(i, comm.Protect(func() error { r.commit(); return nil })))
			}
		}
		return c.Agree(context.WithoutCancel(ctx), err)
	}
	for i := done - 1; i >= 0; i-- {
		r := restores[i]
		if r.commit != nil {
			continue
		}
		undo := comm.Protect(func() error { return r.boundary.RestoreCheckpointState(r.old) })
		if undo != nil {
			err = fmt.Errorf("%w (and boundary condition %d can't be put back: %w)", err, i, undo)
		}
	}
	return err
}

// compareBoundaries compares number and configurations of all conditions.
func compareBoundaries(records []BoundaryRecord, boundaries []Boundary) error {
	if records == nil {
		return nil
	}
	if len(records) != len(boundaries) {
		return fmt.Errorf("%w: %w: %d boundary conditions are saved, %d are wanted", ErrMismatch, ErrBoundary, len(records), len(boundaries))
	}
	for i, b := range boundaries {
		config, err := readConfig(b)
		if err != nil {
			return boundaryError(i, err)
		}
		saved := records[i].Config
		if err := checkJSON(saved); err != nil {
			return boundaryError(i, fmt.Errorf("saved configuration: %w", err))
		}
		if (jsonValue{raw: bytes.TrimSpace(saved)}).canonical() != (jsonValue{raw: config}).canonical() {
			return fmt.Errorf("%w: %w: boundary condition %d: the configuration is %s, saved was %s",
				ErrMismatch, ErrBoundary, i, shortenTo(string(config), 512), shortenTo(string(saved), 512))
		}
	}
	return nil
}
