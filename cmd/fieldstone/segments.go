package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
	"github.com/spf13/cobra"
)

func newSegments(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "segments DIR NAME",
		Short: "List the segments and the checkpoints of a run",
		Long: `List the segments and the checkpoints of the run of a name in a directory: what each holds
and how it ended, which are missing, what a checkpoint goes on from, and whether the
segments join. Dropped are the states of a segment that a later one repeats.

Exit status: 0 whatever their state ('fieldstone verify' is the one to ask), 2 for wrong
usage, when there is no such run, or when something can't be read.`,
		Example: `  fieldstone segments results decay
  fieldstone segments --json results decay`,
		Args: arguments(2, 2, "a directory and the name of a run"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			if len(args) == 1 {
				return runNames(args[0]), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			return a.segments(c.Context(), args[0], args[1], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// runNames lists the runs of which a directory has files.
func runNames(dir string) []string {
	list := []string{}
	entries, _ := os.ReadDir(dir) // where there is none, there is nothing to offer
	for _, e := range entries {
		if !isRunName(e.Name()) {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".h5"), ".prev"), ".checkpoint")
		if i := strings.LastIndex(name, ".segment"); i > 0 && isDigits(name[i+len(".segment"):]) {
			name = name[:i]
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// runsText says that a directory has files of runs, and what shows them.
func runsText(dir string, names []string) string {
	text, name := "files of the run "+names[0], names[0]
	if len(names) > 1 {
		text, name = "files of the runs "+strings.Join(names, ", "), "NAME"
	}
	if !h5.Enabled {
		return text
	}
	return fmt.Sprintf("%s: see 'fieldstone segments %s %s'", text, dir, name)
}

// runListing is the run of a name as JSON.
type runListing struct {
	Directory      string             `json:"directory"`
	Name           string             `json:"name"`
	DirectoryBytes []byte             `json:"directory_bytes,omitempty"`
	NameBytes      []byte             `json:"name_bytes,omitempty"`
	InUse          *bool              `json:"in_use"` // null: the lock can't be asked
	Segments       []listedSegment    `json:"segments"`
	Missing        []int              `json:"missing"`
	Checkpoints    []listedCheckpoint `json:"checkpoints"`
	Join           *string            `json:"join_error"` // null: the segments join
	JoinWarnings   []string           `json:"join_warnings"`
}

// listedSegment has null for what isn't known.
type listedSegment struct {
	Number         int     `json:"number"`
	Path           string  `json:"path"`
	PathBytes      []byte  `json:"path_bytes,omitempty"`
	State          state   `json:"state"`
	Error          *string `json:"error"`
	States         int     `json:"saved_states"`
	Dropped        *int    `json:"dropped_states"`
	First          *number `json:"first_time"`
	Last           *number `json:"last_time"`
	Status         *string `json:"status"`
	StopReason     *string `json:"stop_reason"`
	End            *number `json:"end_time"`
	ResumedFrom    *string `json:"resumed_from"`
	ResumedSegment *int64  `json:"resumed_from_segment"`
	Attempts       int     `json:"attempted"`
}

type listedCheckpoint struct {
	Path      string  `json:"path"`
	PathBytes []byte  `json:"path_bytes,omitempty"`
	State     state   `json:"state"` // good, bad, unreadable or missing
	Error     *string `json:"error"`
	Time      *number `json:"time"`
	Segment   *int    `json:"segment_number"`
	Saved     *int    `json:"saved_count"`
	Steps     *int64  `json:"accepted"`
}

// stateMissing is that of a checkpoint that isn't there.
const stateMissing state = "missing"

func (a *app) segments(ctx context.Context, dir, name string, asJSON bool) error {
	l, err := listRun(ctx, dir, name)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		a.complain("segments %s: %s", dir, reason(dir, err))
		return statusError(statusFailed)
	}
	if asJSON {
		return writeJSON(a.out, l)
	}
	l.write(a)
	return nil
}

func listRun(ctx context.Context, dir, name string) (*runListing, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errors.New("not a directory")
	}
	segments, err := runfile.SegmentFiles(dir, name)
	if err != nil {
		return nil, err
	}
	l := &runListing{Directory: dir, Name: name, DirectoryBytes: notUTF8(dir), NameBytes: notUTF8(name), Segments: []listedSegment{}, Missing: []int{}, JoinWarnings: []string{}}
	if held, err := lockHeld(filepath.Join(dir, name+".lock")); err == nil {
		l.InUse = &held
	}
	last, previous := runfile.CheckpointFile(dir, name), runfile.PreviousFile(dir, name)
	if len(segments) == 0 && !exists(last) && !exists(previous) {
		text := fmt.Sprintf("no run %q", name)
		if others := runNames(dir); len(others) > 0 {
			text += ", there are " + strings.Join(others, ", ")
		}
		return nil, errors.New(text)
	}
	if !h5.Enabled {
		return nil, errNoHDF5
	}
	for _, s := range segments {
		listed, err := listSegment(ctx, s)
		if err != nil {
			return nil, err
		}
		l.Segments = append(l.Segments, listed)
	}
	l.Missing = missingSegments(l.Segments, name)
	for _, path := range []string{last, previous} {
		k, err := listCheckpoint(ctx, path)
		if err != nil {
			return nil, err
		}
		l.Checkpoints = append(l.Checkpoints, k)
	}
	return l, l.join(ctx)
}

// judge gives the state of a file, and why it is not good.
func judge(path string, faults []error, err error) (state, *string) {
	switch {
	case err != nil:
		return stateUnreadable, pointer(runReason(path, err))
	case len(faults) > 0:
		return stateBad, pointer(runReason(path, faults[0]))
	}
	return stateGood, nil
}

func listSegment(ctx context.Context, s runfile.Segment) (listedSegment, error) {
	info, faults, err := judgeRun(ctx, s.File, runfile.NoValues(), runfile.Warn(func(string) {}))
	if ctx.Err() != nil {
		return listedSegment{}, ctx.Err()
	}
	l := listedSegment{Number: s.Number, Path: s.File, PathBytes: notUTF8(s.File), States: len(info.Times), Attempts: info.Statistics.Attempts()}
	l.State, l.Error = judge(s.File, faults, err)
	if n := len(info.Times); n > 0 {
		l.First, l.Last = pointer(number(info.Times[0])), pointer(number(info.Times[n-1]))
	}
	// What isn't there, or of another type, isn't known.
	section, _ := info.Settings.Record("segment")
	l.Status, l.StopReason, l.ResumedFrom = textOf(section, "status"), textOf(section, "stop_reason"), textOf(section, "resumed_from")
	if end, err := section.Float("end_time"); err == nil {
		l.End = pointer(number(end))
	}
	if from, err := section.Int("resumed_from_segment"); err == nil {
		l.ResumedSegment = &from
	}
	return l, nil
}

func textOf(r record.Record, key string) *string {
	s, err := r.Text(key)
	if err != nil {
		return nil
	}
	return &s
}

// missingSegments are those between the ones that exist, and before them the one of
// this run that the first was resumed from.
func missingSegments(list []listedSegment, name string) []int {
	missing := []int{}
	for i, s := range list {
		from := s.Number
		if i > 0 {
			from = list[i-1].Number + 1
		} else if n := s.ResumedSegment; n != nil && s.ResumedFrom != nil && *n > 0 && *n < int64(s.Number) && isOfRun(*s.ResumedFrom, name) {
			from = int(*n)
		}
		for n := from; n < s.Number; n++ {
			missing = append(missing, n)
		}
	}
	return missing
}

// isOfRun tells by its name whether a file is one of a run.
func isOfRun(file, name string) bool {
	base := filepath.Base(file)
	return isRunName(base) && (strings.HasPrefix(base, name+".segment") ||
		base == filepath.Base(runfile.CheckpointFile("", name)) || base == filepath.Base(runfile.PreviousFile("", name)))
}

func listCheckpoint(ctx context.Context, path string) (listedCheckpoint, error) {
	l := listedCheckpoint{Path: path, PathBytes: notUTF8(path), State: stateMissing}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	info, faults, err := judgeRun(ctx, path, runfile.NoValues(), runfile.Warn(func(string) {}))
	if ctx.Err() != nil {
		return l, ctx.Err()
	}
	l.State, l.Error = judge(path, faults, err)
	if k := info.State; k != nil {
		l.Time, l.Segment, l.Saved = pointer(number(k.Time)), &k.Segment, &k.SavedCount
		l.Steps = counted(k.Summary.Accepted)
	}
	return l, nil
}

// join finds out whether the segments join, and what is dropped then.
func (l *runListing) join(ctx context.Context) error {
	var files []string
	for _, s := range l.Segments {
		files = append(files, s.Path)
	}
	if files == nil {
		return nil
	}
	s, err := runfile.Outline(ctx, files, runfile.Warn(func(text string) { l.JoinWarnings = append(l.JoinWarnings, text) }))
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		l.Join = pointer(cmp.Or(errors.Unwrap(err), err).Error())
		return nil
	}
	kept := make(map[string]int)
	for i := range s.Times {
		file, _ := s.Origin(i)
		kept[file]++
	}
	for i := range l.Segments {
		l.Segments[i].Dropped = pointer(l.Segments[i].States - kept[l.Segments[i].Path])
	}
	return nil
}

func (l *runListing) write(a *app) {
	t := newTable(0, 2, 3, 6)
	t.row("SEGMENT", "STATE", "STATES", "DROPPED", "TIMES", "STATUS", "ATTEMPTED", "RESUMED FROM", "NOTE")
	for _, s := range l.Segments {
		t.row(strconv.Itoa(s.Number), string(s.State), strconv.Itoa(s.States), orQuestion(s.Dropped), s.times(),
			orUnknown(s.Status), strconv.Itoa(s.Attempts), s.resumed(), s.note(l))
	}
	if len(l.Segments) > 0 {
		t.write(a.out, "")
	} else {
		fmt.Fprintln(a.out, "no segments")
	}
	t = newTable(3, 4, 5)
	t.row("CHECKPOINT", "STATE", "TIME", "SEGMENT", "SAVED", "ACCEPTED", "NOTE")
	for i, k := range l.Checkpoints {
		row := []string{[]string{"last", "previous"}[i], string(k.State), "", "", "", "", ""}
		if k.Time != nil {
			row[2], row[3], row[4], row[5] = exact(float64(*k.Time))+" s", strconv.Itoa(*k.Segment), strconv.Itoa(*k.Saved), orNotKnown(k.Steps)
		}
		if k.Error != nil {
			row[6] = *k.Error
		}
		t.row(row...)
	}
	t.write(a.out, "")
	if len(l.Missing) > 0 {
		fmt.Fprintf(a.out, "missing: %s\n", segmentNumbers(l.Missing))
	}
	switch {
	case l.Join != nil:
		fmt.Fprintf(a.out, "the segments don't join: %s\n", oneLine(*l.Join))
	case len(l.Segments) > 0:
		fmt.Fprintln(a.out, "the segments join")
	}
	for _, text := range l.JoinWarnings {
		fmt.Fprintf(a.out, "warning: %s\n", oneLine(text))
	}
	if l.InUse != nil && *l.InUse {
		fmt.Fprintln(a.out, "the run is going on")
	}
}

func segmentNumbers(list []int) string {
	const most = 20
	var words []string
	for i, n := range list {
		if i == most {
			words = append(words, fmt.Sprintf("… (%d in all)", len(list)))
			break
		}
		words = append(words, "segment "+strconv.Itoa(n))
	}
	return strings.Join(words, ", ")
}

func orQuestion(n *int) string {
	if n == nil {
		return "?"
	}
	return strconv.Itoa(*n)
}

func (s *listedSegment) times() string {
	switch {
	case s.First == nil:
		return "none"
	case s.States == 1:
		return exact(float64(*s.First)) + " s"
	}
	return fmt.Sprintf("%s to %s s", exact(float64(*s.First)), exact(float64(*s.Last)))
}

func (s *listedSegment) resumed() string {
	switch {
	case s.ResumedFrom == nil:
		return ""
	case s.ResumedSegment == nil:
		return filepath.Base(*s.ResumedFrom)
	}
	return fmt.Sprintf("%s of segment %d", filepath.Base(*s.ResumedFrom), *s.ResumedSegment)
}

func (s *listedSegment) note(l *runListing) string {
	switch {
	case s.Error != nil:
		return *s.Error
	case s.StopReason != nil:
		return *s.StopReason
	case s.Status != nil && *s.Status == "running" && l.InUse != nil && (!*l.InUse || s.Number < l.Segments[len(l.Segments)-1].Number):
		return "ended without closing"
	}
	return ""
}
