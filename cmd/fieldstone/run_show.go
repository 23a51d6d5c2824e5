package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// shownRun is a file of a run as JSON.
type shownRun struct {
	Path      string  `json:"path"`
	PathBytes []byte  `json:"path_bytes,omitempty"`
	State     state   `json:"state"`
	Error     *string `json:"error"` // the first of what is wrong
	Bytes     *int64  `json:"bytes"`

	Version  *string `json:"format_version"`
	Writer   *string `json:"writer"`
	Complete *bool   `json:"complete"` // null: of another writer, whose files have no mark, or not known
	Commit   *string `json:"commit"`
	Code     *string `json:"code_version"`

	*shownContent // nil, and no keys, where nothing but the root could be read
}

// shownContent is what is below the root.
type shownContent struct {
	Kind       string           `json:"kind"`
	SetupHash  *string          `json:"setup_hash"`
	Times      []number         `json:"times"`
	Unknowns   []shownUnknown   `json:"unknowns"`
	Updates    []shownUpdate    `json:"interval_updates"`
	Statistics *shownStatistics `json:"statistics"`
	Segment    json.RawMessage  `json:"segment"`
	Checkpoint *shownCheckpoint `json:"checkpoint"`

	segment record.Record
}

type shownUnknown struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"`
	Unit        string      `json:"unit"`
	Stored      bool        `json:"unit_stored"`
	Shapes      [][]int     `json:"shapes"` // one, or one for each radius
	Bytes       int64       `json:"bytes"`
	Bundle      *string     `json:"bundle"`
	BundleBytes []byte      `json:"bundle_bytes,omitempty"`
	Stats       *shownStats `json:"stats,omitempty"`
}

type shownUpdate struct {
	Name   string `json:"name"`
	Length int    `json:"length"`
}

// shownStatistics is what the solver did in all the file tells of. What a checkpoint
// doesn't know of the run is negative, and null in JSON.
type shownStatistics struct {
	Attempted int64  `json:"attempted"`
	Accepted  int64  `json:"accepted"`
	Nonlinear int64  `json:"nonlinear_iterations"`
	Linear    int64  `json:"linear_iterations"`
	WallTime  number `json:"wall_time"`
}

// MarshalJSON implements [json.Marshaler].
func (s *shownStatistics) MarshalJSON() ([]byte, error) {
	var wall *number
	if !(s.WallTime < 0) {
		wall = &s.WallTime
	}
	return json.Marshal(struct {
		Attempted *int64  `json:"attempted"`
		Accepted  *int64  `json:"accepted"`
		Nonlinear *int64  `json:"nonlinear_iterations"`
		Linear    *int64  `json:"linear_iterations"`
		WallTime  *number `json:"wall_time"`
	}{counted(s.Attempted), counted(s.Accepted), counted(s.Nonlinear), counted(s.Linear), wall})
}

type shownCheckpoint struct {
	Time         number            `json:"time"`
	Segment      int               `json:"segment_number"`
	Saved        int               `json:"saved_count"`
	Stepper      bool              `json:"stepper"`
	Bundles      map[string]string `json:"bundles"`
	BundlesBytes map[string][]byte `json:"bundles_bytes,omitempty"` // by field
	NonFinite    map[string]int64  `json:"non_finite"`              // null where nobody has counted
}

func (r runFile) show(ctx context.Context, o showOptions) error {
	a, path := r.app, r.path
	info, faults, err := runfile.Inspect(ctx, path, a.warnRun("show"))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if slices.ContainsFunc(faults, func(f error) bool { return isForeign(path, f) }) {
		a.reportRun("show", path, faults[0])
		return statusError(statusFailed)
	}
	s := newShownRun(info, faults, err)
	var list []runFault
	for _, f := range faults {
		list = append(list, newRunFault(path, f))
	}
	for _, line := range runFaultLines(list) {
		a.complain("show %s: %s", path, line)
	}
	if err != nil {
		a.reportRun("show", path, err)
	}
	if o.stats && s.State == stateGood {
		err := a.addRunStats(ctx, s, info)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			s.State, s.Error = stateBad, pointer(runReason(path, err))
			a.reportRun("show", path, err)
		}
	}
	if o.json {
		if err := writeJSON(a.out, s); err != nil {
			return err
		}
	} else {
		s.write(a)
	}
	if status := s.State.status(); status != statusGood {
		return statusError(status)
	}
	return nil
}

