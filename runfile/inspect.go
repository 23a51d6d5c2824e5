package runfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// Info is what a file of a run holds, but for the values of its unknowns.
type Info struct {
	File    string
	Bytes   int64
	Version string // of the format
	// Writer is what the file says of its writer; only ours says so.
	Writer string
	// Ours says that this package wrote the file. Only then is there a mark that it is
	// complete.
	Ours bool
	// Commit and CodeVersion are those of the program that wrote the file.
	Commit, CodeVersion string

	Settings record.Record
	// HashesBy says whose the hashes of the settings are, if they are another writer's:
	// the file's, or one whose settings were joined into it. Such hashes are carried and
	// never computed again. It is "unknown" where the writer has no name.
	HashesBy string
	Hashes   int // of the settings that [Faults] has found right
	// ChecksumAlgorithm is what the file says of its checksums, empty where it has none.
	// Those of CRC-64/NVME are compared by [Faults]: Checksums were right, and Unsummed are
	// the objects with values that have none.
	ChecksumAlgorithm string
	Checksums         int
	Unsummed          []string

	Layout   Layout
	Times    []float64
	Unknowns []Stored

	Statistics Statistics   // of an output
	Updates    []UpdateInfo // likewise
	// State is what a checkpoint holds, nil for an output. It has no State vector.
	State *Checkpoint

	asCheckpoint bool // it has the group checkpoint
}

// Stored is an unknown as it is in a file.
type Stored struct {
	Unknown
	HasUnit bool // the file stores the unit
	// Datasets are those with its values: none without a saved state, and one for each
	// radius where each has a momentum grid.
	Datasets []DatasetInfo
	Bundle   string // path of the bundle that holds the field in place of a checkpoint
}

// DatasetInfo is a dataset in a file.
type DatasetInfo struct {
	Path  string
	Shape []int // in C order, time first
	// Bytes is what its values take in the file, without the room that chunks have for
	// more.
	Bytes int64
}

// UpdateInfo is an interval update of which a file has the states.
type UpdateInfo struct {
	Name   string
	Length int // numbers of a state
}

// Segment tells of which segment the file is the output. The output of joined segments
// has settings of the last one, but states from before its start, and is of none.
func (i *Info) Segment() (number int, ok bool) {
	if i.State != nil {
		return 0, false
	}
	n, err := intAt(i.Settings, "segment/index")
	if err != nil || n < 1 {
		return 0, false
	}
	if start, err := floatAt(i.Settings, "segment/start_time"); err == nil && precedes(i.Times, start) {
		return 0, false
	}
	return int(n), true
}

// precedes tells whether there are times before the start of a segment, as the output
// of joined segments has them.
func precedes(times []float64, start float64) bool { return len(times) > 0 && times[0] < start }

// Inspect tells what a file holds, output or checkpoint, without reading the values of
// its unknowns, and what is wrong with it as far as that shows. The error says that the
// file can't be judged. The result is never nil, and has what could be read.
func Inspect(ctx context.Context, path string, opts ...Option) (*Info, []error, error) {
	i, faults, err := look(ctx, path, false, opts)
	if err != nil {
		err = fmt.Errorf("inspect: %w", err)
	}
	return i, faults, err
}

// An inspector looks at the parts of a file, one after another, whatever is wrong with
// those before.
type inspector struct {
	*Info
	f      *h5.File
	r      root
	o      *options
	values bool // read those of the unknowns too
	faults []error
	units  map[string]string
}

// look inspects a file. An error says that it can't be judged.
func look(ctx context.Context, path string, values bool, opts []Option) (*Info, []error, error) {
	i := &inspector{Info: &Info{File: path}, values: values}
	o, err := newOptions(opts)
	if err != nil {
		return i.Info, nil, ofFile(path, "", err)
	}
	i.o = o
	if err := ctx.Err(); err != nil {
		return i.Info, nil, err
	}
	i.f, err = h5.Open(path)
	if err == nil {
		err = errors.Join(i.all(ctx), i.f.Close())
	}
	if err != nil && !cannotJudge(err) {
		i.faults, err = append(i.faults, err), nil
	}
	for n, fault := range i.faults {
		i.faults[n] = located(fault)
	}
	return i.Info, i.faults, located(err)
}

// cannotJudge tells what is wrong with the means from what is wrong with the file.
func cannotJudge(err error) bool {
	var system *h5.LibraryError
	return errors.Is(err, ErrVersion) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &system) && system.Errno != 0 || unopened(err)
}

