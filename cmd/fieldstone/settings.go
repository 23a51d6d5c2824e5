package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/record"
	"github.com/spf13/cobra"
)

func newSettings(a *app) *cobra.Command {
	var all, asJSON bool
	c := &cobra.Command{
		Use:   "settings FILE [SECTION]",
		Short: "Show the settings of the run that wrote a file",
		Long: `Show the settings of the run that wrote a file: all of them, or a section. A section
is named by its path, such as system or time/stepper. Of arrays and lists of strings the
first 8 elements are shown.

Exit status: 0, or 2 for wrong usage or when the settings or the section can't be read.`,
		Example: `  fieldstone settings results/decay.segment0001.h5
  fieldstone settings results/decay.segment0001.h5 time/stepper
  fieldstone settings --json results/decay.checkpoint.h5 segment`,
		Args:              arguments(1, 2, "a run file, and a section at most"),
		ValidArgsFunction: completeRunFiles(1),
		RunE: func(c *cobra.Command, args []string) error {
			section := ""
			if len(args) > 1 {
				section = args[1]
			}
			return a.settings(c.Context(), args[0], section, all, asJSON)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "show all elements of arrays and lists")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.AddCommand(newSettingsDiff(a))
	return c
}

func (a *app) settings(ctx context.Context, file, section string, all, asJSON bool) error {
	settings, err := a.readSettings(ctx, "settings", file)
	if err != nil {
		return err
	}
	limit := 8
	if all {
		limit = 0
	}
	if section == "" {
		if asJSON {
			return writeJSON(a.out, settings)
		}
		return settings.WriteText(a.out, limit)
	}
	v, err := settings.Get(section)
	if err != nil {
		a.complain("settings %s: %v (the sections are %s)", file, err, strings.Join(settings.Keys(), ", "))
		return statusError(statusFailed)
	}
	if asJSON {
		return writeJSON(a.out, v)
	}
	r, ok := v.Any().(record.Record)
	if !ok {
		if r, err = record.NewBuilder(record.AnyKeys()).Set(path.Base(section), v).Build(); err != nil {
			return err
		}
	}
	return r.WriteText(a.out, limit)
}

// readSettings reports what goes wrong.
func (a *app) readSettings(ctx context.Context, command, file string) (record.Record, error) {
	var settings record.Record
	s, err := a.identifyAny(file)
	if err == nil {
		settings, err = s.settings(ctx, command)
	}
	switch {
	case ctx.Err() != nil:
		return settings, ctx.Err()
	case err != nil:
		a.reportRun(command, file, err)
		return settings, statusError(statusFailed)
	}
	return settings, nil
}

// hashedSections are those that the setup hash covers.
var hashedSections = []string{"grids", "layout", "system", "updates", "prescribed", "solver", "time", "run"}

// hashKeys are made from the hashed sections.
var hashKeys = []string{"hashes", "setup_hash"}

func newSettingsDiff(a *app) *cobra.Command {
	var setup, quiet, asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare the settings of the runs that wrote two files",
		Long: `Compare the settings of the runs that wrote two files, key by key: the sections that the
setup hash covers, and apart from them the others, which tell of the code, the machine
and the segment. The setup hashes are compared as they are stored.

Exit status: 0 when everything that is compared is equal, 1 when not, 2 for wrong
usage or when something can't be read.`,
		Example: `  fieldstone settings diff a/run.segment0001.h5 b/run.segment0001.h5
  fieldstone settings diff --setup a/run.checkpoint.h5 b/run.checkpoint.h5
  fieldstone settings diff --setup -q a.h5 b.h5 && echo the same setup`,
		Args:              arguments(2, 2, "two run files"),
		ValidArgsFunction: completeRunFiles(2),
		RunE: func(c *cobra.Command, args []string) error {
			return a.settingsDiff(c.Context(), args[0], args[1], setup, quiet, asJSON)
		},
	}
	c.Flags().BoolVar(&setup, "setup", false, "compare only what the setup hash covers, and the hash")
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "write nothing: the exit status is the answer")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.MarkFlagsMutuallyExclusive("quiet", "json")
	return c
}

// settingsDifference is a comparison of settings as JSON.
type settingsDifference struct {
	A         string        `json:"a"`
	B         string        `json:"b"`
	ABytes    []byte        `json:"a_bytes,omitempty"`
	BBytes    []byte        `json:"b_bytes,omitempty"`
	Equal     bool          `json:"equal"`
	SetupHash hashDiff      `json:"setup_hash"`
	Hashed    sectionsDiff  `json:"hashed"`
	Others    *sectionsDiff `json:"others"` // null: not compared
}

// hashDiff compares the stored setup hashes; null where a file has none.
type hashDiff struct {
	State sideState `json:"state"`
	A     *string   `json:"a"`
	B     *string   `json:"b"`
}

