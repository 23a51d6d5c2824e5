package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/publish"
)

// what is at a path.
type what int

const (
	aBundle    what = iota // good or bad
	aRunFile               // by its content, and where that is damaged, by its name
	aDirectory             // with bundles, run files or both
)

func (w what) String() string {
	return [...]string{"a bundle", "a run file", "a directory of bundles or run files"}[w]
}

// errNeither says that there is nothing to work on at a path.
var errNeither = errors.New("neither a bundle nor a run file")

// lookAt tells what is at a path. Its error matches errNeither where that is nothing of
// ours; any other says why the path can't be looked at. What has the name of a bundle
// or of a run file is taken for one, so that a damaged one is found.
func lookAt(path string) (what, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return 0, err
	case info.IsDir():
		return lookAtDirectory(path)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%w (it is %s)", errNeither, kindOfFile(info.Mode()))
	case hasBundleName(path):
		return aBundle, nil
	case filepath.Ext(path) == ".h5":
		return aRunFile, nil
	}
	switch signed, err := signatureOf(path); {
	case err != nil:
		return 0, err
	case signed:
		return aRunFile, nil
	case info.Size() == 0:
		return 0, fmt.Errorf("%w (it is empty)", errNeither)
	}
	return 0, partOf(path, errNeither)
}

func lookAtDirectory(path string) (what, error) {
	if looksLikeBundle(path) {
		return aBundle, nil
	}
	files, err := os.ReadDir(path)
	if err != nil {
		return 0, err
	}
	for _, f := range files {
		if newEntry(path, f.Name()) != nil || isRunFileIn(path, f) {
			return aDirectory, nil
		}
	}
	if isDir(filepath.Join(path, "fields")) {
		return aBundle, nil
	}
	return 0, partOf(path, fmt.Errorf("%w, nor a directory of them", errNeither))
}

// partOf adds to an error the bundle of which the thing at a path is a part.
func partOf(path string, err error) error {
	for dir, up := path, 0; up < 2; up++ {
		if dir = filepath.Dir(filepath.Clean(dir)); exists(filepath.Join(dir, "metadata.json")) {
			return fmt.Errorf("%w (it is a part of the bundle %s)", err, dir)
		}
	}
	return err
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

// nothingAt is the text of an error about a path at which there is nothing: it names a
// directory above it that is missing, or the place to which a link leads.
func nothingAt(path string, err error) string {
	text := err.Error()
	if !errors.Is(err, fs.ErrNotExist) {
		return text
	}
	if to, err := os.Readlink(path); err == nil {
		return fmt.Sprintf("%s (it is a symbolic link to %s)", text, to)
	}
	if dir := vfs.MissingDir(vfs.OS, path); dir != "" {
		return fmt.Sprintf("%s (there is no directory %s)", text, dir)
	}
	return text
}