func newShownRun(i *runfile.Info, faults []error, err error) *shownRun {
	s := &shownRun{
		Path: i.File, PathBytes: notUTF8(i.File), State: stateGood, Bytes: sizeOf(i),
		Version: known(i.Version), Writer: known(i.Writer), Commit: known(i.Commit), Code: known(i.CodeVersion),
	}
	switch {
	case err != nil:
		s.State, s.Error = stateUnreadable, pointer(runReason(i.File, err))
	case len(faults) > 0:
		s.State, s.Error = stateBad, pointer(runReason(i.File, faults[0]))
	}
	switch {
	case slices.ContainsFunc(faults, func(f error) bool { return errors.Is(f, runfile.ErrTorn) }):
		s.Complete = pointer(false)
	case i.Ours:
		s.Complete = pointer(true)
	}
	if !unread(faults, err) {
		s.shownContent = newShownContent(i)
		if slices.ContainsFunc(faults, func(f error) bool { return isOfStatistics(f) }) {
			s.Statistics = nil // sums of a part would pass for those of all
		}
	}
	return s
}

// isOfStatistics reports whether a fault is one of the solver's statistics.
func isOfStatistics(err error) bool {
	f, ok := errors.AsType[*runfile.FileError](err)
	if !ok {
		return false
	}
	root, _, _ := strings.Cut(f.Object, "/")
	return root == "solver_statistics"
}

func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func newShownContent(i *runfile.Info) *shownContent {
	s := &shownContent{Kind: runKind(i), Times: []number{}, Unknowns: []shownUnknown{}, Updates: []shownUpdate{}}
	if hash, err := i.Settings.Text("setup_hash"); err == nil {
		s.SetupHash = &hash
	}
	for _, t := range i.Times {
		s.Times = append(s.Times, number(t))
	}
	for _, u := range i.Unknowns {
		shown := shownUnknown{Name: u.Name, Kind: string(u.Kind), Unit: u.Unit, Stored: u.HasUnit, Shapes: [][]int{}, Bundle: known(u.Bundle), BundleBytes: notUTF8(u.Bundle)}
		for _, d := range u.Datasets {
			shown.Shapes = append(shown.Shapes, d.Shape)
			shown.Bytes += d.Bytes
		}
		s.Unknowns = append(s.Unknowns, shown)
	}
	for _, u := range i.Updates {
		s.Updates = append(s.Updates, shownUpdate(u))
	}
	s.Statistics = summaryOf(&i.Statistics)
	if k := i.State; k != nil {
		for _, u := range k.Updates {
			s.Updates = append(s.Updates, shownUpdate{u.Name, len(u.State)})
		}
		s.Statistics = &shownStatistics{k.Summary.Attempted, k.Summary.Accepted, k.Summary.NonlinearIterations, k.Summary.LinearIterations, number(k.Summary.WallTime)}
		s.Checkpoint = &shownCheckpoint{Time: number(k.Time), Segment: k.Segment, Saved: k.SavedCount, Stepper: k.HasStepper, Bundles: k.Bundles, NonFinite: k.NonFinite}
		for field, path := range k.Bundles {
			if raw := notUTF8(path); raw != nil {
				if s.Checkpoint.BundlesBytes == nil {
					s.Checkpoint.BundlesBytes = make(map[string][]byte)
				}
				s.Checkpoint.BundlesBytes[field] = raw
			}
		}
		if k.Bundles == nil {
			s.Checkpoint.Bundles = map[string]string{}
		}
	}
	if segment, err := i.Settings.Record("segment"); err == nil {
		s.segment = segment
		// A record is always valid JSON.
		s.Segment, _ = segment.MarshalJSON()
	}
	return s
}

