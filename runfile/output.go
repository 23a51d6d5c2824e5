package runfile

import (
	"context"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
)

// WriteOutput writes a solution to a file of any name: in place, or with [Atomic] so
// that a failure leaves the path as it was. When it returns, the file is on the disk.
//
// The files, version, origins and stored units of a solution that was read play no
// part, except that it has the values of its fields unless [Fields] has them. What only
// other writers have in their settings and statistics is written as it was read, and their
// hashes are marked as theirs.
func WriteOutput(ctx context.Context, path string, s *Solution, opts ...Option) error {
	o, err := newOptions(opts)
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return fmt.Errorf("write output %s: %w", path, err)
	}
	if o.fields == nil && len(s.origins) == len(s.Times) {
		o.fields = s.ReadField
	}
	write := func(f *h5.File) error { return writeOutput(ctx, f, s, o) }
	if o.atomic {
		err = writeAtomically(o, path, write)
	} else {
		err = writeFile(path, write)
	}
	if err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// check tells whether a solution can be written.
func (s *Solution) check() error {
	if err := s.Layout.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	if err := s.carried.check(s.Settings); err != nil {
		return fmt.Errorf("%w: settings: %w", ErrInput, err)
	}
	if err := checkTimes(s.Times); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	if len(s.States) != len(s.Times) {
		return fmt.Errorf("%w: %d states at %d times", ErrInput, len(s.States), len(s.Times))
	}
	size := s.Layout.Size()
	for i, state := range s.States {
		if len(state) != size {
			return fmt.Errorf("%w: state %d has %d numbers, the layout has %d", ErrInput, i, len(state), size)
		}
	}
	seen := map[string]bool{}
	for _, u := range s.Updates {
		if err := checkUpdateName(u.Name, seen); err != nil {
			return err
		}
		if len(u.States) != len(s.Times) {
			return fmt.Errorf("%w: interval update %q has %d states at %d times", ErrInput, u.Name, len(u.States), len(s.Times))
		}
		for i, state := range u.States {
			if len(state) != len(u.States[0]) {
				return fmt.Errorf("%w: state %d of interval update %q has %d numbers, the first has %d", ErrInput, i, u.Name, len(state), len(u.States[0]))
			}
		}
	}
	if err := s.Statistics.check(); err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	return nil
}

func checkUpdateName(name string, seen map[string]bool) error {
	if err := record.CheckKey(name); err != nil {
		return fmt.Errorf("%w: interval update: %w", ErrInput, err)
	}
	if seen[name] {
		return fmt.Errorf("%w: interval update %q is there twice", ErrInput, name)
	}
	seen[name] = true
	return nil
}

func writeOutput(ctx context.Context, f *h5.File, s *Solution, o *options) error {
	if err := writeRoot(ctx, f, s, o, nil); err != nil {
		return err
	}
	if err := f.CreateGroup(statisticsGroup); err != nil {
		return err
	}
	if err := writeStatistics(f, &s.Statistics, 0, 0, o); err != nil {
		return err
	}
	if err := f.CreateGroup(updatesGroup); err != nil {
		return err
	}
	if err := writeUpdates(ctx, f, s.Updates, 0, o); err != nil {
		return err
	}
	if err := writeStateSums(f, s, 0, o); err != nil {
		return err
	}
	if err := writeStatisticSums(f, &s.Statistics, 0, 0, 0, o); err != nil {
		return err
	}
	records, err := summedRoot(s.Settings, &s.Layout)
	if err != nil {
		return err
	}
	return writeRecordSums(f, records)
}

// The groups that output files alone have.
const (
	statisticsGroup = "solver_statistics"
	updatesGroup    = "update_states"
)

// writeUpdates writes states of interval updates behind those that the file has.
func writeUpdates(ctx context.Context, f *h5.File, updates []UpdateStates, have int, o *options) error {
	for _, u := range updates {
		if len(u.States) == 0 {
			continue
		}
		p := dataset{path: h5.Join(updatesGroup, u.Name), to: len(u.States[0]), dims: []int{len(u.States[0])}}
		if err := p.write(ctx, f, u.States, have, o); err != nil {
			return err
		}
	}
	return nil
}

// writeRoot writes what output files and checkpoints have in common. Fields that are
// elsewhere are left out. Of the checksums it writes those of fields whose values it has.
func writeRoot(ctx context.Context, f *h5.File, s *Solution, o *options, elsewhere map[string]string) error {
	if err := writeRootAttributes(f); err != nil {
		return err
	}
	if err := beginSums(f); err != nil {
		return err
	}
	if err := s.carried.writeSettings(f, s.Settings); err != nil {
		return err
	}
	if err := writeLayout(f, &s.Layout); err != nil {
		return err
	}
	if len(s.Times) == 0 {
		return nil
	}
	if err := writeStates(ctx, f, s, 0, o); err != nil {
		return err
	}
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if _, ok := elsewhere[u.Name]; ok || u.Kind != Field {
			continue
		}
		if o.reserved != nil {
			if err := o.reserved.reserve(f, u, 0, o); err != nil {
				return err
			}
			continue
		}
		if err := writeField(ctx, f, u, len(s.Times), o); err != nil {
			return err
		}
	}
	return writeScales(ctx, f, &s.Layout, elsewhere, o)
}

// writeStates writes times and states, but no fields, behind those that the file has.
func writeStates(ctx context.Context, f *h5.File, s *Solution, have int, o *options) error {
	if err := writeGrowing(f, "time", s.Times, have, o); err != nil {
		return err
	}
	if have == 0 {
		if err := f.SetAttributeString("time", unitAttribute, "s"); err != nil {
			return err
		}
		if err := needGroup(f, "unknowns"); err != nil {
			return err
		}
	}
	from := 0
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		if u.Kind == Field {
			continue
		}
		if err := writeUnknown(ctx, f, &s.Layout, u, from, s.States, have, o); err != nil {
			return err
		}
		from += s.Layout.length(u)
	}
	return nil
}

// needGroup makes a group unless it is there.
func needGroup(f *h5.File, path string) error {
	there, err := f.Exists(path)
	if err != nil || there {
		return err
	}
	return f.CreateGroup(path)
}

func writeUnknown(ctx context.Context, f *h5.File, l *Layout, u *Unknown, from int, states [][]float64, have int, o *options) error {
	if u.perRadius() && have == 0 {
		path := h5.Join("unknowns", u.Name)
		if err := f.CreateGroup(path); err != nil {
			return err
		}
		if err := f.SetAttributeString(path, unitAttribute, u.Unit); err != nil {
			return err
		}
	}
	for _, d := range l.datasets(u, from) {
		if err := d.write(ctx, f, states, have, o); err != nil {
			return err
		}
		if have > 0 {
			continue
		}
		if err := f.SetAttributeString(d.path, unitAttribute, u.Unit); err != nil {
			return err
		}
	}
	return nil
}
