package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/publish"
)

// listing is a directory of bundles as JSON.
type listing struct {
	Directory      string        `json:"directory"`
	DirectoryBytes []byte        `json:"directory_bytes,omitempty"`
	Verified       bool          `json:"verified"`
	Entries        []listedEntry `json:"entries"`
	Latest         listedRestart `json:"latest"`
	Runs           []string      `json:"runs"` // names of runs that have files here
	RunsBytes      [][]byte      `json:"runs_bytes,omitempty"`
}

// listedEntry has null for what isn't known or makes no sense.
type listedEntry struct {
	Name      string           `json:"name"`
	NameBytes []byte           `json:"name_bytes,omitempty"`
	Kind      kind             `json:"kind"`
	State     state            `json:"state"`
	Checked   *string          `json:"checked"`
	Error     *string          `json:"error"`
	Reason    *string          `json:"reason"` // why it was set aside, or is left over
	Increment *int64           `json:"accepted_increment"`
	Time      *number          `json:"accepted_time"`
	Bytes     *int64           `json:"bytes"`
	Created   *time.Time       `json:"created"`
	NonFinite map[string]int64 `json:"non_finite"`
}

type listedRestart struct {
	From   *string  `json:"from"`
	Passed []string `json:"passed_over"`
	Fresh  bool     `json:"fresh_start"`
	Error  *string  `json:"error"`
}

func (d directory) list(ctx context.Context, o lsOptions) error {
	a, dir := d.app, d.path
	entries, err := list(dir)
	if err != nil {
		a.report("ls", dir, err)
		return statusError(statusFailed)
	}
	if o.verify {
		for _, e := range entries {
			if err := a.verifyEntry(ctx, e); err != nil {
				return err
			}
		}
		entries = slices.DeleteFunc(entries, func(e *entry) bool { return e.state != stateGood && e.gone() })
	}
	if o.json {
		return writeJSON(a.out, newListing(dir, entries, o.verify))
	}
	writeListing(a, entries, o.verify)
	if runs := runNames(dir); len(runs) > 0 {
		fmt.Fprintln(a.out, oneLine(runsText(dir, runs)))
	}
	return nil
}

// verifyEntry makes the state of a bundle that of its contents. It returns an
// error only when it was interrupted.
func (a *app) verifyEntry(ctx context.Context, e *entry) error {
	if e.state != stateGood {
		return nil
	}
	bar := a.start("verify "+e.name, e.info.Bytes)
	defer bar.end()
	b, err := openBundle(e.path)
	if err == nil {
		defer b.Close()
		var seen int64
		err = b.Verify(ctx, func(_ string, done, _ int64) {
			bar.add(done - seen)
			seen = done
		})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e.judge(err)
	return nil
}

// isBundle tells bundles, set aside or not, from leftovers.
func (e *entry) isBundle() bool {
	return e.kind == kindBundle || e.kind == kindDamaged || e.kind == kindSuperseded
}

// known reports whether the metadata could be read.
func (e *entry) known() bool { return e.info.Metadata.FormatVersion != 0 }

// checked is how the state of a bundle was found.
func (e *entry) checked(verify bool) string {
	if verify && e.info.Checksums {
		return byChecksum
	}
	return bySize
}

func newListing(dir string, entries []*entry, verify bool) listing {
	l := listing{Directory: dir, DirectoryBytes: notUTF8(dir), Verified: verify, Entries: []listedEntry{}, Runs: runNames(dir)}
	l.RunsBytes = anyNotUTF8(l.Runs)
	for _, e := range entries {
		j := listedEntry{Name: e.name, NameBytes: notUTF8(e.name), Kind: e.kind, State: e.state}
		if e.cause != nil {
			j.Error = pointer(reason(e.path, e.cause))
		}
		j.Reason = known(e.why(entries, verify))
		if e.isBundle() {
			j.Checked = pointer(e.checked(verify))
		}
		if m := e.info.Metadata; e.known() {
			j.Increment, j.Time = &m.AcceptedIncrement, pointer(number(m.AcceptedTime))
			if e.whole {
				j.Bytes = &e.info.Bytes
			}
			if m.Writer != nil && !m.Writer.Created.IsZero() {
				j.Created = &m.Writer.Created
			}
			j.NonFinite = nonFinite(m)
		}
		l.Entries = append(l.Entries, j)
	}
	r := latest(entries)
	l.Latest = listedRestart{Passed: r.passed, Fresh: r.fresh}
	if r.passed == nil {
		l.Latest.Passed = []string{}
	}
	if r.from != "" {
		l.Latest.From = &r.from
	}
	if r.cause != nil {
		l.Latest.Error = pointer(r.cause.Error())
	}
	return l
}

func pointer[T any](v T) *T { return &v }

func writeListing(a *app, entries []*entry, verify bool) {
	if len(entries) == 0 {
		fmt.Fprintln(a.out, "no bundles")
		return
	}
	t := newTable(2, 3, 4)
	t.row("NAME", "STATE", "INCREMENT", "TIME", "SIZE", "CREATED", "NOTE")
	for _, e := range entries {
		row := []string{e.name, e.word(), "", "", "", "", e.note(entries, verify)}
		if m := e.info.Metadata; e.known() {
			row[2], row[3] = strconv.FormatInt(m.AcceptedIncrement, 10), exact(m.AcceptedTime)
			if e.whole {
				row[4] = humanSize(e.info.Bytes)
			}
			if m.Writer != nil && !m.Writer.Created.IsZero() {
				row[5] = stamp(m.Writer.Created)
			}
		}
		t.row(row...)
	}
	t.write(a.out, "")
	fmt.Fprintln(a.out, oneLine(latest(entries).String(verify)))
}

// word is the state in a word or two.
func (e *entry) word() string {
	switch e.kind {
	case kindDamaged, kindSuperseded:
		return string(e.kind)
	case kindPublishing:
		if e.state == stateInUse {
			return "being published"
		}
	case kindRemoving:
		if e.state == stateInUse {
			return "being removed"
		}
	}
	return string(e.state)
}

func (e *entry) note(entries []*entry, verify bool) string {
	var notes []string
	if why := e.why(entries, verify); why != "" {
		notes = append(notes, why)
	}
	switch {
	case e.kind == kindDamaged:
	case e.cause != nil:
		notes = append(notes, reason(e.path, e.cause))
	case e.isBundle() && !e.info.Checksums:
		notes = append(notes, "no checksums")
	}
	if text := notFinite(e.info.Metadata); text != "" {
		notes = append(notes, text)
	}
	if n := e.info.Metadata.AcceptedIncrement; e.known() && e.step >= 0 && n != e.step {
		notes = append(notes, fmt.Sprintf("named %s, but of increment %d", publish.StepName(e.step), n))
	}
	return strings.Join(notes, "; ")
}

func (r restart) String(verified bool) string {
	var s string
	switch {
	case r.fresh:
		s = `"latest" starts afresh: there is no step_N`
	case r.cause != nil:
		s = fmt.Sprintf(`"latest" fails: %v`, r.cause)
	default:
		s = fmt.Sprintf(`"latest" restarts from %s`, r.from)
		if r.notFinite {
			s += ", which is not finite"
		}
		if len(r.passed) > 0 {
			s += ", passing over " + strings.Join(r.passed, ", ")
		}
	}
	if !verified && r.from != "" {
		s += " (if its contents are good: --verify reads them)"
	}
	return s
}
