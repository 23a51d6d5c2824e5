package publish

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/internal/xdmf"
)

// maxSeriesBytes bounds what is read as an XDMF file that a series goes on with.
const maxSeriesBytes = 64 << 20

// Dumps writes a field as a series of plain files for post-processing, one per
// increment: the global array, x fastest, little-endian float64 (float32 fields
// are widened) or complex128, no header. Beside them it keeps an XDMF file, with
// which ParaView and VisIt open the series. A dump is not a restart bundle: it has
// no metadata and no checksum, and is not written atomically.
type Dumps struct {
	c        *comm.Comm
	o        options
	field    field.Named
	template string
	series   string      // path of the XDMF file
	own      *Plans      // nil: the plans are the caller's
	known    xdmf.Series // on rank 0
	read     bool        // known holds what an earlier run left
}

// NewDumps makes a series of dumps of a field. It is collective. The template is a
// path with one printf verb for the increment, like "results/psi_%04d.bin"; its
// directory exists. The XDMF file has the same name without the number:
// results/psi.xmf.
func NewDumps(ctx context.Context, c *comm.Comm, template string, f field.Named, opts ...Option) (*Dumps, error) {
	o, err := newOptions(opts)
	d := &Dumps{c: c, o: o, field: f, template: template}
	name, terr := checkTemplate(template)
	d.series = name
	err = cmp.Or(err, terr, CheckID(f.ID))
	kind := ""
	if f.Field == nil {
		err = cmp.Or(err, fmt.Errorf("field %q is nil", f.ID))
	} else {
		kind = f.Field.Kind().String()
		err = cmp.Or(err, f.Field.Domain().Validate())
	}
	if d.o.plans == nil {
		d.own = NewPlans()
		d.o.plans = d.own
	}
	abs, aerr := filepath.Abs(template)
	err = cmp.Or(err, aerr)
	entries := []entry{
		{pathEntry, strconv.Quote(template)},
		{"the absolute path", strconv.Quote(abs)},
		{"the field", strconv.Quote(f.ID)},
		{"the kind of the field", kind},
	}
	// The plan is made now, so that a layout that can't be is found now.
	plan := d.planning()
	err = agreeInputs(ctx, c, err, entries, plan.maxima()...)
	if err == nil {
		_, err = plan.plan(c.AtWork(ctx))
	}
	plan.done(err)
	if err != nil {
		return nil, named("dumps", template, err)
	}
	return d, nil
}

// planning is that of the field, of whatever kind it is.
func (d *Dumps) planning() *planning {
	var size [3]int
	var box grid.Box
	elem := brick.Float64
	if f := d.field.Field; f != nil {
		size, box = f.Domain().Size, f.Box()
		if f.Kind() == field.Complex128 {
			elem = brick.Complex128
		}
	}
	return d.o.planning(d.c, size, box, elem)
}

// Close frees the memory of the series, but for what [Reuse] gave it. It is not
// collective.
func (d *Dumps) Close() {
	if d.own != nil {
		d.own.Close()
	}
}

// Write writes the field's present state as the dump of an increment and adds it
// to the XDMF file. It is collective and returns the path. A file of that name is
// overwritten; steps of an earlier run at this time or later leave the XDMF file.
func (d *Dumps) Write(ctx context.Context, increment int64, time float64) (string, error) {
	var err error
	switch {
	case increment < 0:
		err = fmt.Errorf("increment %d is negative", increment)
	case math.IsNaN(time) || math.IsInf(time, 0):
		err = fmt.Errorf("time %v is not finite", time)
	}
	path := fmt.Sprintf(d.template, increment)
	entries := []entry{{pathEntry, strconv.Quote(path)}, {"the time", strconv.FormatFloat(time, 'g', -1, 64)}}
	plan := d.planning()
	err = agreeInputs(ctx, d.c, err, entries, plan.maxima()...)
	ctx, end := d.o.atWork(ctx, d.c, "dump", path)
	defer end()
	var bricks *brick.Plan
	if err == nil {
		bricks, err = plan.plan(ctx)
	}
	if err == nil {
		_, err = bricks.Write(ctx, []brick.WriteJob{{
			Name:   "field " + strconv.Quote(d.field.ID),
			Path:   path,
			Source: &fieldSource{f: d.field, step: d.o.step},
		}})
	}
	plan.done(err)
	if err != nil {
		return "", named("dump", path, err)
	}
	err = d.c.OnRoot(ctx, nil, waiting.Step(ctx, "write", "the XDMF file", func() error { return d.describe(path, increment, time) }))
	if err != nil {
		return "", named("dump", path, err)
	}
	return path, nil
}

