package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/publish"
)

// shown is a bundle as JSON.
type shown struct {
	Path           string  `json:"path"`
	PathBytes      []byte  `json:"path_bytes,omitempty"`
	State          state   `json:"state"`
	Error          *string `json:"error"`
	*shownMetadata         // nil, and no keys, where the metadata can't be read
	Checksums      bool    `json:"checksums"`
	Sidecar        bool    `json:"sidecar"`
	Bytes          *int64  `json:"bytes"` // null where files are missing or of a wrong size
	// Unlisted are files of fields that the metadata don't list.
	Unlisted      []string `json:"unlisted,omitempty"`
	UnlistedBytes [][]byte `json:"unlisted_bytes,omitempty"`

	metadata publish.Metadata
}

// shownMetadata has the keys of metadata.json under their names, except the fields.
type shownMetadata struct {
	FormatVersion int             `json:"format_version"`
	Time          float64         `json:"accepted_time"`
	Increment     int64           `json:"accepted_increment"`
	ResultCounter int64           `json:"result_counter"`
	Domain        shownDomain     `json:"domain"`
	Decomposition *shownDecomp    `json:"decomposition"`
	Method        string          `json:"method_identity"`
	Fields        []shownField    `json:"fields"`
	Boundaries    []shownBoundary `json:"boundary_conditions"`
	Writer        *shownWriter    `json:"fieldstone"`
}

type shownDomain struct {
	Size     [3]int     `json:"global_dimensions"`
	Origin   [3]float64 `json:"physical_origin"`
	Spacing  [3]float64 `json:"grid_spacing"`
	Periodic [3]bool    `json:"periodic"`
}

type shownDecomp struct {
	MPISize     int    `json:"mpi_size"`
	LocalSize   [3]int `json:"local_size"`
	LocalOffset [3]int `json:"local_offset"`
}

type shownWriter struct {
	Version string     `json:"version"`
	Created *time.Time `json:"created"`
}

type shownBoundary struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
}

type shownField struct {
	ID        string      `json:"id"`
	Cells     int64       `json:"cells"`
	Bytes     int64       `json:"bytes"`
	NonFinite *int64      `json:"non_finite"` // null if nobody has counted
	Stats     *shownStats `json:"stats,omitempty"`
}

type shownStats struct {
	Min  number `json:"min"`
	Max  number `json:"max"`
	Mean number `json:"mean"`
	NaNs int64  `json:"nans"`
}

func (b bundle) show(ctx context.Context, o showOptions) error {
	s, _, err := b.shownOf(ctx, bundleEntry(b.path), o.stats)
	if err != nil {
		return err
	}
	b.told(s)
	if o.json {
		err = writeJSON(b.out, s)
	} else {
		s.write(b.app)
	}
	return worst(err, []shown{s})
}

// shownOf is a bundle, with statistics if they are wanted: unread is why its values can't be
// read then. The error is that it was interrupted.
func (a *app) shownOf(ctx context.Context, e *entry, withStats bool) (s shown, unread, err error) {
	s = newShown(e)
	if !withStats || e.state != stateGood {
		return s, nil, nil
	}
	if unread = a.addStats(ctx, &s); unread != nil {
		e.judge(unread)
		s.State, s.Error = e.state, pointer(reason(e.path, unread))
	}
	return s, unread, ctx.Err()
}

// told reports what is wrong with a bundle.
func (a *app) told(s shown) {
	if s.Error != nil {
		a.complain("show %s: %s", s.Path, *s.Error)
	}
	a.warnUnlisted("show", s.Path, s.Unlisted)
}

// worst is the exit status of the worst of some bundles, unless there is an error.
func worst(err error, bundles []shown) error {
	status := statusGood
	for _, s := range bundles {
		status = max(status, s.State.status())
	}
	if err == nil && status != statusGood {
		err = statusError(status)
	}
	return err
}

func newShown(e *entry) shown {
	s := shown{
		Path:      e.path,
		PathBytes: notUTF8(e.path),
		State:     e.state,
		Checksums: e.info.Checksums,
		Sidecar:   e.info.Sidecar,
		Unlisted:  e.info.Unlisted,

		UnlistedBytes: anyNotUTF8(e.info.Unlisted),

		metadata: e.info.Metadata,
	}
	if e.whole {
		s.Bytes = &e.info.Bytes
	}
	if e.cause != nil {
		s.Error = pointer(reason(e.path, e.cause))
	}
	if e.known() {
		s.shownMetadata = newShownMetadata(e.info.Metadata)
	}
	return s
}

func newShownMetadata(m publish.Metadata) *shownMetadata {
	s := &shownMetadata{
		FormatVersion: m.FormatVersion,
		Time:          m.AcceptedTime,
		Increment:     m.AcceptedIncrement,
		ResultCounter: m.ResultCounter,
		Domain:        shownDomain(m.Domain),
		Decomposition: (*shownDecomp)(m.Decomposition),
		Method:        m.MethodIdentity,
		Fields:        []shownField{},
	}
	for _, id := range m.Fields {
		f := shownField{ID: id, Cells: m.Domain.Cells(), Bytes: 8 * m.Domain.Cells()}
		if counts := nonFinite(m); counts != nil {
			f.NonFinite = pointer(counts[id])
		}
		s.Fields = append(s.Fields, f)
	}
	if m.BoundaryConditions != nil {
		s.Boundaries = []shownBoundary{}
	}
	for _, b := range m.BoundaryConditions {
		s.Boundaries = append(s.Boundaries, shownBoundary(b))
	}
	if w := m.Writer; w != nil {
		s.Writer = &shownWriter{Version: w.Version}
		if !w.Created.IsZero() {
			s.Writer.Created = &w.Created
		}
	}
	return s
}

