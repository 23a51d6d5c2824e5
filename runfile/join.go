package runfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/record"
)

// ErrNotOneRun says that files are not the segments of one run, in order.
var ErrNotOneRun = errors.New("not the segments of one run")

// A JoinError says why a file doesn't go on from another one. It matches [ErrNotOneRun].
type JoinError struct {
	First, Second string // the files
	Err           error
}

// Error returns the files and the reason.
func (e *JoinError) Error() string {
	return fmt.Sprintf("join %s and %s: %v", e.First, e.Second, e.Err)
}

// Unwrap returns the reason.
func (e *JoinError) Unwrap() error { return e.Err }

// unknownHash is what other writers have for a hash that they don't know.
const unknownHash = "unknown"

// knownHash reports whether a hash that settings may have can be compared.
func knownHash(hash *string) bool { return hash != nil && *hash != "" && *hash != unknownHash }

// segment is what a part's settings say of it. What they don't say is not there.
type segment struct {
	index, resumedFrom           *int64
	savedBefore, attemptsBefore  *int64
	start, end                   *float64
	setupHash, previousSetupHash string
	joined                       bool // the part has states of segments before it
}

func segmentOf(settings record.Record) (s segment, err error) {
	for path, to := range map[string]**int64{
		"segment/index":                &s.index,
		"segment/resumed_from_segment": &s.resumedFrom,
		"segment/saved_before":         &s.savedBefore,
		"segment/attempts_before":      &s.attemptsBefore,
	} {
		if *to, err = optional(intAt(settings, path)); err != nil {
			return s, err
		}
	}
	for path, to := range map[string]**float64{"segment/start_time": &s.start, "segment/end_time": &s.end} {
		if *to, err = optional(floatAt(settings, path)); err != nil {
			return s, err
		}
	}
	for path, to := range map[string]*string{
		"setup_hash":                  &s.setupHash,
		"segment/previous_setup_hash": &s.previousSetupHash,
	} {
		text, err := optional(textAt(settings, path))
		if err != nil {
			return s, err
		}
		if knownHash(text) {
			*to = *text
		}
	}
	return s, nil
}

// segmentOfPart is what the settings of a part say of it. The output of joined
// segments has those of the last one, whose counts are not those before all of it: that
// of states is known from its own, that of attempts isn't.
func segmentOfPart(part *Solution) (segment, error) {
	s, err := segmentOf(part.Settings)
	if err != nil || s.start == nil || !precedes(part.Times, *s.start) {
		return s, err
	}
	s.joined, s.attemptsBefore = true, nil
	if s.savedBefore != nil {
		n := max(0, *s.savedBefore-int64(until(part.Times, *s.start)))
		s.savedBefore = &n
	}
	return s, nil
}

// until counts the times up to one.
func until(times []float64, last float64) int {
	n := len(times)
	for n > 0 && times[n-1] > last {
		n--
	}
	return n
}

