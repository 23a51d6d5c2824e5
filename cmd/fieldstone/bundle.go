package main

import (
	"context"
	"io/fs"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/publish"
)

// bundle is a bundle, good or bad.
type bundle struct{ unable }

func identifyBundle(at unable, info fs.FileInfo) (subject, error) {
	at.kind = "a bundle"
	switch {
	case info.Mode().IsRegular() && hasBundleName(at.path):
	case !info.IsDir():
		return nil, nil
	case looksLikeBundle(at.path):
	case isDir(filepath.Join(at.path, "fields")):
		// Other programs have directories of that name, beside bundles and run files too.
		if some, err := holdsSubjects(at.path); some || err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	return bundle{at}, nil
}

// hasBundleName reports whether the name of a path is one that only bundles have.
func hasBundleName(path string) bool {
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	base, kind := classify(filepath.Base(abs))
	_, ok := publish.ParseStepName(base)
	return ok && (&entry{kind: kind}).isBundle()
}

func (b bundle) verify(ctx context.Context, v *verification) error {
	return v.bundle(ctx, bundleEntry(b.path), false)
}

// list lists a directory that is a bundle only as far as it may become one.
func (b bundle) list(ctx context.Context, o lsOptions) error {
	if !isDir(b.path) || !looksLikeBundle(b.path) {
		return directory(b).list(ctx, o)
	}
	return b.unable.list(ctx, o)
}
