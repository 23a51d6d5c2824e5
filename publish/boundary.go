package publish

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/fieldstone-io/fieldstone/internal/excerpt"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
	"github.com/fieldstone-io/fieldstone/internal/waiting"

	"github.com/fieldstone-io/fieldstone/comm"
)

// Boundary is a boundary condition, or anything else that is applied to the
// fields and that a restart has to find as it was. [Fixed] and [Moving] are
// examples of one without and one with state.
//
// A condition whose restore is more than an assignment implements
// [BoundaryPreparer] too.
type Boundary interface {
	// Config returns the condition's own configuration as JSON. It must be the
	// same on all ranks, and is not collective. A bundle loads only into
	// conditions whose configuration is equal to the saved one as a JSON value.
	Config() (json.RawMessage, error)

	// CheckpointState returns the state as JSON, nil for a condition that has
	// none. It is collective, and must return the same on all ranks: what a rank
	// knows of its own part has to be agreed first. A rank that fails in it must
	// still take part in the collectives that the others are in. It is called
	// when all ranks are known to have equal configurations in the same order.
	CheckpointState(ctx context.Context, c *comm.Comm) (json.RawMessage, error)

	// RestoreCheckpointState puts a saved state in place. It is not collective.
	// state is nil where none was saved: a condition that has state must return
	// an error that says so. With an error nothing may have changed; after a
	// panic the old state is put back by another call.
	RestoreCheckpointState(state json.RawMessage) error
}

// BoundaryPreparer is implemented by conditions that can check a state without
// taking it. PrepareRestore returns the error that RestoreCheckpointState would
// return, or the function that puts the state in place and can't fail: when it
// panics nevertheless, all ranks get an error, and states old and new are in
// place.
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
	// What is "configuration", "state" or "recorded state", one that was given to
	// [RestoreBoundaries].
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
// on all ranks. It is collective. No CheckpointState is called before all ranks
// are known to have the same configurations in the same order. Nil, which stands
// for nothing to say about conditions, and an empty list are not the same.
//
// The error is the same on all ranks and matches [ErrBoundary]; it is a
// [*BoundaryRanksError] where a hook didn't return the same on all of them.
// [SaveBundle] does this by itself; it is for callers of [Directory].
func BoundaryRecords(ctx context.Context, c *comm.Comm, boundaries []Boundary) ([]BoundaryRecord, error) {
	ctx = waiting.Named(ctx, "BoundaryRecords")
	if err := agreeCount(ctx, c, wantedBoundaries, lengthOrNil(boundaries)); err != nil {
		return nil, err
	}
	return saveBoundaries(ctx, c, boundaries)
}

