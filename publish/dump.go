package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// Dumps writes fields as a series of plain files for post-processing, one per field
// and increment: the global array, x fastest, little-endian float64 (float32 fields
// are widened) or complex128, no header. Beside them it keeps an XDMF file, with
// which ParaView and VisIt open the series, all fields together. A dump is not a
// restart bundle: it has no metadata and no checksum, and is not written atomically.
//
// The XDMF file says what the files hold. A step leaves it before one of its files is
// written anew, and a restarted run goes on with it: what lies at or after the first
// write of that run, in increment or in time, is of the branch that was left, and
// leaves it too (see [Dumps.Rewind]). The files themselves stay.
type Dumps struct {
	c        *comm.Comm
	o        options
	fields   []field.Named
	template dumpTemplate
	dir      string      // in which all nodes see what rank 0 does
	series   *dumpSeries // on rank 0
	own      *Plans      // nil: the plans are the caller's
}

// NewDumps makes a series of dumps of fields, which have one domain and one box on
// each rank. It is collective.
//
// The template is the path of the dumps, a format of C's printf: one verb for the
// increment, like %d, %04d, %5d, %-6d or %+d, and %s for the id of the field, which
// several fields need. %% is a percent sign, and so is a % in the name of a directory
// that begins no verb. "results/psi_%04d.bin" is a template for one field,
// "results/%s_%04d.bin" one for any number. Without a verb for the increment each dump
// overwrites the last one. The directories exist, and all nodes see them: a node that
// doesn't is an error that names it. A relative template is one from the working
// directory of rank 0 at this moment.
//
// The XDMF file is named as the dumps without their number, and without the id where
// there are several fields, in the last directory that all dumps share:
// results/psi.xmf, or results/series.xmf where nothing of the name is left. It belongs
// to one template and its fields: NewDumps fails with [ErrInput] while another series
// of this process has it, and fails when it lists other files that are there. A step
// whose file is gone or has another size leaves it, which is logged.
func NewDumps(ctx context.Context, c *comm.Comm, template string, fields []field.Named, opts ...Option) (*Dumps, error) {
	ctx = waiting.Named(ctx, "NewDumps")
	o, err := newOptions(opts)
	d := &Dumps{c: c, o: o, fields: slices.Clone(fields)}
	if d.o.plans == nil {
		d.own = NewPlans()
		d.o.plans = d.own
	}
	t, terr := parseTemplate(template)
	d.template = t
	call, cerr := d.newCall(d.fields)
	err = cmp.Or(err, terr, cerr)
	var series *dumpSeries
	if err == nil {
		series = newDumpSeries(o, t, call.ids)
		err = cmp.Or(t.check(call.ids), series.check(call.arrays))
	}
	root := onedir.NewPaths(t.root)
	entries := []entry{{pathEntry, strconv.Quote(template)}}
	// The plans are made now, so that a layout that can't be is found now.
	err = agreeInputs(ctx, c, err, append(entries, call.entries...), append(root.Maxima(), call.maxima()...)...)
	ctx, end := o.atWork(ctx, c, "dumps", template)
	defer end()
	if err == nil {
		err = d.settle(ctx, root, call.ids)
	}
	if err == nil {
		err = call.plan(ctx)
	}
	call.done(err)
	if c.Rank() == 0 {
		d.series = series
	}
	if err == nil {
		err = c.OnRoot(ctx, nil, waiting.Step(ctx, "read", "the XDMF file", func() error { return d.series.open() }))
	}
	if err != nil {
		d.Close()
		return nil, named("dumps", template, err)
	}
	if c.Rank() == 0 && !t.has('d') {
		o.log.Info("each dump overwrites the last one: the template has no verb for the increment", "template", template)
	}
	return d, nil
}

// settle makes the template relative to rank 0's working directory, and makes sure that
// all nodes see the directory of the series.
func (d *Dumps) settle(ctx context.Context, root *onedir.Paths, ids []string) error {
	if err := root.Settle(ctx, d.c); err != nil {
		return err
	}
	d.template.root = root.At(0)
	d.dir = directory(d.template.series(ids))
	several, _, err := d.o.look.Nodes(ctx, d.c)
	if err != nil || !several {
		return err
	}
	return d.o.look.Directory(ctx, d.c, d.o.fs, d.o.log, func() (string, error) { return d.dir, nil })
}

