package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/runfile"
	"github.com/spf13/cobra"
)

func newJoin(a *app) *cobra.Command {
	var out string
	var overwrite, asJSON bool
	c := &cobra.Command{
		Use:   "join FILE... -o OUT",
		Short: "Join the segments of a run to one output file",
		Long: `Join the segments of a run, in the order given, to one output file.

States that a later segment repeats are dropped, and so are the attempts. Files that
don't continue each other are refused, with what they contradict each other in. The
joined file is read again and compared before it gets its name, and an existing file is
replaced with --overwrite only. The states of all files are in memory at once, but not
the fields.

Exit status: 0 when the files are joined, 1 when they are not the segments of one run,
2 for wrong usage or when something can't be read or written.`,
		Example: `  fieldstone join results/decay.segment*.h5 -o decay.h5
  fieldstone join a.h5 b.h5 --overwrite -o joined.h5`,
		Args:              arguments(1, anyNumber, "the files to join"),
		ValidArgsFunction: completeRunFiles(anyNumber),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return misused(c, errors.New("join: want the name of the joined file, -o OUT"))
			}
			return a.join(c.Context(), args, out, overwrite, asJSON)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the joined `file`")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace an existing file")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// joined is the outcome of a join as JSON.
type joined struct {
	Output      string       `json:"output"`
	OutputBytes []byte       `json:"output_bytes,omitempty"`
	Files       []joinedFile `json:"files"`
	States      int          `json:"saved_states"`
	Times       []number     `json:"times"`
	Attempted   int          `json:"attempted"`
	Bytes       int64        `json:"bytes"`
}

type joinedFile struct {
	Path      string `json:"path"`
	PathBytes []byte `json:"path_bytes,omitempty"`
	States    int    `json:"saved_states"`
	Dropped   int    `json:"dropped_states"`
}

func (a *app) join(ctx context.Context, files []string, out string, overwrite, asJSON bool) error {
	if err := a.wantRunFiles("join", files); err != nil {
		return err
	}
	to, err := newTarget(out, overwrite, files)
	if err != nil {
		a.complain("join: %s: %v", out, err)
		return statusError(statusFailed)
	}
	s, err := runfile.ReadOutput(ctx, files, a.warnRun("join"))
	if errors.Is(err, runfile.ErrNotOneRun) {
		return a.refused(ctx, "join", err)
	}
	bad, unjudged := a.reportBad(ctx, "join", files)
	switch err := cmp.Or(err, unjudged); {
	case ctx.Err() != nil:
		return ctx.Err()
	case bad:
		return statusError(statusBad)
	case err != nil:
		return a.refused(ctx, "join", err)
	}
	list, err := countDropped(ctx, s, files)
	if err != nil {
		return a.refused(ctx, "join", err)
	}
	j, err := a.writeJoined(ctx, s, to)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		a.complain("join: %s: %s", out, runReason(to.tmp, err))
		return statusError(statusFailed)
	}
	j.Files = list
	if asJSON {
		return writeJSON(a.out, j)
	}
	j.write(a)
	return nil
}

// wantRunFiles reports each path that can't be a file of a run.
func (a *app) wantRunFiles(command string, files []string) error {
	bad := false
	for _, file := range files {
		if err := a.wantRunFile(file); err != nil {
			a.reportRun(command, file, err)
			bad = true
		}
	}
	if bad {
		return statusError(statusFailed)
	}
	return nil
}

// reportBad reports what is wrong with files, and whether there is any: what is read of them
// could come out as good. The error is that a file can't be judged.
func (a *app) reportBad(ctx context.Context, command string, files []string) (bad bool, err error) {
	for _, file := range files {
		_, faults, unjudged := judgeRun(ctx, file, runfile.NoValues(), runfile.Warn(func(string) {}))
		err = cmp.Or(err, unjudged)
		for _, f := range faults {
			a.reportRun(command, file, f)
			bad = true
		}
	}
	return bad, err
}

// refused reports why files can't be read as one output.
func (a *app) refused(ctx context.Context, command string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	a.complain("%s: %s", command, refusal(err))
	if errors.Is(err, runfile.ErrNotOneRun) || errors.Is(err, runfile.ErrChecksum) {
		return statusError(statusBad)
	}
	return statusError(statusFailed)
}

// refusal is the text of an error about one or two of several files, without what was done
// with them.
func refusal(err error) string {
	if two, ok := errors.AsType[*runfile.JoinError](err); ok {
		return fmt.Sprintf("%s and %s: %v", two.First, two.Second, two.Err)
	}
	one, ok := errors.AsType[*runfile.FileError](err)
	switch {
	case !ok:
		return err.Error()
	case errors.Is(err, runfile.ErrNotRunFile):
		return fmt.Sprintf("%s: %v: %s", one.File, errNeither, foreignReason)
	}
	return one.Error()
}

// writeJoined writes the file, and reads it again before it gets its name.
func (a *app) writeJoined(ctx context.Context, s *runfile.Solution, to *target) (*joined, error) {
	j, err := a.writeAndCompare(ctx, s, to)
	if err == nil {
		err = to.publish()
	}
	if err != nil {
		return nil, to.discard(err)
	}
	return j, nil
}