func summaryOf(s *runfile.Statistics) *shownStatistics {
	sum := &shownStatistics{Attempted: int64(s.Attempts())}
	for i := range s.Attempts() {
		if s.Accepted[i] {
			sum.Accepted++
		}
		sum.Nonlinear += s.NonlinearIterations[i]
		sum.Linear += s.LinearIterations[i]
		sum.WallTime += number(s.WallTime[i])
	}
	return sum
}

// counted is a count of a summary, nil where it isn't known.
func counted(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// orNotKnown is a count in words.
func orNotKnown(n *int64) string {
	if n == nil {
		return "not known"
	}
	return strconv.FormatInt(*n, 10)
}

// addRunStats reads the values of the unknowns, those of fields a slab at a time.
func (a *app) addRunStats(ctx context.Context, s *shownRun, i *runfile.Info) error {
	var states [][]float64
	var readField runfile.FieldReader
	quiet := runfile.Warn(func(string) {})
	if i.State != nil {
		k, err := runfile.ReadState(ctx, i.File, quiet)
		if err != nil {
			return err
		}
		states = append(states, k.State)
		readField = func(ctx context.Context, name string, _ int, box grid.Box, dst []float64) error {
			return k.ReadField(ctx, name, box, dst)
		}
	} else {
		out, err := runfile.ReadOutput(ctx, []string{i.File}, quiet)
		if err != nil {
			return err
		}
		states, readField = out.States, out.ReadField
	}
	for n, u := range i.Unknowns {
		if u.Bundle != "" {
			continue
		}
		t := newTally()
		if u.Kind != runfile.Field {
			from, to := i.Layout.Range(u.Name)
			for _, state := range states {
				t.add(state[from:to])
			}
		} else if err := a.tallyField(ctx, t, &u.Unknown, len(i.Times), readField); err != nil {
			return err
		}
		s.Unknowns[n].Stats = t.json()
	}
	return nil
}

func (a *app) tallyField(ctx context.Context, t *tally, u *runfile.Unknown, states int, read runfile.FieldReader) error {
	bar := a.start("read "+u.Name, 8*u.Domain.Cells()*int64(states))
	defer bar.end()
	return eachSlab(u.Domain, states, func(state int, box grid.Box, buffer []float64) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := read(ctx, u.Name, state, box, buffer); err != nil {
			return err
		}
		t.add(buffer)
		bar.add(8 * int64(len(buffer)))
		return nil
	})
}

// slabCells is the number of cells of a field that are read at once, unless a plane has
// more.
const slabCells = 1 << 20