// Close frees the memory of the series, except what [Reuse] gave it, and lets another
// series of this process have the XDMF file. It is not collective.
func (d *Dumps) Close() {
	if d.own != nil {
		d.own.Close()
	}
	if d.series != nil {
		d.series.release()
	}
}

// Write writes the present state of the fields as the dumps of an increment and adds
// them to the XDMF file as one step. It is collective and returns the absolute paths
// of the dumps, in the order of the fields. Files of these names are overwritten.
//
// Fields that are given stand in for those of the same ids that NewDumps was given, in
// this call: a solver that swaps two buffers names the one that is the present one.
// Increments and times grow along a run. Steps of the XDMF file that lie at this
// increment or time, or later, are of a branch that was left, and leave it.
//
// After an error the dumps of this increment are undefined, and the XDMF file doesn't
// list them.
func (d *Dumps) Write(ctx context.Context, increment int64, time float64, fields ...field.Named) ([]string, error) {
	ctx = waiting.Named(ctx, "Dumps.Write")
	list, err := d.standIn(fields)
	switch {
	case increment < 0:
		err = cmp.Or(err, fmt.Errorf("increment %d is negative", increment))
	case math.IsNaN(time) || math.IsInf(time, 0):
		err = cmp.Or(err, fmt.Errorf("time %v is not finite", time))
	}
	call, cerr := d.newCall(list)
	paths := make([]string, len(list))
	for i, f := range list {
		paths[i] = d.template.path(increment, f.ID)
	}
	entries := []entry{
		{pathEntry, strconv.Quote(paths[0])},
		{"the increment", strconv.FormatInt(increment, 10)},
		{"the time", strconv.FormatFloat(time, 'g', -1, 64)},
	}
	err = agreeInputs(ctx, d.c, cmp.Or(err, cerr), append(entries, call.entries...), call.maxima()...)
	ctx, end := d.o.atWork(ctx, d.c, "dump", paths[0])
	defer end()
	if err == nil {
		err = d.c.OnRoot(ctx, nil, waiting.Step(ctx, "write", "the XDMF file", func() error { return d.series.before(increment, time, call.arrays) }))
	}
	if err == nil {
		err = call.plan(ctx)
	}
	if err == nil {
		err = call.write(ctx, paths)
	}
	call.done(err)
	if err == nil {
		err = d.c.OnRoot(ctx, nil, waiting.Step(ctx, "write", "the XDMF file", func() error { return d.series.add(increment, time, call.arrays) }))
	}
	if err != nil {
		return nil, named("dump", paths[0], err)
	}
	return paths, nil
}

// Rewind takes the steps after an increment out of the XDMF file: for a run that goes
// on from the state of that increment, or from nothing with -1. It is collective.
// Without it the first [Dumps.Write] takes out what lies at or after its own increment
// or time, and steps of the branch that was left stay where they lie before that.
func (d *Dumps) Rewind(ctx context.Context, increment int64) error {
	ctx = waiting.Named(ctx, "Dumps.Rewind")
	entries := []entry{
		{pathEntry, strconv.Quote(d.template.text)},
		{"the increment", strconv.FormatInt(increment, 10)},
	}
	err := agreeInputs(ctx, d.c, nil, entries)
	if err == nil {
		work, end := d.o.atWork(ctx, d.c, "rewind dumps", d.template.text)
		defer end()
		err = d.c.OnRoot(work, nil, waiting.Step(work, "write", "the XDMF file", func() error { return d.series.rewind(increment) }))
	}
	return named("rewind dumps", d.template.text, err)
}

// standIn returns the fields of the series, those that are given in their places.
func (d *Dumps) standIn(given []field.Named) ([]field.Named, error) {
	list := slices.Clone(d.fields)
	var ids []string
	for _, f := range given {
		at := slices.IndexFunc(list, func(own field.Named) bool { return own.ID == f.ID })
		switch {
		case at < 0:
			return list, fmt.Errorf("field %q is none of the series", f.ID)
		case slices.Contains(ids, f.ID):
			return list, fmt.Errorf("field %q is given twice", f.ID)
		}
		list[at] = f
		ids = append(ids, f.ID)
	}
	return list, nil
}

