package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/record"
)

// A subject is something at a path that commands work on. A command finds out with
// [app.identify] which kind it is, and asks it; no command knows the kinds.
//
// A new command is one more method here, an answer of [unable] for the kinds that can't do
// it, and a file for the command. A new kind is a file with a type that embeds unable, and
// a line in subjectKinds.
//
// The methods write to the output of the tool. What goes wrong they report, and return as a
// statusError.
type subject interface {
	// String is the kind with an article: "a bundle".
	String() string
	show(ctx context.Context, o showOptions) error
	// verify adds to what is verified. It returns an error only if it was interrupted, or
	// the output can't be written.
	verify(ctx context.Context, v *verification) error
	// diff compares with a subject of the same kind.
	diff(ctx context.Context, with subject, o diffOptions) error
	list(ctx context.Context, o lsOptions) error
	// settings reads those of a run. Its errors are for the caller to report.
	settings(ctx context.Context, command string) (record.Record, error)
	// runFile is nil for a file of a run, and otherwise says what the subject is instead.
	runFile() error
}

// subjectKind is a kind of subjects.
type subjectKind struct {
	// identify returns nil where something else is at the path. What has the name of a
	// subject is taken for one, so that a damaged one is found.
	identify func(at unable, info fs.FileInfo) (subject, error)
	// verdicts is the key in the JSON of verify, "" where a kind has others' verdicts only.
	verdicts string
}

// subjectKinds are asked in this order.
var subjectKinds = []subjectKind{
	{identifyBundle, bundleVerdicts},
	{identifyRunFile, runVerdicts},
	{identifyDirectory, ""},
}

// errNeither says that there is nothing to work on at a path.
var errNeither = errors.New("neither a bundle nor a run file")

// identify returns what is at a path. Its error matches errNeither where that is nothing of
// ours; any other says why the path can't be looked at.
func (a *app) identify(path string) (subject, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	for _, kind := range subjectKinds {
		if s, err := kind.identify(unable{app: a, path: path}, info); s != nil || err != nil {
			return s, err
		}
	}
	return nil, nothingOfOurs(path, info)
}

func nothingOfOurs(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return partOf(path, errNoBundles)
	case !mode.IsRegular():
		return fmt.Errorf("%w (it is %s)", errNeither, kindOfFile(mode))
	case info.Size() == 0:
		return fmt.Errorf("%w (it is empty)", errNeither)
	}
	return partOf(path, errNeither)
}

// identifyBoth returns what is at the two paths of a comparison, or reports why these can't
// be compared.
func (a *app) identifyBoth(pathA, pathB string) (x, y subject, err error) {
	x, errA := a.identify(pathA)
	y, errB := a.identify(pathB)
	if a.reportSides(pathA, pathB, errA, errB) {
		return nil, nil, statusError(statusFailed)
	}
	if x.String() != y.String() {
		a.complain("diff: %s", ofTwoKinds(pathA, x.String(), pathB, y.String()))
		return nil, nil, statusError(statusFailed)
	}
	return x, y, nil
}

// wantRunFile says why what is at a path can't be a file of a run.
func (a *app) wantRunFile(path string) error {
	s, err := a.identifyAny(path)
	if err != nil {
		return err
	}
	return s.runFile()
}

// identifyAny is identify to which a directory is one without anything of ours too.
func (a *app) identifyAny(path string) (subject, error) {
	s, err := a.identify(path)
	if errors.Is(err, errNeither) && isDir(path) {
		return directory{unable{app: a, path: path}}, nil
	}
	return s, err
}

// unable is a subject that can't do anything. Kinds embed it, and do what they can. Each
// answer says what the subject is, and what the command wants.
type unable struct {
	*app
	path string
	kind string // with an article: "a bundle"
}

func (u unable) cannot(command, wanted, hint string) error {
	text := fmt.Sprintf("is %s, not %s", u.kind, wanted)
	if hint != "" {
		text += " (" + hint + ")"
	}
	u.complain("%s %s: %s", command, u.path, text)
	return statusError(statusFailed)
}

func (u unable) String() string { return u.kind }

func (u unable) show(context.Context, showOptions) error {
	return u.cannot("show", "something that can be shown", "")
}

func (u unable) verify(_ context.Context, v *verification) error {
	v.failed(u.path, fmt.Errorf("is %s, not something that can be verified", u.kind))
	return nil
}

func (u unable) diff(context.Context, subject, diffOptions) error {
	return u.cannot("diff", "something that can be compared", "")
}

func (u unable) list(context.Context, lsOptions) error {
	return u.cannot("ls", "a directory of bundles", "see 'fieldstone show'")
}

func (u unable) settings(context.Context, string) (record.Record, error) {
	return record.Record{}, u.runFile()
}

func (u unable) runFile() error { return fmt.Errorf("is %s, not a run file", u.kind) }

// partOf adds to an error the bundle of which the thing at a path is a part.
func partOf(path string, err error) error {
	for dir, up := path, 0; up < 2; up++ {
		if dir = filepath.Dir(filepath.Clean(dir)); exists(filepath.Join(dir, "metadata.json")) {
			return fmt.Errorf("%w (it is a part of the bundle %s)", err, dir)
		}
	}
	return err
}

func kindOfFile(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}
