package runfile

import (
	"context"
	"fmt"
	"io/fs"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
)

// ReadOutput returns the solution of an output file, or of the segments of one run in
// the order given, joined. It refuses checkpoints. The states of all files are in
// memory at once; fields stay in the files, for [Solution.ReadField].
//
// Segments that don't continue each other are an error that matches [ErrNotOneRun] and
// names the files. What is odd about them besides, such as states that are missing in
// between, is a warning, and so is a statistic of another writer that can't be part of the
// solution.
func ReadOutput(ctx context.Context, files []string, opts ...Option) (*Solution, error) {
	o, err := newOptions(opts)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%w: no file is named", ErrInput)
	}
	if err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	parts := make([]*Solution, len(files))
	for i, path := range files {
		if parts[i], err = readPart(ctx, path, o); err != nil {
			return nil, fmt.Errorf("read output: %w", err)
		}
	}
	s, err := join(parts, o.warn)
	if err != nil {
		return nil, fmt.Errorf("read output: %w", err)
	}
	return s, nil
}

// ReadRun returns the solution of the segments of a run that exist, joined; see
// [ReadOutput]. The error matches [fs.ErrNotExist] if there is none.
func ReadRun(ctx context.Context, dir, name string, opts ...Option) (*Solution, error) {
	o, err := newOptions(opts)
	var segments []Segment
	if err == nil {
		segments, err = segmentFiles(o.fsys, dir, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read output of run %q: %w", name, err)
	}
	if len(segments) == 0 {
		return nil, fmt.Errorf("read output of run %q: no segment in %s: %w", name, dir, fs.ErrNotExist)
	}
	files := make([]string, len(segments))
	for i, s := range segments {
		files[i] = s.File
	}
	return ReadOutput(ctx, files, opts...)
}

// readPart reads one output file.
func readPart(ctx context.Context, path string, o *options) (s *Solution, err error) {
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		if r.checkpoint {
			return in(path, "", ErrNotOutput, "it is a checkpoint")
		}
		s, err = readOutput(ctx, f, r, o)
		return err
	})
	return s, err
}

func readOutput(ctx context.Context, f *h5.File, r root, o *options) (*Solution, error) {
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	if err := s.readStates(ctx, f, r.sums, 0, len(s.Times), nil); err != nil {
		return nil, err
	}
	if s.Statistics, err = readStatistics(f, o.warn, r.sums); err != nil {
		return nil, err
	}
	if s.Updates, err = readUpdates(f, len(s.Times), r.sums); err != nil {
		return nil, err
	}
	return s, tellLeftOut(f, r, &s.Layout, o.warn)
}

// readCommon reads what output files and checkpoints have in common, but no state.
func readCommon(ctx context.Context, f *h5.File, r root, o *options) (*Solution, error) {
	s := &Solution{Files: []string{f.Name()}, Version: r.version}
	var err error
	if s.carried, err = readSettingsAndMore(f, r); err != nil {
		return nil, err
	}
	s.Settings = s.carried.settings
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, units, err := readLayout(f, o.warn, r.sums)
	if err != nil {
		return nil, err
	}
	s.Layout, s.units = *l, units
	has, err := f.Exists("time")
	if err != nil || !has {
		return s, err
	}
	if s.Times, err = readVector[float64](f, "time"); err != nil {
		return nil, err
	}
	if err := checkTimes(s.Times); err != nil {
		return nil, in(f.Name(), "time", ErrMismatch, "%v", err)
	}
	if err := r.sums.times(s.Times); err != nil {
		return nil, err
	}
	path, err := onedir.Abs(f.Name())
	if err != nil {
		return nil, err
	}
	s.reading = newFieldReading()
	for i := range s.Times {
		s.origins = append(s.origins, origin{f.Name(), i, path})
	}
	return s, nil
}

// readStates reads the states from number first on into the solution. Its fields are
// looked at, except those that are elsewhere.
func (s *Solution) readStates(ctx context.Context, f *h5.File, sums *storedSums, first, n int, elsewhere map[string]string) error {
	if len(s.Times) == 0 {
		return nil
	}
	var list []dataset
	from := 0
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if u.Kind == Field {
			if _, ok := elsewhere[u.Name]; ok {
				continue
			}
			d := dataset{path: h5.Join("unknowns", u.Name), dims: fieldShape(u.Domain)}
			if _, err := d.stat(f, len(s.Times)); err != nil {
				return err
			}
			continue
		}
		own, err := datasetsIn(f, &s.Layout, u, from)
		if err != nil {
			return err
		}
		list = append(list, own...)
		from += s.Layout.length(u)
	}
	// What the file doesn't simply have is read first: memory for a state is reserved
	// when it is known that its numbers are there.
	size, err := f.Size()
	if err != nil {
		return err
	}
	left := size
	rows := make([][]float64, len(list))
	for i, d := range list {
		info, err := d.stat(f, len(s.Times))
		if err != nil {
			return err
		}
		if left -= info.Storage; left < 0 {
			return in(f.Name(), d.path, h5.ErrTooLarge, "the states take more than the %d bytes of the file", size)
		}
		if simple(info) {
			continue
		}
		all, _, err := h5.ReadAs[float64](f, d.path)
		if err != nil {
			return err
		}
		rows[i] = all[first*d.size() : (first+n)*d.size()]
	}
	s.States = make([][]float64, n)
	for k := range n {
		s.States[k] = make([]float64, s.Layout.Size())
	}
	for i, d := range list {
		if err := d.read(ctx, f, rows[i], first, s.States); err != nil {
			return err
		}
		for k, state := range s.States {
			if err := sums.state(d.path, first+k, state[d.from:d.to]); err != nil {
				return err
			}
		}
	}
	return nil
}