// describe writes the XDMF file anew, atomically.
func (d *Dumps) describe(path string, increment int64, time float64) error {
	if !d.read {
		if err := d.readSeries(); err != nil {
			return err
		}
		d.read = true
	}
	relative, err := xdmf.Relative(d.series, path)
	if err != nil {
		return err
	}
	domain := d.field.Field.Domain()
	steps := d.known.Steps
	for len(steps) > 0 && steps[len(steps)-1].Time >= time {
		steps = steps[:len(steps)-1]
	}
	d.known.Steps = append(steps, xdmf.Step{
		Name:    fmt.Sprintf("increment %d", increment),
		Time:    time,
		Size:    domain.Size,
		Origin:  domain.Origin,
		Spacing: domain.Spacing,
		Arrays: []xdmf.Array{{
			Name:    d.field.ID,
			Path:    relative,
			Complex: d.field.Field.Kind() == field.Complex128,
		}},
	})
	var text bytes.Buffer
	if err := xdmf.Write(&text, d.known); err != nil {
		return err
	}
	return replaceFile(d.o.fs, d.series, text.Bytes(), d.o.durability == Full)
}

func (d *Dumps) readSeries() error {
	d.known = xdmf.Series{Name: d.field.ID}
	data, err := vfs.ReadFile(d.o.fs, d.series, maxSeriesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		d.known, err = xdmf.Read(data)
	}
	if err != nil {
		return fmt.Errorf("%s: the series can't go on with it: %w", d.series, err)
	}
	return nil
}

// replaceFile puts data at path; a reader sees the old content or the new.
func replaceFile(fsys vfs.FS, path string, data []byte, sync bool) error {
	temporary := path + ".new"
	if err := fsys.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := vfs.WriteFile(fsys, temporary, data, 0o666, sync); err != nil {
		return err
	}
	if err := fsys.Rename(temporary, path); err != nil {
		return err
	}
	if sync {
		return fsys.SyncDir(filepath.Dir(path))
	}
	return nil
}

// checkTemplate checks that a template has exactly one integer verb in its last
// element, and returns the path of the series' XDMF file.
func checkTemplate(template string) (string, error) {
	dir, name := filepath.Split(template)
	if name == "" || strings.ContainsRune(template, 0) {
		return "", fmt.Errorf("template %q is not the path of a file", template)
	}
	if strings.Contains(dir, "%") {
		return "", fmt.Errorf("template %q has a %% in its directory", template)
	}
	start := strings.IndexByte(name, '%')
	if start < 0 {
		return "", fmt.Errorf("template %q has no verb for the increment, like %%04d", template)
	}
	end := start + 1
	for end < len(name) && name[end] >= '0' && name[end] <= '9' {
		end++
	}
	width := name[start+1 : end]
	if end == len(name) || name[end] != 'd' || width != "" && (width[0] != '0' || len(width) == 1 || len(width) > 3) {
		return "", fmt.Errorf("template %q: the verb is neither %%d nor %%0<width>d with a width from 1 to 99", template)
	}
	if strings.Contains(name[end+1:], "%") {
		return "", fmt.Errorf("template %q has more than one %%", template)
	}
	rest := name[end+1:]
	base := strings.TrimRight(name[:start], "_-. ") + strings.TrimSuffix(rest, filepath.Ext(rest))
	if base == "" {
		base = "series"
	}
	return filepath.Join(dir, base+".xmf"), nil
}