// unopened tells whether the system doesn't give the file.
func unopened(err error) bool {
	var e *h5.Error
	return errors.As(err, &e) && e.Op == "open" && !errors.Is(err, h5.ErrFormat)
}

// keep notes a fault, and returns an error that isn't one.
func (i *inspector) keep(err error) error {
	if err == nil || cannotJudge(err) {
		return err
	}
	i.faults = append(i.faults, err)
	return nil
}

// all looks at every part. The error is a fault of the file as a whole, or says that it
// can't be judged.
func (i *inspector) all(ctx context.Context) (err error) {
	if i.Bytes, err = i.f.Size(); err != nil {
		return err
	}
	i.Writer, i.Commit, i.CodeVersion = i.text(writerAttribute), i.text("runes2p_commit"), i.text("runes2p_version")
	if i.r, err = readRoot(i.f); err != nil {
		i.Version = i.r.version
		return err
	}
	i.Version, i.Ours, i.asCheckpoint = i.r.version, i.r.ours, i.r.checkpoint
	parts := []func(context.Context) error{i.settings, i.layout, i.times, i.unknowns, i.scales, i.statistics, i.updates}
	if i.r.checkpoint {
		parts = []func(context.Context) error{i.settings, i.layout, i.times, i.unknowns, i.scales, i.checkpoint}
	}
	for _, part := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := i.keep(part(ctx)); err != nil {
			return err
		}
	}
	return i.rest()
}

// text is a root attribute, empty where it is none or not there.
func (i *inspector) text(name string) string {
	s, err := i.f.AttributeString("/", name)
	if err != nil {
		return ""
	}
	return s
}

func (i *inspector) settings(context.Context) (err error) {
	if i.Settings, err = readSettings(i.f, i.sums()); err != nil {
		return err
	}
	i.HashesBy, err = hashWriter(i.f, i.r)
	return err
}

func (i *inspector) layout(context.Context) error {
	l, units, err := readLayout(i.f, i.o.warn, i.sums())
	if err != nil {
		return err
	}
	i.Layout, i.units = *l, units
	return nil
}

func (i *inspector) times(context.Context) error {
	has, err := i.f.Exists("time")
	if err != nil || !has {
		return err
	}
	times, err := readVector[float64](i.f, "time")
	if err != nil {
		return err
	}
	if err := checkTimes(times); err != nil {
		return in(i.f.Name(), "time", ErrMismatch, "%v", err)
	}
	i.Times = times
	return i.sums().times(times)
}

func (i *inspector) unknowns(ctx context.Context) error {
	var bundles map[string]string
	if i.r.checkpoint {
		var err error
		if bundles, err = readBundles(i.f, &i.Layout); i.keep(err) != nil {
			return err
		}
	}
	from := 0 // in the state
	for n := range i.Layout.Unknowns {
		u := &i.Layout.Unknowns[n]
		s := Stored{Unknown: *u, Bundle: bundles[u.Name]}
		_, s.HasUnit = i.units[u.Name]
		if len(i.Times) > 0 && s.Bundle == "" {
			if err := i.keep(i.unknown(ctx, u, from, &s)); err != nil {
				return err
			}
		}
		i.Unknowns = append(i.Unknowns, s)
		from += i.Layout.length(u)
	}
	return nil
}

func (i *inspector) unknown(ctx context.Context, u *Unknown, from int, s *Stored) error {
	list := []dataset{{path: h5.Join("unknowns", u.Name), dims: fieldShape(u.Domain)}}
	if u.Kind != Field {
		var err error
		if list, err = datasetsIn(i.f, &i.Layout, u, from); err != nil {
			return err
		}
	}
	for _, d := range list {
		info, err := d.stat(i.f, len(i.Times))
		if err != nil {
			if err := i.keep(err); err != nil {
				return err
			}
			continue
		}
		s.Datasets = append(s.Datasets, DatasetInfo{d.path, info.Shape, min(info.Storage, info.Bytes())})
		if !i.values {
			continue
		}
		if u.Kind == Field {
			if err = i.places(d, info); err == nil {
				err = i.cells(ctx, u, d)
			}
		} else {
			err = i.read(ctx, d, info)
		}
		if err := i.keep(err); err != nil {
			return err
		}
	}
	return nil
}

// places checks that the file has all of a field of ours: it is stored as it is in
// memory, and there from the start.
func (i *inspector) places(d dataset, info h5.Info) error {
	if !i.r.ours {
		return nil
	}
	if info.Type != h5.Float64 {
		return in(i.f.Name(), d.path, h5.ErrType, "elements are %v, those of a field float64", info.Type)
	}
	pieces, err := i.f.Pieces(d.path, 0, len(i.Times))
	if err != nil {
		return err
	}
	for _, p := range pieces {
		if p.Offset < 0 || p.Bytes > i.Bytes || p.Offset > i.Bytes-p.Bytes {
			return in(i.f.Name(), d.path, ErrMismatch, "the part from %v on is at byte %d, the file has %d", p.Start, p.Offset, i.Bytes)
		}
	}
	return nil
}