// readUpdates reads the states of the interval updates, of which there is one for each
// saved time.
func readUpdates(f *h5.File, times int, sums *storedSums) ([]UpdateStates, error) {
	entries, err := members(f, updatesGroup)
	if err != nil {
		return nil, err
	}
	var list []UpdateStates
	for _, e := range entries {
		path := h5.Join(updatesGroup, e.Name)
		data, shape, err := h5.ReadAs[float64](f, path)
		if err != nil {
			return nil, err
		}
		if len(shape) != 2 || shape[0] != times {
			return nil, in(f.Name(), path, ErrMismatch, "its shape is %v, must be (%d, n) for %d saved times", shape, times, times)
		}
		u := UpdateStates{Name: e.Name, States: make([][]float64, times)}
		for i := range u.States {
			u.States[i] = data[i*shape[1] : (i+1)*shape[1] : (i+1)*shape[1]]
			if err := sums.state(path, i, u.States[i]); err != nil {
				return nil, err
			}
		}
		list = append(list, u)
	}
	return list, nil
}

// members lists a group that need not be there.
func members(f *h5.File, path string) ([]h5.Entry, error) {
	has, err := f.Exists(path)
	if err != nil || !has {
		return nil, err
	}
	return f.List(path)
}

// ReadState returns one saved state of an output file, the last unless [State] names
// another, or that of a checkpoint. A state of an output file has no stepper record, so
// a run can resume from it only at one of its time points. Of a state in the output of
// joined segments the segment is known, and not 0, only if it is the last one.
func ReadState(ctx context.Context, path string, opts ...Option) (*Checkpoint, error) {
	o, err := newOptions(opts)
	if err != nil {
		return nil, fmt.Errorf("read state of %s: %w", path, err)
	}
	var k *Checkpoint
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		if r.checkpoint {
			k, err = readCheckpoint(ctx, f, r, o)
			if err == nil && o.state != 0 && o.state != -1 {
				err = o.noState(f, "a checkpoint")
			}
			return err
		}
		k, err = readSaved(ctx, f, r, o)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	return k, nil
}

// noState is the error of a state that a file doesn't have, with its number as the caller
// counts.
func (o *options) noState(f *h5.File, of string) error {
	if o.state < 0 {
		return in(f.Name(), "", ErrNoState, "number %d from the end, of %s", -o.state, of)
	}
	return in(f.Name(), "", ErrNoState, "number %d of %s, counted from %d", o.state+o.stateBase, of, o.stateBase)
}

// readSaved reads one of the saved states of an output file.
func readSaved(ctx context.Context, f *h5.File, r root, o *options) (*Checkpoint, error) {
	s, err := readCommon(ctx, f, r, o)
	if err != nil {
		return nil, err
	}
	number := o.state
	if number < 0 {
		number += len(s.Times)
	}
	if number < 0 || number >= len(s.Times) {
		return nil, o.noState(f, fmt.Sprintf("%d", len(s.Times)))
	}
	if err := s.readStates(ctx, f, r.sums, number, 1, nil); err != nil {
		return nil, err
	}
	k := s.stored(number)
	k.output = true
	updates, err := readUpdates(f, len(s.Times), r.sums)
	if err != nil {
		return nil, err
	}
	for _, u := range updates {
		k.Updates = append(k.Updates, UpdateState{u.Name, u.States[number]})
	}
	seg, err := segmentOfPart(s)
	if err != nil {
		return nil, ofFile(f.Name(), "settings", err)
	}
	k.SavedCount = number + 1
	if seg.savedBefore != nil {
		k.SavedCount += int(*seg.savedBefore)
	}
	if k.Summary, err = readSummaryUntil(f, r.sums, seg, k.Time); err != nil {
		return nil, err
	}
	// Of joined segments only the last one is known.
	if seg.index != nil && !(seg.joined && k.Time <= *seg.start) {
		k.Segment = int(*seg.index)
	}
	return k, nil
}

// stored makes what there is to resume from of the one state that was read of a file.
func (s *Solution) stored(number int) *Checkpoint {
	return &Checkpoint{
		File: s.Files[0], Version: s.Version, Settings: s.Settings, Layout: s.Layout,
		Time: s.Times[number], State: s.States[0],
		origin: s.origins[number], reading: s.reading, units: s.units, carried: s.carried,
	}
}

// Units returns the units that the file stores, by unknown: none before format 0.0.5.
func (k *Checkpoint) Units() map[string]string { return k.units }