// addStats reads the fields of a bundle.
func (a *app) addStats(ctx context.Context, s *shown) error {
	b, err := openBundle(s.Path)
	if err != nil {
		return err
	}
	defer b.Close()
	bar := a.start("read "+s.Path, int64(len(s.Fields))*8*s.metadata.Domain.Cells())
	defer bar.end()
	for i := range s.Fields {
		f := &s.Fields[i]
		var seen int64
		v, err := b.Stats(ctx, f.ID, func(done, _ int64) {
			bar.add(done - seen)
			seen = done
		})
		if err != nil {
			return err
		}
		f.Stats = &shownStats{Min: number(v.Min), Max: number(v.Max), Mean: number(v.Mean), NaNs: v.NaNs}
	}
	return nil
}

func (s *shown) write(a *app) {
	if s.shownMetadata == nil {
		return
	}
	fmt.Fprintln(a.out, oneLine(s.Path))
	m := s.metadata
	t := newTable()
	t.row("time", exact(m.AcceptedTime))
	t.row("increment", strconv.FormatInt(m.AcceptedIncrement, 10))
	t.row("results", strconv.FormatInt(m.ResultCounter, 10))
	t.row("method", orNone(m.MethodIdentity))
	t.row("grid", fmt.Sprintf("%s (%s)", dimensions(m.Domain), count(m.Domain.Cells(), "cell")))
	t.row("origin", triple(m.Domain.Origin))
	t.row("spacing", triple(m.Domain.Spacing))
	t.row("periodic", periodic(m.Domain))
	t.row("written by", writtenBy(m))
	t.row("format", strconv.Itoa(m.FormatVersion))
	t.row("checksums", yesNo(s.Checksums))
	t.row("sidecar", yesNo(s.Sidecar))
	t.row("size", s.size())
	t.write(a.out, "  ")
	if m.BoundaryConditions != nil {
		fmt.Fprintln(a.out, "boundary conditions")
		t := newTable()
		t.row("CONFIG", "STATE")
		for _, b := range m.BoundaryConditions {
			state := "none"
			if b.State != nil {
				state = string(b.State)
			}
			t.row(string(b.Config), state)
		}
		t.write(a.out, "  ")
	}
	fmt.Fprintln(a.out, "fields")
	t = newTable(1, 2, 3, 4, 5)
	stats := len(s.Fields) > 0 && s.Fields[0].Stats != nil
	if stats {
		t.row("ID", "SIZE", "MIN", "MAX", "MEAN", "NANS")
	} else {
		t.row("ID", "SIZE")
	}
	for _, f := range s.Fields {
		row := []string{f.ID, humanSize(f.Bytes)}
		if v := f.Stats; v != nil {
			row = append(row, v.cells()...)
		}
		t.row(row...)
	}
	t.write(a.out, "  ")
	if text := notFinite(m); text != "" {
		fmt.Fprintln(a.out, oneLine(text))
	}
}

func (s *shown) size() string {
	if s.Bytes == nil {
		return "not known"
	}
	return humanSize(*s.Bytes)
}

func (v *shownStats) cells() []string {
	return []string{rough(float64(v.Min)), rough(float64(v.Max)), rough(float64(v.Mean)), strconv.FormatInt(v.NaNs, 10)}
}

// writeShort writes a line for each bundle, or, with statistics, for each field.
func writeShort(a *app, bundles []shown, withStats bool) {
	var t *table
	if withStats {
		t = newTable(1, 2, 4, 5, 6, 7)
		t.row("NAME", "INCREMENT", "TIME", "FIELD", "MIN", "MAX", "MEAN", "NANS")
	} else {
		t = newTable(1, 2, 6)
		t.row("NAME", "INCREMENT", "TIME", "GRID", "FIELDS", "METHOD", "SIZE")
	}
	for _, s := range bundles {
		name := filepath.Base(s.Path)
		if s.shownMetadata == nil {
			continue
		}
		m := s.metadata
		increment, time := strconv.FormatInt(m.AcceptedIncrement, 10), exact(m.AcceptedTime)
		if !withStats {
			t.row(name, increment, time, dimensions(m.Domain), strings.Join(m.Fields, ", "), orNone(m.MethodIdentity), s.size())
			continue
		}
		for _, f := range s.Fields {
			if f.Stats != nil {
				t.row(append([]string{name, increment, time, f.ID}, f.Stats.cells()...)...)
			}
		}
	}
	t.write(a.out, "")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func dimensions(d grid.Domain) string {
	return fmt.Sprintf("%d x %d x %d", d.Size[0], d.Size[1], d.Size[2])
}

func triple(v [3]float64) string {
	return fmt.Sprintf("%s, %s, %s", exact(v[0]), exact(v[1]), exact(v[2]))
}

func periodic(d grid.Domain) string {
	var axes []string
	for a, p := range d.Periodic {
		if p {
			axes = append(axes, string("xyz"[a]))
		}
	}
	if axes == nil {
		return "no axis"
	}
	return strings.Join(axes, ", ")
}

func writtenBy(m publish.Metadata) string {
	var parts []string
	if w := m.Writer; w != nil {
		if w.Version != "" {
			parts = append(parts, "fieldstone "+w.Version)
		}
		if !w.Created.IsZero() {
			parts = append(parts, stamp(w.Created))
		}
	}
	if d := m.Decomposition; d != nil {
		box := grid.Box{Low: d.LocalOffset, Size: d.LocalSize}
		parts = append(parts, fmt.Sprintf("%s, rank 0 with %s", count(int64(d.MPISize), "rank"), box))
	}
	if parts == nil {
		return "not known"
	}
	return strings.Join(parts, ", ")
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
