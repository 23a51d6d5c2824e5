package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/fieldstone-io/fieldstone/publish"
)

// bundleVerdicts is the key of the verdicts on bundles.
const bundleVerdicts = "bundles"

// bundleVerdict is the outcome of verifying a bundle.
type bundleVerdict struct {
	Path      string `json:"path"`
	PathBytes []byte `json:"path_bytes,omitempty"`
	State     state  `json:"state"`
	// Checked is how far the bundle could be checked.
	Checked string  `json:"checked"`
	Files   int     `json:"files"` // 0: not known
	Bytes   int64   `json:"bytes"`
	Faults  []fault `json:"faults"`
	Error   *string `json:"error"` // why it can't be judged
	// Unlisted are files of fields that the metadata don't list: nobody reads them.
	Unlisted      []string `json:"unlisted,omitempty"`
	UnlistedBytes [][]byte `json:"unlisted_bytes,omitempty"`
	// NonFinite has the counts of fields with cells that are NaN or infinite; null if
	// nobody has counted.
	NonFinite map[string]int64 `json:"non_finite"`
	notFinite string           // the same in words
}

// note is what the line of a good bundle ends with.
func (v bundleVerdict) note() string {
	if v.notFinite == "" {
		return ""
	}
	return "; " + v.notFinite
}

// fault is a damaged file. A fault of the bundle as a whole has no file.
type fault struct {
	File      string `json:"file"`
	FileBytes []byte `json:"file_bytes,omitempty"`
	Reason    string `json:"reason"`
}

// How a bundle was checked.
const (
	bySize     = "sizes"
	byChecksum = "checksums"
)

func (v *verification) bundle(ctx context.Context, e *entry, listed bool) error {
	b, err := v.verifyBundle(ctx, e)
	if err != nil {
		return err
	}
	if listed && b.State != stateGood && e.gone() {
		return nil
	}
	for _, f := range b.Faults {
		v.fault(b.Path, f.File, f.Reason)
	}
	v.warnUnlisted("verify", b.Path, b.Unlisted)
	if b.Error != nil {
		v.fault(b.Path, "", *b.Error)
	}
	return v.judged(bundleVerdicts, b)
}

// warnUnlisted names the files of a bundle's fields that its metadata don't list.
func (a *app) warnUnlisted(command, path string, files []string) {
	for _, file := range files {
		a.complain("%s %s: warning: %s: the metadata don't list it, so nothing reads it", command, path, file)
	}
}

// verifyBundle returns an error only when it was interrupted.
func (a *app) verifyBundle(ctx context.Context, e *entry) (bundleVerdict, error) {
	bar := a.start("verify "+e.name, e.info.Bytes)
	defer bar.end()
	var seen int64
	info, faults, err := publish.Faults(ctx, e.path, func(_ string, done, _ int64) {
		bar.add(done - seen)
		seen = done
	})
	if ctx.Err() != nil {
		return bundleVerdict{}, ctx.Err()
	}
	v := bundleVerdict{
		Path: e.path,

		PathBytes: notUTF8(e.path),

		State:   stateGood,
		Checked: bySize,
		Bytes:   info.Bytes,
		Faults:  []fault{},

		Unlisted:      info.Unlisted,
		UnlistedBytes: anyNotUTF8(info.Unlisted),
	}
	v.NonFinite, v.notFinite = nonFinite(info.Metadata), notFinite(info.Metadata)
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
		v.Faults = append(v.Faults, fault{File: f.File, FileBytes: notUTF8(f.File), Reason: f.Reason})
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

func (v bundleVerdict) state() state { return v.State }

func (v bundleVerdict) String() string {
	switch {
	case v.State != stateGood:
		return fmt.Sprintf("%s: %s", v.Path, v.State)
	case v.Checked == bySize:
		return fmt.Sprintf("%s: good by size, it has no checksums (%s, %s)%s", v.Path, count(int64(v.Files), "file"), humanSize(v.Bytes), v.note())
	}
	return fmt.Sprintf("%s: good (%s, %s)%s", v.Path, count(int64(v.Files), "file"), humanSize(v.Bytes), v.note())
}