// RestoreBoundaries puts the recorded states into the given conditions, which
// are those that were saved, in the same order. It is collective: the outcome is
// the same on all ranks. Number and configurations are compared first, as JSON
// values: key order is free, and 1 equals 1.0. The ranks give the same records
// and conditions; nil and an empty list are not the same.
//
// An error matches [ErrBoundary], and [ErrMismatch] too where other conditions
// were saved. It leaves the conditions of all ranks as they were, unless it says
// that old states can't be put back, because that failed too, or that a commit
// of a [BoundaryPreparer] panicked: then old and new states are in place.
//
// Nil records, those of a bundle that says nothing about boundary conditions,
// restore conditions without state; one with state returns its error.
// [LoadBundle] does this by itself; it is for callers with metadata only.
func RestoreBoundaries(ctx context.Context, c *comm.Comm, records []BoundaryRecord, boundaries []Boundary) error {
	ctx = waiting.Named(ctx, "RestoreBoundaries")
	if err := agreeCount(ctx, c, wantedBoundaries, lengthOrNil(boundaries)); err != nil {
		return err
	}
	if err := agreeCount(ctx, c, "records of boundary conditions", lengthOrNil(records)); err != nil {
		return err
	}
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

const wantedBoundaries = "boundary conditions"

// agreeCount keeps ranks from running into different numbers of collectives. n
// is -1 for nil.
func agreeCount(ctx context.Context, c *comm.Comm, what string, n int) error {
	extent := newExtent(n)
	if err := c.AllReduceInt64(ctx, comm.Max, extent[:]); err != nil {
		return err
	}
	return extent.check(what)
}

// extent is a number and its negative, of which the ranks make the maximum.
type extent [2]int64

func newExtent(n int) extent { return extent{int64(n), -int64(n)} }

// check says what is wrong if the number wasn't the same on all ranks.
func (e extent) check(what string) error {
	switch most, least := e[0], -e[1]; {
	case most == least:
		return nil
	case least < 0:
		return fmt.Errorf("%w: some ranks have nil for %s, others a list of %d", ErrBoundary, what, most)
	default:
		return fmt.Errorf("%w: the ranks have from %d to %d %s", ErrBoundary, least, most, what)
	}
}

// lengthOrNil is the length of a list, -1 for nil.
func lengthOrNil[T any](list []T) int {
	if list == nil {
		return -1
	}
	return len(list)
}

// saveBoundaries needs the same number of conditions on all ranks.
func saveBoundaries(ctx context.Context, c *comm.Comm, boundaries []Boundary) ([]BoundaryRecord, error) {
	if len(boundaries) == 0 {
		if boundaries == nil {
			return nil, nil
		}
		return []BoundaryRecord{}, nil
	}
	configs, err := readConfigs(ctx, c, boundaries)
	if err != nil {
		return nil, err
	}
	// The hooks for the states may be collective: from here on all ranks have the
	// same conditions in the same order.
	if err := sameOnAllRanks(ctx, c, "configuration", configs); err != nil {
		return nil, err
	}
	states := make([]json.RawMessage, len(boundaries))
	for i := range boundaries {
		if states[i], err = agreedState(ctx, c, boundaries, i); err != nil {
			return nil, err
		}
	}
	if err := sameOnAllRanks(ctx, c, "state", states); err != nil {
		return nil, err
	}
	records := make([]BoundaryRecord, len(boundaries))
	for i := range records {
		records[i] = BoundaryRecord{Config: configs[i], State: states[i]}
	}
	return shareRecords(ctx, c, records)
}

// readConfigs reads all configurations, before any hook that may be collective.
func readConfigs(ctx context.Context, c *comm.Comm, boundaries []Boundary) ([]json.RawMessage, error) {
	configs := make([]json.RawMessage, len(boundaries))
	var err error
	for i, b := range boundaries {
		err = comm.Protect(func() (err error) {
			configs[i], err = readConfig(b)
			return err
		})
		if err != nil {
			err = boundaryError(i, err)
			break
		}
	}
	return configs, c.Agree(ctx, err)
}

// agreedState reads one state. One agreement for each: the next hook may be
// collective.
func agreedState(ctx context.Context, c *comm.Comm, boundaries []Boundary, i int) (state json.RawMessage, err error) {
	err = comm.Protect(func() (err error) {
		state, err = readState(ctx, c, boundaries[i])
		return err
	})
	return state, c.Agree(ctx, boundaryError(i, err))
}

// sameOnAllRanks compares the values of all conditions.
func sameOnAllRanks(ctx context.Context, c *comm.Comm, what string, values []json.RawMessage) error {
	digests := make([]byte, 0, len(values)*sha256.Size)
	for _, v := range values {
		digests = append(digests, digest(v)...)
	}
	all, err := c.AllGather(ctx, digests)
	if err != nil {
		return err
	}
	for i := range values {
		var ranks []int
		at := i * sha256.Size
		for r, d := range all {
			if !bytes.Equal(d[at:at+sha256.Size], all[0][at:at+sha256.Size]) {
				ranks = append(ranks, r)
			}
		}
		if ranks != nil {
			return &BoundaryRanksError{Index: i, What: what, Ranks: ranks}
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
	if err := strictjson.Check(config); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return strictjson.Compact(config), nil
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
	if err := strictjson.Check(state); err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	state = strictjson.Compact(state)
	if string(state) == "null" {
		return nil, nil
	}
	return state, nil
}

// digest is that of the value, whatever its spelling. The text is one that
// strictjson.Check took, or empty for null.
func digest(text json.RawMessage) []byte {
	if len(text) == 0 {
		text = json.RawMessage("null")
	}
	sum := sha256.Sum256([]byte(strictjson.Canonical(text)))
	return sum[:]
}

// prepareBoundaries checks whether the records can be restored. It is collective,
// needs the same numbers of conditions and of records on all ranks, and changes
// nothing; apply is collective too, puts the states in place on all
// ranks, and with an error leaves all conditions as they were, with the
// exceptions that RestoreBoundaries has.
func prepareBoundaries(ctx context.Context, c *comm.Comm, records []BoundaryRecord, boundaries []Boundary) (apply func(context.Context) error, err error) {
	if len(boundaries) == 0 && len(records) == 0 {
		return func(context.Context) error { return nil }, nil
	}
	if err := checkBoundaries(ctx, c, records, boundaries); err != nil {
		return nil, err
	}
	restores := make([]boundaryRestore, len(boundaries))
	plain := make([]int64, len(boundaries)+1) // the number is never 0, for the reduction
	for i, b := range boundaries {
		r := boundaryRestore{boundary: b, none: records == nil}
		if records != nil {
			r.state = records[i].State
		}
		if p, ok := b.(BoundaryPreparer); ok {
			failed := comm.Protect(func() (err error) {
				r.commit, err = p.PrepareRestore(r.state)
				if err == nil && r.commit == nil {
					err = errors.New("PrepareRestore returned no function")
				}
				return r.explain(err)
			})
			err = cmp.Or(err, boundaryError(i, failed))
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
		if restores[i].old, err = agreedState(ctx, c, boundaries, i); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error { return applyBoundaries(ctx, c, restores) }, nil
}

// checkBoundaries makes sure that all ranks have the recorded conditions and the
// same records, before any hook that may be collective.
func checkBoundaries(ctx context.Context, c *comm.Comm, records []BoundaryRecord, boundaries []Boundary) error {
	configs, err := readConfigs(ctx, c, boundaries)
	if err != nil {
		return err
	}
	err = comm.Protect(func() error { return compareBoundaries(records, configs) })
	if err := c.Agree(ctx, err); err != nil {
		return err
	}
	if err := sameOnAllRanks(ctx, c, "configuration", configs); err != nil {
		return err
	}
	states := make([]json.RawMessage, len(records))
	for i, r := range records {
		states[i] = r.State
	}
	return sameOnAllRanks(ctx, c, "recorded state", states)
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
	done := 0 // so many may have changed
	for i := range restores {
		r := &restores[i]
		if r.commit == nil {
			err = r.explain(comm.Protect(func() error { return r.boundary.RestoreCheckpointState(r.state) }))
		}
		if _, panicked := errors.AsType[*comm.PanicError](err); err == nil || panicked {
			done++
		}
		if err != nil {
			err = boundaryError(i, err)
			break
		}
	}
	if err := c.Agree(ctx, err); err != nil {
		return undoBoundaries(ctx, c, restores[:done], err)
	}
	for i, r := range restores {
		if r.commit == nil {
			continue
		}
		failed := comm.Protect(func() error { r.commit(); return nil })
		if failed != nil {
			err = cmp.Or(err, boundaryError(i, fmt.Errorf("old and new states are in place now: %w", failed)))
		}
	}
	return c.Agree(context.WithoutCancel(ctx), err)
}

// undoBoundaries puts the old states of what was restored back in place. It
// returns err, on all ranks with what went wrong with that.
func undoBoundaries(ctx context.Context, c *comm.Comm, restores []boundaryRestore, err error) error {
	var undo error
	for i := len(restores) - 1; i >= 0; i-- {
		r := restores[i]
		if r.commit != nil {
			continue
		}
		failed := comm.Protect(func() error { return r.boundary.RestoreCheckpointState(r.old) })
		if failed != nil {
			undo = cmp.Or(undo, fmt.Errorf("boundary condition %d: %w", i, failed))
		}
	}
	if errors.Is(err, comm.ErrDead) {
		return err
	}
	if undo := c.Agree(context.WithoutCancel(ctx), undo); undo != nil {
		return fmt.Errorf("%w (and old states can't be put back: %w)", err, undo)
	}
	return err
}

// compareBoundaries compares number and configurations of all conditions.
func compareBoundaries(records []BoundaryRecord, configs []json.RawMessage) error {
	if records == nil {
		return nil
	}
	if len(records) != len(configs) {
		return fmt.Errorf("%w: %w: the bundle has %d boundary conditions, the solver %d", ErrMismatch, ErrBoundary, len(records), len(configs))
	}
	for i, config := range configs {
		saved := records[i].Config
		if err := strictjson.Check(saved); err != nil {
			return boundaryError(i, fmt.Errorf("saved configuration: %w", err))
		}
		if state := records[i].State; len(state) > 0 {
			if err := strictjson.Check(state); err != nil {
				return boundaryError(i, fmt.Errorf("saved state: %w", err))
			}
		}
		if strictjson.Canonical(saved) != strictjson.Canonical(config) {
			return fmt.Errorf("%w: %w: boundary condition %d: the configuration of the bundle is %s, the solver's %s",
				ErrMismatch, ErrBoundary, i, excerpt.Of(string(saved), 512, "..."), excerpt.Of(string(config), 512, "..."))
		}
	}
	return nil
}
