package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/spf13/cobra"
)

func newVerify(a *app) *cobra.Command {
	var quiet, asJSON bool
	c := &cobra.Command{
		Use:   "verify PATH...",
		Short: "Check the structure, the sizes and the checksums of bundles",
		Long: `Check the structure, the sizes and the checksums of bundles.

A PATH is a bundle, or a directory of bundles; of a directory all bundles are
checked, newest first, but not those that were set aside (.damaged, .superseded).
Every damaged file is named. A bundle without checksums (format version 1, or
another writer) is checked by size, and the output says so.

Exit status: 0 when all bundles are good, 1 when one is damaged, 2 for wrong usage
or when something can't be read.`,
		Example: `  fieldstone verify results/ckpt/step_40
  fieldstone verify results/ckpt`,
		Args:              arguments(1, anyNumber, "a bundle or a directory of bundles"),
		ValidArgsFunction: completeBundles(anyNumber),
		RunE: func(c *cobra.Command, args []string) error {
			return a.verify(c.Context(), args, quiet, asJSON)
		},
	}
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "write errors only")
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// verdict is the outcome of verifying a bundle.
type verdict struct {
	Path  string `json:"path"`
	State state  `json:"state"`
	// Checked is how far the bundle could be checked.
	Checked string  `json:"checked"`
	Files   int     `json:"files"` // 0: not known
	Bytes   int64   `json:"bytes"`
	Faults  []fault `json:"faults"`
	Error   *string `json:"error"` // why it can't be judged
}

// fault is a damaged file. A fault of the bundle as a whole has no file.
type fault struct {
	File   string `json:"file"`
	Reason string `json:"reason"`
}

// How a bundle was checked.
const (
	bySize     = "sizes"
	byChecksum = "checksums"
)

func (a *app) verify(ctx context.Context, paths []string, quiet, asJSON bool) error {
	status := statusGood
	verdicts := []verdict{}
	for _, path := range paths {
		bundles, directory, err := bundlesAt(path)
		if err != nil {
			a.report("verify", path, err)
			status = statusFailed
			continue
		}
		if len(bundles) == 0 {
			a.report("verify", path, errors.New("no bundles but such that were set aside"))
			status = statusFailed
		}
		for _, e := range bundles {
			v, err := a.verifyBundle(ctx, e)
			if err != nil {
				return err
			}
			if directory && v.State != stateGood && e.gone() {
				continue
			}
			status = max(status, v.status())
			verdicts = append(verdicts, v)
			for _, f := range v.Faults {
				if f.File == "" {
					a.complain("verify %s: %s", v.Path, f.Reason)
				} else {
					a.complain("verify %s: %s: %s", v.Path, f.File, f.Reason)
				}
			}
			if v.Error != nil {
				a.complain("verify %s: %s", v.Path, *v.Error)
			}
			if !quiet && !asJSON {
				fmt.Fprintln(a.out, oneLine(v.String()))
				if err := a.out.Flush(); err != nil {
					return outputError(err)
				}
			}
		}
	}
	if asJSON {
		if err := writeJSON(a.out, map[string]any{"bundles": verdicts}); err != nil {
			return err
		}
	}
	if status != statusGood {
		return statusError(status)
	}
	return nil
}

// verifyBundle returns an error only when it was interrupted.
func (a *app) verifyBundle(ctx context.Context, e *entry) (verdict, error) {
	bar := a.start("verify "+e.name, e.info.Bytes)
	defer bar.end()
	var seen int64
	info, faults, err := publish.Faults(ctx, e.path, func(_ string, done, _ int64) {
		bar.add(done - seen)
		seen = done
	})
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	v := verdict{
		Path:    e.path,
		State:   stateGood,
		Checked: bySize,
		Bytes:   info.Bytes,
		Faults:  []fault{},
	}
	if info.Metadata.FormatVersion != 0 {
		v.Files = 1 + len(info.Metadata.Fields)
		for _, there := range []bool{info.Sidecar, info.Checksums} {
			if there {
				v.Files++
			}
		}
	}
	if info.Checksums {
		v.Checked = byChecksum
	}
	for _, f := range faults {
		v.State = stateBad
		v.Faults = append(v.Faults, fault{File: f.File, Reason: f.Reason})
	}
	switch {
	case err == nil:
	case errors.Is(err, publish.ErrNotABundle):
		v.State = stateBad
		v.Faults = append(v.Faults, fault{Reason: reason(e.path, err)})
	default:
		v.State = stateUnreadable
		v.Error = pointer(reason(e.path, err))
	}
	return v, nil
}

func (v verdict) status() int {
	switch v.State {
	case stateGood:
		return statusGood
	case stateBad:
		return statusBad
	}
	return statusFailed
}

func (v verdict) String() string {
	switch {
	case v.State != stateGood:
		return fmt.Sprintf("%s: %s", v.Path, v.State)
	case v.Checked == bySize:
		return fmt.Sprintf("%s: good by size, it has no checksums (%s, %s)", v.Path, count(int64(v.Files), "file"), humanSize(v.Bytes))
	}
	return fmt.Sprintf("%s: good (%s, %s)", v.Path, count(int64(v.Files), "file"), humanSize(v.Bytes))
}