func (a *app) writeAndCompare(ctx context.Context, s *runfile.Solution, to *target) (*joined, error) {
	cells := int64(0)
	for _, u := range s.Layout.Unknowns {
		if u.Kind == runfile.Field {
			cells += u.Domain.Cells() * int64(len(s.Times))
		}
	}
	bar := a.start("join "+to.path, 3*8*cells) // to write it, and to compare two
	defer bar.end()
	counted := func(read runfile.FieldReader) runfile.FieldReader {
		return func(ctx context.Context, name string, state int, box grid.Box, dst []float64) error {
			bar.add(8 * int64(len(dst)))
			return read(ctx, name, state, box, dst)
		}
	}
	if err := runfile.WriteOutput(ctx, to.tmp, s, runfile.Fields(counted(s.ReadField))); err != nil {
		return nil, err
	}
	again, err := runfile.ReadOutput(ctx, []string{to.tmp}, runfile.Warn(func(string) {})) // the files have told
	if err != nil {
		return nil, err
	}
	if err := sameSolution(s, again); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	if err := sameFields(ctx, s, counted(s.ReadField), counted(again.ReadField)); err != nil {
		return nil, fmt.Errorf("read again: %w", err)
	}
	info, _, err := runfile.Inspect(ctx, to.tmp)
	if err != nil {
		return nil, err
	}
	j := &joined{Output: to.path, OutputBytes: notUTF8(to.path), States: len(s.Times), Times: []number{}, Attempted: s.Statistics.Attempts(), Bytes: info.Bytes}
	for _, t := range s.Times {
		j.Times = append(j.Times, number(t))
	}
	return j, nil
}

// countDropped returns for each file how many of its states are in the joined output.
func countDropped(ctx context.Context, s *runfile.Solution, files []string) (list []joinedFile, err error) {
	kept := make(map[string]int)
	for i := range s.Times {
		file, _ := s.Origin(i)
		kept[file]++
	}
	for _, file := range files {
		info, _, err := runfile.Inspect(ctx, file, runfile.Warn(func(string) {}))
		if err != nil {
			return nil, err
		}
		list = append(list, joinedFile{file, notUTF8(file), len(info.Times), len(info.Times) - kept[file]})
	}
	return list, nil
}

// sameSolution compares all but the fields, numbers by their bits.
func sameSolution(a, b *runfile.Solution) error {
	sa, sb := &a.Statistics, &b.Statistics
	for _, part := range []struct {
		name string
		same bool
	}{
		{"the settings", a.Settings.Equal(b.Settings)},
		{"the layout", reflect.DeepEqual(a.Layout, b.Layout)},
		{"the times", sameBits(a.Times, b.Times)},
		{"the states", slices.EqualFunc(a.States, b.States, sameBits)},
		{"the interval updates", slices.EqualFunc(a.Updates, b.Updates, func(x, y runfile.UpdateStates) bool {
			return x.Name == y.Name && slices.EqualFunc(x.States, y.States, sameBits)
		})},
		{"the times of the attempts", sameBits(sa.Time, sb.Time)},
		{"the step lengths", sameBits(sa.StepLength, sb.StepLength)},
		{"what was accepted", slices.Equal(sa.Accepted, sb.Accepted)},
		{"the error estimates", sameBits(sa.ErrorEstimate, sb.ErrorEstimate)},
		{"the wall times", sameBits(sa.WallTime, sb.WallTime)},
		{"the statistics of other writers", sa.Others().Equal(sb.Others())},
		{"the outcomes", slices.Equal(sa.Outcome, sb.Outcome)},
		{"the numbers of iterations", slices.Equal(sa.NonlinearIterations, sb.NonlinearIterations) && slices.Equal(sa.LinearIterations, sb.LinearIterations)},
		{"the iterations", slices.Equal(sa.IterationAttempt, sb.IterationAttempt) && slices.Equal(sa.IterationLinear, sb.IterationLinear) &&
			sameBits(sa.IterationResidual, sb.IterationResidual)},
	} {
		if !part.same {
			return fmt.Errorf("%s are not those that were written", part.name)
		}
	}
	return nil
}

func sameBits(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return math.Float64bits(x) == math.Float64bits(y) })
}

func sameFields(ctx context.Context, s *runfile.Solution, a, b runfile.FieldReader) error {
	for _, u := range s.Layout.Unknowns {
		if u.Kind != runfile.Field {
			continue
		}
		var other []float64
		err := eachSlab(u.Domain, len(s.Times), func(state int, box grid.Box, buffer []float64) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			other = slices.Grow(other[:0], len(buffer))[:len(buffer)]
			if err := a(ctx, u.Name, state, box, buffer); err != nil {
				return err
			}
			if err := b(ctx, u.Name, state, box, other); err != nil {
				return err
			}
			if !sameBits(buffer, other) {
				return fmt.Errorf("the values of field %q are not those that were written, at state %d in %v", u.Name, state, box)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (j *joined) write(a *app) {
	t := newTable(1, 2)
	t.row("FILE", "STATES", "DROPPED")
	times := make([]float64, len(j.Times))
	for _, f := range j.Files {
		t.row(f.Path, strconv.Itoa(f.States), strconv.Itoa(f.Dropped))
	}
	t.write(a.out, "")
	for i, v := range j.Times {
		times[i] = float64(v)
	}
	fmt.Fprintln(a.out, oneLine(fmt.Sprintf("%s: %s, %s, %s, %s", j.Output,
		count(int64(j.States), "state"), span(times), count(int64(j.Attempted), "attempted step"), humanSize(j.Bytes))))
}