// eachSlab visits the cells of a field at each state as boxes of whole planes, with
// room for the values of each.
func eachSlab(d grid.Domain, states int, visit func(state int, box grid.Box, buffer []float64) error) error {
	plane := d.Size[0] * d.Size[1]
	planes := max(1, min(d.Size[2], slabCells/plane))
	buffer := make([]float64, planes*plane)
	for state := range states {
		for z := 0; z < d.Size[2]; z += planes {
			n := min(planes, d.Size[2]-z)
			box := grid.Box{Low: [3]int{0, 0, z}, Size: [3]int{d.Size[0], d.Size[1], n}}
			if err := visit(state, box, buffer[:n*plane]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shownRun) write(a *app) {
	fmt.Fprintln(a.out, oneLine(s.Path))
	t := newTable()
	c := s.shownContent
	if c != nil {
		t.row("kind", c.kindText())
	}
	t.row("format", orUnknown(s.Version))
	t.row("written by", s.writtenBy())
	t.row("complete", s.completeText())
	if c != nil {
		t.row("saved states", strconv.Itoa(len(c.Times)))
		t.row("saved times", span(floatsOf(c.Times)))
		t.row("setup hash", orUnknown(c.SetupHash))
	}
	t.row("size", orNoSize(s.Bytes))
	t.write(a.out, "  ")
	if c != nil {
		c.write(a)
	}
}

func floatsOf(list []number) []float64 {
	v := make([]float64, len(list))
	for i, n := range list {
		v[i] = float64(n)
	}
	return v
}

func orUnknown(text *string) string {
	if text == nil {
		return "not known"
	}
	return *text
}

func (s *shownRun) writtenBy() string {
	var parts []string
	switch {
	case s.Writer != nil:
		parts = append(parts, *s.Writer)
	case s.Code != nil:
		parts = append(parts, "another program, version "+*s.Code)
	default:
		return "not known"
	}
	if s.Commit != nil {
		parts = append(parts, "commit "+*s.Commit)
	}
	return strings.Join(parts, ", ")
}

func (s *shownRun) completeText() string {
	switch {
	case s.Complete == nil && s.Version == nil && s.Code == nil:
		return "not known" // nor who wrote it
	case s.Complete == nil:
		return "not known, other writers set no mark"
	case *s.Complete:
		return "yes"
	}
	return "no"
}

func (c *shownContent) kindText() string {
	if c.Kind != "segment" {
		return c.Kind
	}
	n, err := c.segment.Int("index")
	if err != nil {
		return c.Kind
	}
	return fmt.Sprintf("segment %d", n)
}

func (c *shownContent) write(a *app) {
	if k := c.Checkpoint; k != nil {
		fmt.Fprintln(a.out, "checkpoint")
		t := newTable()
		t.row("time", exact(float64(k.Time))+" s")
		t.row("segment", strconv.Itoa(k.Segment))
		t.row("saved so far", strconv.Itoa(k.Saved))
		t.row("stepper", yesNo(k.Stepper))
		for _, name := range slices.Sorted(maps.Keys(k.NonFinite)) {
			t.row("NaN or infinite in "+name, strconv.FormatInt(k.NonFinite[name], 10))
		}
		for _, name := range slices.Sorted(maps.Keys(k.Bundles)) {
			t.row("bundle of "+name, k.Bundles[name])
		}
		t.write(a.out, "  ")
	}
	if c.segment.Len() > 0 {
		fmt.Fprintln(a.out, "segment")
		for line := range strings.Lines(c.segment.String()) {
			fmt.Fprint(a.out, "  ", line)
		}
	}
	c.writeUnknowns(a)
	if s := c.Statistics; s != nil {
		fmt.Fprintln(a.out, "statistics")
		t := newTable()
		t.row("attempted steps", orNotKnown(counted(s.Attempted)))
		t.row("accepted steps", orNotKnown(counted(s.Accepted)))
		t.row("nonlinear iterations", orNotKnown(counted(s.Nonlinear)))
		t.row("linear iterations", orNotKnown(counted(s.Linear)))
		wall := "not known"
		if !(s.WallTime < 0) {
			wall = rough(float64(s.WallTime)) + " s"
		}
		t.row("wall time", wall)
		t.write(a.out, "  ")
	}
	if len(c.Updates) > 0 {
		fmt.Fprintln(a.out, "interval updates")
		t := newTable(1)
		t.row("NAME", "LENGTH")
		for _, u := range c.Updates {
			t.row(u.Name, strconv.Itoa(u.Length))
		}
		t.write(a.out, "  ")
	}
}

func (c *shownContent) writeUnknowns(a *app) {
	fmt.Fprintln(a.out, "unknowns")
	t := newTable(4, 5, 6, 7, 8)
	t.row("NAME", "KIND", "SHAPE", "UNIT", "SIZE")
	stats := slices.ContainsFunc(c.Unknowns, func(u shownUnknown) bool { return u.Stats != nil })
	if stats {
		t.rows[0] = append(t.rows[0], "MIN", "MAX", "MEAN", "NANS")
	}
	for _, u := range c.Unknowns {
		row := []string{u.Name, u.Kind, u.shape(), orNone(u.Unit), humanSize(u.Bytes)}
		if u.Stats != nil {
			row = append(row, u.Stats.cells()...)
		}
		t.row(row...)
	}
	t.write(a.out, "  ")
}

// shape shows at most a few of the shapes at radii.
func (u *shownUnknown) shape() string {
	const most = 3
	var words []string
	for i, s := range u.Shapes {
		if i == most {
			words = append(words, fmt.Sprintf("… of %d", len(u.Shapes)))
			break
		}
		words = append(words, shapeText(s))
	}
	switch {
	case u.Bundle != nil:
		return "in the bundle " + *u.Bundle
	case words == nil:
		return "not there"
	}
	return strings.Join(words, " ")
}