// sectionsDiff is what differs in some sections.
type sectionsDiff struct {
	Sections []string      `json:"sections"`
	Keys     []settingDiff `json:"keys"`
}

// settingDiff is an entry that differs, with the texts of both values.
type settingDiff struct {
	Key    string  `json:"key"` // path from the section on
	Change string  `json:"change"`
	A      *string `json:"a"`
	B      *string `json:"b"`
	Count  int     `json:"count"` // elements that differ, of arrays and lists
	Index  []int   `json:"index"` // of the first of them
}

func (a *app) settingsDiff(ctx context.Context, fileA, fileB string, setup, quiet, asJSON bool) error {
	x, errA := a.readSettings(ctx, "settings diff", fileA)
	y, errB := x, errA
	if fileA != fileB {
		y, errB = a.readSettings(ctx, "settings diff", fileB)
	}
	if err := errors.Join(errA, errB); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return statusError(statusFailed)
	}
	d := compareSettings(x, y, setup)
	d.A, d.B, d.ABytes, d.BBytes = fileA, fileB, notUTF8(fileA), notUTF8(fileB)
	switch {
	case quiet:
	case asJSON:
		if err := writeJSON(a.out, d); err != nil {
			return err
		}
	default:
		d.write(a)
	}
	if !d.Equal {
		return statusError(statusBad)
	}
	return nil
}

func compareSettings(x, y record.Record, setup bool) *settingsDifference {
	d := &settingsDifference{
		SetupHash: compareHashes(x, y),
		Hashed:    compareSections(onlyHashed(x), onlyHashed(y)),
	}
	d.Equal = d.SetupHash.State == sideEqual && len(d.Hashed.Keys) == 0
	if !setup {
		drop := slices.Concat(hashedSections, hashKeys)
		others := compareSections(x.Without(drop...), y.Without(drop...))
		d.Others = &others
		d.Equal = d.Equal && len(others.Keys) == 0
	}
	return d
}

func onlyHashed(r record.Record) record.Record {
	return r.Without(slices.DeleteFunc(r.Keys(), func(key string) bool { return slices.Contains(hashedSections, key) })...)
}

// compareHashes takes two files that both have no hash for equal.
func compareHashes(x, y record.Record) hashDiff {
	h := hashDiff{State: sideEqual, A: textOf(x, "setup_hash"), B: textOf(y, "setup_hash")}
	switch {
	case h.A == nil && h.B == nil:
	case h.B == nil:
		h.State = sideOnlyA
	case h.A == nil:
		h.State = sideOnlyB
	case *h.A != *h.B:
		h.State = sideDifferent
	}
	return h
}

func compareSections(x, y record.Record) sectionsDiff {
	s := sectionsDiff{Sections: []string{}, Keys: []settingDiff{}}
	for _, d := range record.Diff(x, y) {
		section, _, _ := strings.Cut(d.Path, "/")
		if !slices.Contains(s.Sections, section) {
			s.Sections = append(s.Sections, section)
		}
		key := settingDiff{Key: d.Path, Change: d.Change.String(), Count: d.Count, Index: d.Index}
		if d.Change != record.OnlyB {
			key.A = pointer(d.A)
		}
		if d.Change != record.OnlyA {
			key.B = pointer(d.B)
		}
		if key.Index == nil {
			key.Index = []int{}
		}
		s.Keys = append(s.Keys, key)
	}
	return s
}

func (d *settingsDifference) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	switch h := d.SetupHash; {
	case h.State == sideEqual && h.A == nil:
		fmt.Fprintln(a.out, "setup hash: neither has one")
	case h.State == sideDifferent:
		fmt.Fprintf(a.out, "setup hash: different\n  A  %s\n  B  %s\n", oneLine(*h.A), oneLine(*h.B))
	default:
		fmt.Fprintf(a.out, "setup hash: %s\n", h.State)
	}
	d.Hashed.write(a, "sections in the setup hash")
	if d.Others != nil {
		d.Others.write(a, "other sections")
	}
}

func (s *sectionsDiff) write(a *app, title string) {
	if len(s.Keys) == 0 {
		fmt.Fprintf(a.out, "%s: equal\n", title)
		return
	}
	fmt.Fprintf(a.out, "%s: %s\n", title, oneLine("different in "+strings.Join(s.Sections, ", ")))
	t := newTable()
	t.row("KEY", "CHANGE", "A", "B")
	for _, k := range s.Keys {
		change := k.Change
		if k.Count > 0 {
			change += fmt.Sprintf(", %d from %v on", k.Count, k.Index)
		}
		t.row(k.Key, change, orMissingText(k.A), orMissingText(k.B))
	}
	t.write(a.out, "  ")
}

func orMissingText(text *string) string {
	if text == nil {
		return "missing"
	}
	return *text
}
