package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/samerun"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// directoryDiff is the outcome of a comparison of two directories, as JSON.
type directoryDiff struct {
	A         string         `json:"a"`
	B         string         `json:"b"`
	ABytes    []byte         `json:"a_bytes,omitempty"`
	BBytes    []byte         `json:"b_bytes,omitempty"`
	Equal     bool           `json:"equal"`
	Tolerance *toleranceJSON `json:"tolerance,omitempty"`
	Bundles   []pairDiff     `json:"bundles"`
	RunFiles  []pairDiff     `json:"run_files"`
	Summary   pairCounts     `json:"summary"`
}

// pairDiff is what the directories have under one name.
type pairDiff struct {
	Name      string    `json:"name"`
	NameBytes []byte    `json:"name_bytes,omitempty"`
	State     sideState `json:"state"`
	A         *string   `json:"a"` // path; null: there is none
	B         *string   `json:"b"`
	ABytes    []byte    `json:"a_bytes,omitempty"`
	BBytes    []byte    `json:"b_bytes,omitempty"`
	// Bundle or Run is how the pair compares; null where it wasn't compared.
	Bundle *difference    `json:"bundle,omitempty"`
	Run    *runDifference `json:"run_file,omitempty"`
}

// withBytes sets what the keys of paths that aren't UTF-8 have.
func (p pairDiff) withBytes() pairDiff {
	p.NameBytes = notUTF8(p.Name)
	if p.A != nil {
		p.ABytes = notUTF8(*p.A)
	}
	if p.B != nil {
		p.BBytes = notUTF8(*p.B)
	}
	return p
}

// pairCounts are the numbers of pairs in each state.
type pairCounts struct {
	Equal       int `json:"equal"`
	Within      int `json:"within_tolerance"`
	Different   int `json:"different"`
	OnlyA       int `json:"only_in_a"`
	OnlyB       int `json:"only_in_b"`
	NotCompared int `json:"not_compared"`
}