// read reads the values of a dataset, a piece at a time where it is stored as it is in
// memory.
func (i *inspector) read(ctx context.Context, d dataset, info h5.Info) error {
	row := 1
	for _, n := range d.dims {
		row *= n
	}
	if !simple(info) {
		all, _, err := h5.ReadAs[float64](i.f, d.path)
		if err == nil {
			err = i.rows(d, 0, row, all)
		}
		return err
	}
	step := max(1, min(len(i.Times), transferBytes/8/max(row, 1)))
	buffer := make([]float64, step*row)
	for first := 0; first < len(i.Times); first += step {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(step, len(i.Times)-first)
		if err := h5.ReadSlab(i.f, d.path, buffer[:n*row], d.start(first), d.count(n)); err != nil {
			return err
		}
		if err := i.rows(d, first, row, buffer[:n*row]); err != nil {
			return err
		}
	}
	return nil
}

func (i *inspector) statistics(context.Context) (err error) {
	i.Statistics, err = readStatistics(i.f, nil, i.sums())
	return err
}

func (i *inspector) updates(context.Context) error {
	updates, err := readUpdates(i.f, len(i.Times), i.sums())
	if err != nil {
		return err
	}
	for _, u := range updates {
		n := 0
		if len(u.States) > 0 {
			n = len(u.States[0])
		}
		i.Updates = append(i.Updates, UpdateInfo{u.Name, n})
	}
	return nil
}

// checkpoint reads the one state of a checkpoint, which repeats what has been found
// already where that is bad.
func (i *inspector) checkpoint(ctx context.Context) error {
	own := *i.o
	own.warn = func(string) {} // the layout has told
	k, err := readCheckpoint(ctx, i.f, i.r, &own)
	switch {
	case err == nil:
		k.State = nil
		i.State = k
		return nil
	case slices.ContainsFunc(i.faults, func(f error) bool { return f.Error() == err.Error() }):
		return nil
	}
	return err
}

// runOf tells of which run a file is a checkpoint, by its name.
func runOf(file string) (dir, name string, ok bool) {
	dir, base := filepath.Split(file)
	if dir == "" {
		dir = "."
	}
	for _, suffix := range []string{".checkpoint.prev.h5", ".checkpoint.h5"} {
		if name, ok := strings.CutSuffix(base, suffix); ok && CheckName(name) == nil {
			return dir, name, true
		}
	}
	return "", "", false
}

// Outline is [ReadOutput] without the states: the entries of States are nil, but the
// shapes of the unknowns are checked, and fields can be read.
func Outline(ctx context.Context, files []string, opts ...Option) (*Solution, error) {
	o, err := newOptions(opts)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: no file is named", ErrInput)
	}
	if err != nil {
		return nil, fmt.Errorf("outline: %w", err)
	}
	parts := make([]*Solution, len(files))
	for i, path := range files {
		err := withFile(ctx, path, func(f *h5.File, r root) (err error) {
			if r.checkpoint {
				return in(path, "", ErrNotOutput, "it is a checkpoint")
			}
			parts[i], err = readOutline(ctx, f, r, o)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("outline: %w", err)
		}
	}
	s, err := join(parts, o.warn)
	if err != nil {
		return nil, fmt.Errorf("outline: %w", err)
	}
	return s, nil
}

func readOutline(ctx context.Context, f *h5.File, r root, o *options) (*Solution, error) {
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	i := inspector{Info: &Info{Layout: s.Layout, Times: s.Times}, f: f, r: r, o: o}
	if err := i.unknowns(ctx); err != nil {
		return nil, err
	}
	if len(i.faults) > 0 {
		return nil, i.faults[0]
	}
	s.States = make([][]float64, len(s.Times))
	if s.Statistics, err = readStatistics(f, nil, r.sums); err != nil {
		return nil, err
	}
	s.Updates, err = readUpdates(f, len(s.Times), r.sums)
	return s, err
}

// Origin tells in which file saved state number state, from 0, of a solution that was
// read is, and its number there. File is empty where there is no such state.
func (s *Solution) Origin(state int) (file string, number int) {
	if state < 0 || state >= len(s.origins) {
		return "", 0
	}
	return s.origins[state].file, s.origins[state].index
}
