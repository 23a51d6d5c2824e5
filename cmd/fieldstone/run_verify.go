package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/runfile"
)

// runVerdicts is the key of the verdicts on files of runs.
const runVerdicts = "run_files"

// runVerdict is the outcome of verifying a file of a run.
type runVerdict struct {
	Path      string  `json:"path"`
	PathBytes []byte  `json:"path_bytes,omitempty"`
	State     state   `json:"state"`
	Kind      *string `json:"kind"`
	Version   *string `json:"format_version"`
	Writer    *string `json:"writer"`
	Ours      bool    `json:"ours"`
	Hashes    int     `json:"hashes"`    // that were computed again
	HashesBy  *string `json:"hashes_by"` // whose they are, null: ours
	States    int     `json:"saved_states"`
	// Checksums were found right, of the algorithm that the file names, null where it has
	// none; Unsummed are the objects with values that have none.
	Checksums int        `json:"checksums"`
	Algorithm *string    `json:"checksum_algorithm"`
	Unsummed  []string   `json:"without_checksum"`
	Bytes     *int64     `json:"bytes"`
	Faults    []runFault `json:"faults"`
	Error     *string    `json:"error"` // why it can't be judged

	number int // of the segment
}

// runFault is an object with which something is wrong. A fault of the file as a whole
// has none.
type runFault struct {
	Object string `json:"object"`
	Reason string `json:"reason"`
}

// runFaultLines are faults as text. One damage can be the reason why many objects can't
// be read: it is told once, with the first of them.
func runFaultLines(faults []runFault) []string {
	var reasons []string
	objects := make(map[string][]string)
	for _, f := range faults {
		if _, ok := objects[f.Reason]; !ok {
			reasons = append(reasons, f.Reason)
		}
		if f.Object != "" || objects[f.Reason] == nil {
			objects[f.Reason] = append(objects[f.Reason], f.Object)
		}
	}
	var lines []string
	for _, reason := range reasons {
		list := objects[reason]
		const most = 3
		if n := len(list) - most; n > 1 {
			list = append(list[:most:most], fmt.Sprintf("and %d more", n))
		}
		line := reason
		if object := strings.Join(list, ", "); object != "" {
			line = object + ": " + reason
		}
		lines = append(lines, line)
	}
	return lines
}

// runFile verifies a file of a run. One that was found in a directory need not be one.
func (v *verification) runFile(ctx context.Context, path string, listed bool) error {
	info, faults, err := judgeRun(ctx, path, v.warnRun("verify"))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	foreign := slices.ContainsFunc(faults, func(f error) bool { return isForeign(path, f) })
	if foreign && !listed {
		v.reportRun("verify", path, faults[0])
		v.status = statusFailed
		return nil
	}
	if listed && (err != nil || len(faults) > 0) && passedOver(path, faults, err) {
		return nil
	}
	r := newRunVerdict(info, faults, err)
	for _, line := range runFaultLines(r.Faults) {
		v.fault(path, "", line)
	}
	if r.Error != nil {
		v.fault(path, "", *r.Error)
	}
	return v.judged(runVerdicts, r)
}

// judgeRun is the judgement of a file of a run that all commands share which say whether it
// is good.
func judgeRun(ctx context.Context, path string, opts ...runfile.Option) (*runfile.Info, []error, error) {
	info, faults, err := runfile.Faults(ctx, path, opts...)
	if err == nil {
		faults = append(faults, info.LostBundles()...)
	}
	return info, faults, err
}

// passedOver tells whether a file that was found in a directory is none of a run, or is
// there no longer.
func passedOver(path string, faults []error, err error) bool {
	info, gone := os.Lstat(path)
	if errors.Is(gone, fs.ErrNotExist) {
		return true
	}
	if gone == nil && info.IsDir() {
		return false // in the place of a file of a run
	}
	unknown := errors.Is(err, runfile.ErrNoHDF5) && !isRunName(filepath.Base(path))
	return unknown || slices.ContainsFunc(faults, func(f error) bool { return isForeign(path, f) })
}

func newRunVerdict(i *runfile.Info, faults []error, err error) *runVerdict {
	r := &runVerdict{
		Path: i.File, PathBytes: notUTF8(i.File), State: stateGood, Version: known(i.Version), Writer: known(i.Writer),
		Ours: i.Ours, Hashes: i.Hashes, States: len(i.Times), Bytes: sizeOf(i), Faults: []runFault{},
		HashesBy:  known(i.HashesBy),
		Checksums: i.Checksums, Algorithm: known(i.ChecksumAlgorithm), Unsummed: append([]string{}, i.Unsummed...),
	}
	if !unread(faults, err) {
		r.Kind = pointer(runKind(i))
		r.number, _ = i.Segment()
	}
	for _, f := range faults {
		r.State = stateBad
		r.Faults = append(r.Faults, newRunFault(i.File, f))
	}
	if err != nil {
		r.State, r.Error = stateUnreadable, pointer(runReason(i.File, err))
	}
	return r
}

func (r *runVerdict) state() state { return r.State }

func (r *runVerdict) String() string {
	if r.State != stateGood {
		return fmt.Sprintf("%s: %s", r.Path, r.State)
	}
	kind := *r.Kind
	if kind == "segment" {
		kind = fmt.Sprintf("segment %d", r.number)
	}
	hashes := fmt.Sprintf("%d hashes", r.Hashes)
	switch {
	case r.HashesBy != nil:
		hashes = "hashes of another writer not checked"
	case r.Hashes == 0:
		hashes = "no hashes"
	case r.Hashes == 1:
		hashes = "1 hash"
	}
	return fmt.Sprintf("%s: good (%s, %s, %s, %s, %s)", r.Path, kind, count(int64(r.States), "state"), hashes, r.checksums(), orNoSize(r.Bytes))
}

// checksums says how much of a good file has checksums.
func (r *runVerdict) checksums() string {
	const most = 3
	switch n := len(r.Unsummed); {
	case r.Algorithm == nil:
		return "no checksums"
	case r.Checksums == 0 && *r.Algorithm != "CRC-64/NVME":
		return fmt.Sprintf("checksums of the algorithm %q not checked", *r.Algorithm)
	case n == 0:
		return count(int64(r.Checksums), "checksum")
	case n > most:
		return fmt.Sprintf("%s, none of %s and %d more", count(int64(r.Checksums), "checksum"), strings.Join(r.Unsummed[:most], ", "), n-most)
	}
	return fmt.Sprintf("%s, none of %s", count(int64(r.Checksums), "checksum"), strings.Join(r.Unsummed, ", "))
}
