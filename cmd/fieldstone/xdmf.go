package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/xdmf"
	"github.com/fieldstone-io/fieldstone/runfile"
	"github.com/spf13/cobra"
)

func newXDMF(a *app) *cobra.Command {
	var out string
	var fields []string
	var overwrite bool
	c := &cobra.Command{
		Use:   "xdmf FILE...",
		Short: "Describe the fields of run files to ParaView and VisIt",
		Long: `Describe the fields of run files to ParaView and VisIt: write an XDMF file beside them
that shows the fields at each saved time. It names the run files, and holds no values.

The segments of a run are given in order. States that a later segment repeats are left
out, and files that don't continue each other are refused. Fields of one grid are shown
together; --field chooses among several grids.

Without -o the file is named as the only run file, with .xmf in place of .h5; "-o -"
writes to standard output, with paths from the current directory. A file that this
command wrote is replaced, another one with --overwrite only.

Exit status: 0, 1 when the files are not the segments of one run, 2 for wrong usage or
when something can't be read or written.`,
		Example: `  fieldstone xdmf results/dendrite.segment0001.h5
  fieldstone xdmf results/dendrite.segment*.h5 -o results/dendrite.xmf
  fieldstone xdmf --field phi run.h5 -o -`,
		Args:              arguments(1, anyNumber, "a run file, or the segments of a run"),
		ValidArgsFunction: completeRunFiles(anyNumber),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				if len(args) > 1 {
					return misused(c, errors.New("xdmf: several files need the name of the XDMF file, -o OUT"))
				}
				out = strings.TrimSuffix(args[0], ".h5") + ".xmf"
			}
			return a.xdmf(c.Context(), args, out, fields, overwrite)
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the XDMF `file`; - for standard output")
	c.Flags().StringArrayVar(&fields, "field", nil, "show only the field of this `name`; may be given several times")
	c.Flags().BoolVar(&overwrite, "overwrite", false, "replace any existing file")
	return c
}

func (a *app) xdmf(ctx context.Context, files []string, out string, fields []string, overwrite bool) error {
	if err := a.wantRunFiles("xdmf", files); err != nil {
		return err
	}
	f, err := readSeries(ctx, files, a.warnRun("xdmf"))
	if err != nil {
		return a.refused(ctx, "xdmf", err)
	}
	err = a.writeSeries(f, files, out, fields, overwrite)
	if err != nil {
		a.complain("xdmf: %v", err)
		return statusError(statusFailed)
	}
	return nil
}

// writeSeries writes what was read to the file of a name, or to standard output.
func (a *app) writeSeries(f *fieldSeries, files []string, out string, fields []string, overwrite bool) error {
	chosen, err := f.choose(fields)
	if err != nil {
		return err
	}
	at := out
	if out == "-" {
		at = "standard output"
	}
	s, err := f.series(strings.TrimSuffix(filepath.Base(files[0]), ".h5"), at, chosen)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := xdmf.Write(&text, s); err != nil {
		return err
	}
	if out == "-" {
		a.out.Write(text.Bytes()) // what fails is told when the rest is flushed
		return nil
	}
	to, err := newTarget(out, overwrite || isOurXDMF(out), files)
	if err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	err = vfs.WriteFile(vfs.OS, to.tmp, text.Bytes(), 0o666, true)
	if err == nil {
		err = to.publish()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", out, plainError(to.discard(err)))
	}
	fmt.Fprintln(a.out, oneLine(fmt.Sprintf("%s: %s at %s", out, strings.Join(names(chosen), ", "), count(int64(len(s.Steps)), "time"))))
	return nil
}

// isOurXDMF tells a file that this command wrote from one that was made or edited by
// other means.
func isOurXDMF(path string) bool {
	const most = 1 << 28
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return false
	}
	old, err := vfs.ReadFile(vfs.OS, path, most)
	if err != nil {
		return false
	}
	_, err = xdmf.Read(old)
	return err == nil
}

// fieldSeries is where the fields of some files are.
type fieldSeries struct {
	layout runfile.Layout
	times  []float64
	origin func(state int) (file string, number int)
	extent map[string]int // saved states of each file
	hidden map[string]string
}

func readSeries(ctx context.Context, files []string, warn runfile.Option) (*fieldSeries, error) {
	f := &fieldSeries{extent: make(map[string]int)}
	for _, file := range files {
		info, faults, err := runfile.Inspect(ctx, file, runfile.Warn(func(string) {}))
		if err == nil && len(faults) > 0 {
			err = faults[0]
		}
		if err != nil {
			return nil, err
		}
		f.extent[file] = len(info.Times)
		if info.State != nil && len(files) == 1 {
			f.layout, f.times, f.hidden = info.Layout, info.Times, info.State.Bundles
			f.origin = func(int) (string, int) { return file, 0 }
			return f, nil
		}
	}
	s, err := runfile.Outline(ctx, files, warn)
	if err != nil {
		return nil, err
	}
	f.layout, f.times, f.origin = s.Layout, s.Times, s.Origin
	return f, nil
}

func names(fields []runfile.Unknown) (list []string) {
	for _, u := range fields {
		list = append(list, u.Name)
	}
	return list
}

// choose gives the fields of some names, or all. They must have one grid.
func (f *fieldSeries) choose(wanted []string) ([]runfile.Unknown, error) {
	var there, chosen []runfile.Unknown
	for _, u := range f.layout.Unknowns {
		if _, elsewhere := f.hidden[u.Name]; u.Kind == runfile.Field && !elsewhere {
			there = append(there, u)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(names(there), name) {
			return nil, fmt.Errorf("no field %q, the fields are: %s", name, orNone(strings.Join(names(there), ", ")))
		}
	}
	for _, u := range there {
		if len(wanted) == 0 || slices.Contains(wanted, u.Name) {
			chosen = append(chosen, u)
		}
	}
	switch {
	case len(chosen) == 0:
		return nil, errors.New("there is no field in the file")
	case len(f.times) == 0:
		return nil, errors.New("there is no saved state")
	}
	for _, u := range chosen[1:] {
		if u.Domain.SameGrid(chosen[0].Domain) != nil {
			return nil, fmt.Errorf("the fields %s and %s have different grids: choose with --field", chosen[0].Name, u.Name)
		}
	}
	return chosen, nil
}

// series describes fields to a reader of the XDMF file at a path.
func (f *fieldSeries) series(name, at string, fields []runfile.Unknown) (xdmf.Series, error) {
	s := xdmf.Series{Name: name}
	paths := make(map[string]string)
	for i, time := range f.times {
		file, number := f.origin(i)
		if _, ok := paths[file]; !ok {
			var err error
			if paths[file], err = relative(at, file); err != nil {
				return s, err
			}
		}
		d := fields[0].Domain
		step := xdmf.Step{Name: fmt.Sprintf("state %d", i), Time: time, Size: d.Size, Origin: d.Origin, Spacing: d.Spacing}
		for _, u := range fields {
			step.Arrays = append(step.Arrays, xdmf.Array{Name: u.Name, Path: paths[file],
				Slab: &xdmf.Slab{Dataset: "unknowns/" + u.Name, Extent: f.extent[file], Index: number}})
		}
		s.Steps = append(s.Steps, step)
	}
	return s, nil
}

// relative is the path from one file to another, whether they are given from the root
// or not.
func relative(from, to string) (string, error) {
	from, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	if to, err = filepath.Abs(to); err != nil {
		return "", err
	}
	return xdmf.Relative(from, to)
}