// optional is nil for what a record doesn't have.
func optional[T any](v T, err error) (*T, error) {
	switch {
	case errors.Is(err, record.ErrMissing):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &v, nil
}

// ofSettings says that an error is one of the settings, where no file is named.
func ofSettings(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("settings: %w", err)
}

// join makes one solution of the segments of a run in order, each a part from one
// file. What is repeated is taken from the later part. The error matches
// [ErrNotOneRun]; what is odd, but no reason to refuse the parts, is a warning.
func join(parts []*Solution, warn func(string)) (*Solution, error) {
	parts = withoutClashes(parts, warn)
	joined := *parts[0]
	joined.Updates = slices.Clone(joined.Updates)
	joined.Statistics = joined.Statistics.filled()
	if err := increasing(&joined); err != nil {
		return nil, err
	}
	first, err := segmentOfPart(parts[0])
	if err != nil {
		return nil, ofFile(joined.Files[0], "settings", err)
	}
	before := first
	own := 0 // attempts in joined that are not of the last part
	for i, b := range parts[1:] {
		a := parts[i]
		seg, err := segmentOfPart(b)
		if err != nil {
			return nil, ofFile(b.Files[0], "settings", err)
		}
		if err := follows(a, b, before, seg); err != nil {
			return nil, err
		}
		if err := sameUnknowns(parts[0], b, warn); err != nil {
			return nil, err
		}
		if seg.start != nil {
			joined.cut(*seg.start)
			joined.cutRepeated(b, seg, first.savedBefore)
		}
		adjoins(a, b, before, seg, first.savedBefore, len(joined.Times), warn)
		joined.Statistics = cutStatistics(joined.Statistics, own, before, seg)
		own = joined.Statistics.Attempts()
		if err := joined.add(a, b); err != nil {
			return nil, err
		}
		before = seg
	}
	joined.takeUnits(parts, warn)
	return &joined, nil
}

// refuse is an error about two files.
func refuse(a, b *Solution, format string, args ...any) error {
	return &JoinError{a.Files[0], b.Files[0], fmt.Errorf("%w: %s", ErrNotOneRun, fmt.Sprintf(format, args...))}
}

// follows checks what the settings of two parts say of each other.
func follows(a, b *Solution, sa, sb segment) error {
	switch {
	case sa.start != nil && sb.start != nil && *sb.start < *sa.start:
		return refuse(a, b, "the second starts at %v s, before the first at %v s", *sb.start, *sa.start)
	case sa.index != nil && sb.resumedFrom != nil && *sb.resumedFrom != *sa.index:
		return refuse(a, b, "the second was resumed from segment %d, the first is segment %d", *sb.resumedFrom, *sa.index)
	case sa.setupHash != "" && sb.previousSetupHash != "" && sb.previousSetupHash != sa.setupHash:
		return refuse(a, b, "the second continues the setup %s, the first has %s", sb.previousSetupHash, sa.setupHash)
	}
	return nil
}

// adjoins warns where something is missing between two parts, as far as that is known:
// kept is how many states there are before the second, with those that the run had saved
// before the first of all parts.
func adjoins(a, b *Solution, sa, sb segment, savedBefore *int64, kept int, warn func(string)) {
	odd := func(format string, args ...any) {
		warn(fmt.Sprintf("join %s and %s: %s", a.Files[0], b.Files[0], fmt.Sprintf(format, args...)))
	}
	if sa.end != nil && sb.start != nil && *sa.end < *sb.start {
		odd("the first ends at %v s, before the second starts at %v s", *sa.end, *sb.start)
	}
	if savedBefore != nil && sb.savedBefore != nil && *savedBefore+int64(kept) < *sb.savedBefore {
		odd("%d states are saved before the second, which counts %d", *savedBefore+int64(kept), *sb.savedBefore)
	}
	if sa.attemptsBefore == nil || sb.attemptsBefore == nil {
		return
	}
	if n := *sa.attemptsBefore + int64(a.Statistics.Attempts()); n < *sb.attemptsBefore {
		odd("%d steps are attempted before the second, which counts %d", n, *sb.attemptsBefore)
	}
}

// sameUnknowns compares the unknowns of two parts: their names, and the lengths of what
// the state has of each, the cells of fields included. Else the layout of the first part
// would not be that of the states.
func sameUnknowns(a, b *Solution, warn func(string)) error {
	names := func(s *Solution) (list []string) {
		for _, u := range s.Layout.Unknowns {
			list = append(list, u.Name)
		}
		return list
	}
	if na, nb := names(a), names(b); !slices.Equal(na, nb) {
		return refuse(a, b, "the unknowns are %s and %s", strings.Join(na, ", "), strings.Join(nb, ", "))
	}
	for i := range a.Layout.Unknowns {
		u, v := &a.Layout.Unknowns[i], &b.Layout.Unknowns[i]
		if (u.Kind == Field) != (v.Kind == Field) {
			return refuse(a, b, "unknown %q is %v and %v", u.Name, u.Kind, v.Kind)
		}
		if u.Kind == Field && v.Domain.Size != u.Domain.Size {
			return refuse(a, b, "field %q has %v and %v cells", u.Name, u.Domain.Size, v.Domain.Size)
		}
	}
	if la, lb := a.Layout.Size(), b.Layout.Size(); la != lb {
		return refuse(a, b, "the states have %d and %d numbers", la, lb)
	}
	for i := range a.Layout.Unknowns {
		u, v := &a.Layout.Unknowns[i], &b.Layout.Unknowns[i]
		if na, nb := a.Layout.length(u), b.Layout.length(v); na != nb {
			return refuse(a, b, "unknown %q has %d and %d numbers of the states", u.Name, na, nb)
		}
		if what := a.Layout.other(u, &b.Layout, v); what != "" {
			warn(fmt.Sprintf("unknown %q has %s in %s and in %s: the joined layout is that of the first",
				u.Name, what, a.Files[0], b.Files[0]))
		}
	}
	return nil
}

// other says what of an unknown is not the same in another layout, except its unit.
func (l *Layout) other(u *Unknown, m *Layout, v *Unknown) string {
	grids := func(l *Layout, u *Unknown) (list []MomentumGrid) {
		for r := range cells(l.R) {
			g := *l.momentum(u, r)
			g.Name = "" // another name makes no other grid
			list = append(list, g)
		}
		return list
	}
	switch {
	case u.Kind != v.Kind:
		return "other kinds"
	case u.Kind == Field && u.Domain != v.Domain:
		return "other domains"
	case u.Kind == Radial && u.Components != v.Components:
		return "other numbers of components"
	case (u.Kind == Radial || u.Kind == Kinetic) && !slices.Equal(l.R, m.R):
		return "other radial grids"
	case u.Kind == Kinetic && !reflect.DeepEqual(grids(l, u), grids(m, v)):
		return "other momentum grids"
	}
	return ""
}

// cut drops the states that the next part repeats, which starts at a time.
func (s *Solution) cut(start float64) { s.keep(until(s.Times, start)) }

// cutRepeated drops the last state if the next part has it too, as the first segment of a
// run that was continued in another directory: its count of the states before it, of which
// before are those before all of s, leaves that one out.
func (s *Solution) cutRepeated(next *Solution, seg segment, before *int64) {
	n := len(s.Times)
	if n == 0 || len(next.Times) == 0 || next.Times[0] != s.Times[n-1] || seg.savedBefore == nil || before == nil {
		return
	}
	if *before+int64(n) == *seg.savedBefore+1 {
		s.keep(n - 1)
	}
}

// keep drops all but the first n states.
func (s *Solution) keep(n int) {
	s.Times, s.States = s.Times[:n], s.States[:n]
	s.origins = s.origins[:min(n, len(s.origins))]
	s.Updates = slices.Clone(s.Updates)
	for i, u := range s.Updates {
		s.Updates[i].States = u.States[:n]
	}
}

// cutStatistics drops the attempts of the last part, which come after the first own
// ones, that the next part repeats. The first segment of a run that started from another's
// state may count from its own beginning: what led to that state is not repeated.
func cutStatistics(all Statistics, own int, a, b segment) Statistics {
	last := all.from(own)
	switch {
	case a.attemptsBefore != nil && b.attemptsBefore != nil:
		n := int(max(0, min(*b.attemptsBefore-*a.attemptsBefore, int64(last.Attempts()))))
		if b.start != nil && a.index != nil && b.index != nil && *b.index <= *a.index {
			n = max(n, last.untilAccepted(*b.start))
		}
		last = last.first(n)
	case b.start != nil:
		last = last.until(*b.start)
	}
	earlier := all.first(own)
	return earlier.then(last)
}

// add appends the states and the statistics of the next part.
func (s *Solution) add(a, b *Solution) error {
	if len(b.Times) > 0 {
		if err := s.sameUpdates(a, b); err != nil {
			return err
		}
		if n := len(s.Times); n > 0 && b.Times[0] <= s.Times[n-1] {
			return refuse(a, b, "the saved times are not increasing: %v s is followed by %v s", s.Times[n-1], b.Times[0])
		}
		if err := increasing(b); err != nil {
			return err
		}
	}
	s.Times = slices.Concat(s.Times, b.Times)
	s.States = slices.Concat(s.States, b.States)
	s.origins = slices.Concat(s.origins, b.origins)
	for i := range s.Updates {
		if len(b.Times) > 0 {
			s.Updates[i].States = slices.Concat(s.Updates[i].States, b.Updates[i].States)
		}
	}
	s.Statistics = s.Statistics.then(b.Statistics.filled())
	s.Files = slices.Concat(s.Files, b.Files)
	s.Settings, s.carried, s.Version = b.Settings, b.carried, b.Version
	return nil
}

// sameUpdates compares interval updates; those of parts without a saved state aren't
// known.
func (s *Solution) sameUpdates(a, b *Solution) error {
	if len(s.Times) == 0 {
		s.Updates = make([]UpdateStates, len(b.Updates))
		for i, u := range b.Updates {
			s.Updates[i].Name = u.Name
		}
		return nil
	}
	describe := func(s *Solution) string {
		var list []string
		for _, u := range s.Updates {
			list = append(list, fmt.Sprintf("%s of %d", u.Name, len(u.States[0])))
		}
		if list == nil {
			return "none"
		}
		return strings.Join(list, ", ")
	}
	if ua, ub := describe(s), describe(b); ua != ub {
		return refuse(a, b, "the interval updates are %s and %s", ua, ub)
	}
	return nil
}

func increasing(s *Solution) error {
	for i := 1; i < len(s.Times); i++ {
		if s.Times[i] <= s.Times[i-1] {
			return in(s.Files[0], "", ErrNotOneRun, "the saved times are not increasing: %v s is followed by %v s", s.Times[i-1], s.Times[i])
		}
	}
	return nil
}

// takeUnits gives each unknown the unit of the latest part that stores one.
func (s *Solution) takeUnits(parts []*Solution, warn func(string)) {
	s.Layout.Unknowns = slices.Clone(s.Layout.Unknowns)
	units := map[string]string{}
	for i := range s.Layout.Unknowns {
		u := &s.Layout.Unknowns[i]
		var named *Solution // the last part with a unit that is not empty
		for _, p := range parts {
			unit, ok := p.units[u.Name]
			if !ok {
				continue
			}
			if unit != "" {
				if named != nil && named.units[u.Name] != unit {
					warn(fmt.Sprintf("unknown %q has the unit %q in %s and %q in %s: values are as they are stored",
						u.Name, named.units[u.Name], named.Files[0], unit, p.Files[0]))
				}
				named = p
			}
			u.Unit, units[u.Name] = unit, unit
		}
	}
	s.units = units
}