// diff compares the bundles and the run files of two directories. What can't
// be read is reported, and the rest is compared.
func (x directory) diff(ctx context.Context, with subject, o diffOptions) error {
	a, dirA, dirB := x.app, x.path, with.(directory).path
	d := &directoryDiff{
		A: dirA, B: dirB, ABytes: notUTF8(dirA), BBytes: notUTF8(dirB), Equal: true, Tolerance: newToleranceJSON(o.tolerance), Bundles: []pairDiff{}, RunFiles: []pairDiff{},
	}
	bundlesA, filesA, errA := inDirectory(ctx, dirA)
	bundlesB, filesB, errB := inDirectory(ctx, dirB)
	if a.reportSides(dirA, dirB, errA, errB) {
		return statusError(statusFailed)
	}
	for _, p := range pairs(bundlesA, bundlesB, func(e *entry) string { return e.name }, newestFirst) {
		if o.quiet && !d.Equal {
			break
		}
		if pd := a.diffBundlePair(ctx, p, o); pd != nil {
			d.Bundles = append(d.Bundles, pd.withBytes())
			d.count(pd.State)
		}
	}
	if len(filesA)+len(filesB) > 0 && !h5.Enabled {
		a.complain("diff: run files are not compared: %v", errNoHDF5)
	}
	for _, p := range pairs(filesA, filesB, runKey, compareNames) {
		if o.quiet && !d.Equal {
			break
		}
		if pd := a.diffRunPair(ctx, p, o); pd != nil {
			d.RunFiles = append(d.RunFiles, pd.withBytes())
			d.count(pd.State)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := a.print(d, o); err != nil {
		return err
	}
	switch {
	case d.Summary.NotCompared > 0:
		return statusError(statusFailed)
	case !d.Equal:
		return statusError(statusBad)
	}
	return nil
}

// inDirectory lists the bundles of a directory and its run files. What was set aside,
// what is being written and the HDF5 files of others are none of them.
func inDirectory(ctx context.Context, dir string) (bundles []*entry, files []string, err error) {
	bundles, err = bundlesIn(dir)
	if err != nil && !errors.Is(err, errNoBundles) {
		return nil, nil, err
	}
	files, err = runFilesIn(dir)
	files = slices.DeleteFunc(files, func(path string) bool {
		if isRunName(filepath.Base(path)) {
			return false
		}
		_, faults, err := runfile.Inspect(ctx, path, runfile.Warn(func(string) {}))
		return passedOver(path, faults, err)
	})
	return bundles, files, err
}

// pair is what two directories have under one key; nil where one has nothing.
type pair[T any] struct{ a, b *T }

func (p pair[T]) either() T {
	if p.a != nil {
		return *p.a
	}
	return *p.b
}

// pairs puts together what has one key, in an order.
func pairs[T any](listA, listB []T, key func(T) string, order func(a, b T) int) []pair[T] {
	var list []pair[T]
	at := make(map[string]int)
	for i := range listA {
		at[key(listA[i])] = len(list)
		list = append(list, pair[T]{a: &listA[i]})
	}
	for i := range listB {
		if n, ok := at[key(listB[i])]; ok {
			list[n].b = &listB[i]
			continue
		}
		list = append(list, pair[T]{b: &listB[i]})
	}
	slices.SortStableFunc(list, func(p, q pair[T]) int { return order(p.either(), q.either()) })
	return list
}

// runKey is the name of the run and the number of the segment, however many digits the
// name of the file has, or the name of another run file.
func runKey(path string) string {
	name := filepath.Base(path)
	stem := strings.TrimSuffix(name, ".h5")
	if i := strings.LastIndex(stem, ".segment"); i > 0 && isRunName(name) {
		return stem[:i] + ".segment" + strings.TrimLeft(stem[i+len(".segment"):], "0")
	}
	return name
}

// diffBundlePair returns nil where neither directory has the bundle any more: a run
// removes old ones meanwhile.
func (a *app) diffBundlePair(ctx context.Context, p pair[*entry], o diffOptions) *pairDiff {
	d := &pairDiff{Name: p.either().name}
	if p.a != nil && p.b != nil {
		x, y, errA, errB := openBundles((*p.a).path, (*p.b).path)
		defer closeBundles(x, y)
		var err error
		if errA == nil && errB == nil {
			d.Bundle, err = a.compare(ctx, x, y, o)
		}
		switch gone := [2]bool{(*p.a).gone(), (*p.b).gone()}; {
		case errA == nil && errB == nil && err == nil:
			d.State = d.Bundle.state()
		case ctx.Err() != nil:
			return nil
		case gone[0] || gone[1]:
			if gone[0] {
				p.a = nil
			}
			if gone[1] {
				p.b = nil
			}
		default:
			a.reportSides((*p.a).path, (*p.b).path, errA, errB)
			if err != nil {
				a.complain("%v", err)
			}
			d.State, d.Bundle = sideNotCompared, nil
		}
	}
	switch {
	case p.a == nil && p.b == nil:
		return nil
	case p.b == nil:
		d.State = sideOnlyA
	case p.a == nil:
		d.State = sideOnlyB
	}
	if p.a != nil {
		d.A = pointer((*p.a).path)
	}
	if p.b != nil {
		d.B = pointer((*p.b).path)
	}
	return d
}

// diffRunPair returns nil if it was interrupted.
func (a *app) diffRunPair(ctx context.Context, p pair[string], o diffOptions) *pairDiff {
	d := &pairDiff{Name: filepath.Base(p.either()), A: p.a, B: p.b}
	switch {
	case p.b == nil:
		d.State = sideOnlyA
		return d
	case p.a == nil:
		d.State = sideOnlyB
		return d
	case !h5.Enabled:
		d.State = sideNotCompared
		return d
	}
	x, errA := a.openRunSide(ctx, *p.a)
	y, errB := a.openRunSide(ctx, *p.b)
	var err error
	if errA == nil && errB == nil {
		d.Run, err = a.compareRuns(ctx, x, y, o)
	}
	switch {
	case ctx.Err() != nil:
		return nil
	case a.reportRunSides(*p.a, *p.b, errA, errB):
		d.State = sideNotCompared
	case err != nil:
		a.complain("diff: %v", err)
		d.State = sideNotCompared
	default:
		d.State = d.Run.state()
	}
	return d
}

// state sums up a comparison.
func (d *difference) state() sideState {
	within := slices.ContainsFunc(d.Fields, func(f fieldDiff) bool { return f.State == sideWithin })
	return overall(d.Equal, within)
}

func (d *runDifference) state() sideState {
	within := slices.ContainsFunc(d.Parts, func(p runPartDiff) bool { return p.State == samerun.Within })
	return overall(d.Equal, within)
}

func overall(equal, within bool) sideState {
	switch {
	case !equal:
		return sideDifferent
	case within:
		return sideWithin
	}
	return sideEqual
}

func (d *directoryDiff) count(s sideState) {
	c := &d.Summary
	for _, n := range []struct {
		state  sideState
		number *int
	}{
		{sideEqual, &c.Equal}, {sideWithin, &c.Within}, {sideDifferent, &c.Different},
		{sideOnlyA, &c.OnlyA}, {sideOnlyB, &c.OnlyB}, {sideNotCompared, &c.NotCompared},
	} {
		if s == n.state {
			*n.number++
		}
	}
	d.Equal = d.Equal && (s == sideEqual || s == sideWithin)
}

func (d *directoryDiff) write(a *app) {
	fmt.Fprintf(a.out, "A: %s\nB: %s\n", oneLine(d.A), oneLine(d.B))
	if d.Tolerance != nil {
		fmt.Fprintf(a.out, "tolerance: %v\n", d.Tolerance)
	}
	t := newTable()
	t.row("NAME", "STATE", "DIFFERENCE")
	for _, p := range slices.Concat(d.Bundles, d.RunFiles) {
		t.row(p.Name, string(p.State), p.text())
	}
	if len(t.rows) > 1 {
		t.write(a.out, "")
	}
	fmt.Fprintln(a.out, d.Summary)
}

// String has the numbers that aren't 0.
func (c pairCounts) String() string {
	var words []string
	for _, n := range []struct {
		number int
		state  sideState
	}{
		{c.Equal, sideEqual}, {c.Within, sideWithin}, {c.Different, sideDifferent},
		{c.OnlyA, sideOnlyA}, {c.OnlyB, sideOnlyB}, {c.NotCompared, sideNotCompared},
	} {
		if n.number > 0 {
			words = append(words, strconv.Itoa(n.number)+" "+string(n.state))
		}
	}
	if words == nil {
		return "nothing to compare"
	}
	return strings.Join(words, ", ")
}

// text names in what a pair differs, shortly.
func (p *pairDiff) text() string {
	var words []string
	switch {
	case p.Bundle != nil:
		words = p.Bundle.words()
	case p.Run != nil:
		words = p.Run.words()
	}
	const most = 3
	if n := len(words) - most; n > 1 {
		words = append(words[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(words, "; ")
}

func (d *difference) words() (list []string) {
	if len(d.Metadata) > 0 {
		list = append(list, count(int64(len(d.Metadata)), "key")+" of the metadata")
	}
	if d.Sidecar != nil && *d.Sidecar != sideEqual {
		list = append(list, fmt.Sprintf("sidecar %s", *d.Sidecar))
	}
	if !d.Grid.Comparable {
		return append(list, *d.Grid.Difference)
	}
	for _, f := range d.Fields {
		switch m := f.Maxima; {
		case f.State == sideOnlyA || f.State == sideOnlyB:
			list = append(list, fmt.Sprintf("%s %s", f.ID, f.State))
		case f.State != sideDifferent && f.State != sideWithin:
		case m != nil:
			list = append(list, fmt.Sprintf("%s: %s", f.ID, maximaText(m.Beyond, f.Cells, "cell", m.MaxAbs, m.MaxRel)))
		default:
			list = append(list, fmt.Sprintf("%s: %d of %s, max abs %s", f.ID, f.Differing, count(f.Cells, "cell"), rough(float64(f.All.MaxAbs))))
		}
	}
	return list
}

func maximaText(beyond, of int64, noun string, abs, rel number) string {
	text := fmt.Sprintf("max abs %s, max rel %s", rough(float64(abs)), rough(float64(rel)))
	if beyond > 0 {
		text = fmt.Sprintf("%d of %s beyond, ", beyond, count(of, noun)) + text
	}
	return text
}

func (d *runDifference) words() (list []string) {
	if d.metadata && d.Setup.State != sideEqual {
		list = append(list, fmt.Sprintf("setup hash %s", d.Setup.State))
	}
	for i := range d.Parts {
		p := &d.Parts[i]
		switch m := p.Maxima; {
		case p.State == samerun.Equal:
		case p.Reason != nil:
			list = append(list, fmt.Sprintf("%s: %s", p.title(), *p.Reason))
		case p.Differing == 0:
			list = append(list, p.title()+" "+p.State)
		case m != nil:
			list = append(list, fmt.Sprintf("%s: %s", p.title(), maximaText(m.Beyond, p.Values, "value", m.MaxAbs, m.MaxRel)))
		default:
			list = append(list, fmt.Sprintf("%s: %d of %s", p.title(), p.Differing, count(p.Values, "value")))
		}
	}
	return list
}
