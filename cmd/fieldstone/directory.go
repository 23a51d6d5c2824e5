package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/fieldstone-io/fieldstone/record"
)

// directory has bundles, run files or both.
type directory struct{ unable }

func identifyDirectory(at unable, info fs.FileInfo) (subject, error) {
	if !info.IsDir() {
		return nil, nil
	}
	some, err := holdsSubjects(at.path)
	if err != nil || !some {
		return nil, err
	}
	return directory{at}, nil
}

// holdsSubjects reports whether a directory has bundles or files of runs.
func holdsSubjects(dir string) (bool, error) {
	files, err := os.ReadDir(dir)
	return slices.ContainsFunc(files, func(f fs.DirEntry) bool {
		return newEntry(dir, f.Name()) != nil || isRunFileIn(dir, f)
	}), err
}

func (directory) String() string { return "a directory of bundles or run files" }

func (d directory) settings(context.Context, string) (record.Record, error) {
	return record.Record{}, d.runFile()
}

func (directory) runFile() error { return errors.New("is a directory, not a run file") }

func (d directory) show(ctx context.Context, o showOptions) error {
	entries, err := bundlesIn(d.path)
	if err == nil && len(entries) == 0 {
		err = errors.New("no bundles but such that were set aside")
	}
	if runs := runNames(d.path); errors.Is(err, errNoBundles) && len(runs) > 0 {
		err = fmt.Errorf("no bundles, but %s", runsText(d.path, runs))
	}
	if err != nil {
		d.report("show", d.path, err)
		return statusError(statusFailed)
	}
	bundles := []shown{}
	for _, e := range entries {
		s, unread, err := d.shownOf(ctx, e, o.stats)
		if err != nil {
			return err
		}
		if unread != nil && e.gone() {
			continue
		}
		d.told(s)
		bundles = append(bundles, s)
	}
	if o.json {
		err = writeJSON(d.out, map[string]any{"bundles": bundles})
	} else {
		writeShort(d.app, bundles, o.stats)
	}
	return worst(err, bundles)
}

func (d directory) verify(ctx context.Context, v *verification) error {
	bundles, err := bundlesIn(d.path)
	var files []string
	if err == nil || errors.Is(err, errNoBundles) {
		var listing error
		if files, listing = runFilesIn(d.path); listing != nil {
			err = listing
		}
	}
	if err != nil && (!errors.Is(err, errNoBundles) || len(files) == 0) {
		v.failed(d.path, err)
		return nil
	}
	if len(bundles) == 0 && len(files) == 0 {
		v.failed(d.path, errors.New("no bundles but such that were set aside"))
	}
	for _, e := range bundles {
		if err := v.bundle(ctx, e, true); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := v.runFile(ctx, file, true); err != nil {
			return err
		}
	}
	return nil
}