// dumpArray is a field as the XDMF file describes it.
type dumpArray struct {
	id      string
	domain  grid.Domain
	complex bool
}

// dumpCall is what NewDumps and Write have in common: fields, and the plans of the
// two kinds of elements that they may have.
type dumpCall struct {
	d       *Dumps
	fields  []field.Named
	ids     []string
	arrays  []dumpArray
	entries []entry // the fields, as all ranks must have them
	plans   [2]*planning
	bricks  [2]*brick.Plan
}

// The plans of a call, by the elements of the files.
var dumpElements = [2]brick.Element{brick.Float64, brick.Complex128}

// newCall looks at the fields, which may be anything. After an error the call can still
// take part in the agreement.
func (d *Dumps) newCall(fields []field.Named) (*dumpCall, error) {
	call := &dumpCall{d: d, fields: fields, plans: [2]*planning{{}, {}}}
	for _, f := range fields {
		call.ids = append(call.ids, f.ID)
	}
	if len(fields) == 0 {
		return call, errors.New("there are no fields to dump")
	}
	err := CheckIDs(call.ids)
	lerr := comm.Protect(func() error { // a field may be any implementation, and broken
		box, domain, err := sharedLayout(fields)
		if err == nil {
			err = domain.Validate()
		}
		if err != nil {
			return err
		}
		call.entries = append(call.entries, entry{"the domain", fmt.Sprintf("%+v", domain)})
		for _, f := range fields {
			kind := f.Field.Kind()
			a := dumpArray{id: f.ID, domain: domain, complex: kind == field.Complex128}
			call.arrays = append(call.arrays, a)
			call.entries = append(call.entries, entry{"field " + strconv.Quote(f.ID), kind.String()})
			if n := a.element(); call.plans[n].key.c == nil {
				call.plans[n] = d.o.planning(d.c, domain.Size, box, dumpElements[n])
			}
		}
		return nil
	})
	return call, cmp.Or(err, lerr)
}

// element is the index of the array's plan.
func (a dumpArray) element() int {
	if a.complex {
		return 1
	}
	return 0
}

// maxima are of both plans, whichever of them there are: as many on all ranks.
func (n *dumpCall) maxima() []*int64 { return append(n.plans[0].maxima(), n.plans[1].maxima()...) }

// plan makes the plans ready. It is collective, after the agreement.
func (n *dumpCall) plan(ctx context.Context) (err error) {
	for i, p := range n.plans {
		if p.key.c == nil || err != nil {
			continue
		}
		n.bricks[i], err = p.plan(ctx)
	}
	return err
}

func (n *dumpCall) done(err error) {
	for _, p := range n.plans {
		p.done(err)
	}
}

// write writes the fields to the paths.
func (n *dumpCall) write(ctx context.Context, paths []string) error {
	var jobs [2][]brick.WriteJob
	checked := true
	for i, f := range n.fields {
		checked = checked && directory(paths[i]) == n.d.dir
		kind := n.arrays[i].element()
		jobs[kind] = append(jobs[kind], brick.WriteJob{
			Name:   "field " + strconv.Quote(f.ID),
			Path:   paths[i],
			Source: &fieldSource{f: f, step: n.d.o.step},
		})
	}
	if checked {
		ctx = onedir.Checked(ctx)
	}
	for i, plan := range n.bricks {
		if plan == nil {
			continue
		}
		if _, err := plan.Write(ctx, jobs[i]); err != nil {
			return err
		}
	}
	if n.bricks[0] == nil || n.bricks[1] == nil || !vfs.MayBeOne(paths) {
		return nil
	}
	// Each plan has looked at its own files.
	return n.d.c.OnRoot(ctx, nil, func() error { return vfs.Distinct(n.d.o.fs, paths) })
}

// newDumpSeries names the series of a template.
func newDumpSeries(o options, t dumpTemplate, ids []string) *dumpSeries {
	s := &dumpSeries{o: o, path: t.series(ids), template: t, ids: ids, name: ids[0]}
	if len(ids) > 1 {
		s.name = strings.TrimSuffix(filepath.Base(s.path), ".xmf")
	}
	return s
}
