package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

// runFile is a file of a run, by its content, and where that is damaged, by its name.
type runFile struct{ unable }

func identifyRunFile(at unable, info fs.FileInfo) (subject, error) {
	at.kind = "a run file"
	if !info.Mode().IsRegular() {
		return nil, nil
	}
	if filepath.Ext(at.path) != ".h5" {
		if signed, err := signatureOf(at.path); err != nil || !signed {
			return nil, err
		}
	}
	return runFile{at}, nil
}

func (r runFile) verify(ctx context.Context, v *verification) error {
	return v.runFile(ctx, r.path, false)
}

func (r runFile) settings(ctx context.Context, command string) (record.Record, error) {
	if err := r.runFile(); err != nil {
		return record.Record{}, err
	}
	return runfile.ReadSettings(ctx, r.path, r.warnRun(command))
}

func (runFile) runFile() error {
	if !h5.Enabled {
		return errNoHDF5
	}
	return nil
}

// signature is what an HDF5 file begins with, at byte 0, 512, 1024, 2048, ….
var signature = []byte("\x89HDF\r\n\x1a\n")

// hasSignature reports whether the content of a regular file is that of HDF5, as far as
// it can be read.
func hasSignature(path string) bool {
	signed, err := signatureOf(path)
	return err == nil && signed
}

// signatureOf is hasSignature with the error of a file that can't be read.
func signatureOf(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	found := make([]byte, len(signature))
	for at := int64(0); at < info.Size(); at = max(512, 2*at) {
		if _, err := f.ReadAt(found, at); err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		if bytes.Equal(found, signature) {
			return true, nil
		}
	}
	return false, nil
}

// isRunName tells the names that the files of a run have.
func isRunName(name string) bool {
	stem, ok := strings.CutSuffix(name, ".h5")
	if !ok {
		return false
	}
	i := strings.LastIndex(stem, ".segment")
	return strings.HasSuffix(stem, ".checkpoint") || strings.HasSuffix(stem, ".checkpoint.prev") ||
		i > 0 && isDigits(stem[i+len(".segment"):])
}

// runFilesIn lists what may be files of runs in a directory, in the order of their
// names. What is still being written is left out.
func runFilesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if isRunFileIn(dir, e) {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(files, compareNames)
	return files, nil
}

// isRunFileIn reports whether an entry of a directory may be a file of a run, and a
// finished one, or something in the place of one.
func isRunFileIn(dir string, e fs.DirEntry) bool {
	if e.IsDir() {
		return isInPlaceOfRunFile(filepath.Join(dir, e.Name()))
	}
	if wasSetAside(e.Name()) {
		return false
	}
	return filepath.Ext(e.Name()) != ".tmp" && (isRunName(e.Name()) || hasSignature(filepath.Join(dir, e.Name())))
}

// isInPlaceOfRunFile reports whether a directory has the name of a file of a run.
func isInPlaceOfRunFile(path string) bool {
	return isRunName(filepath.Base(path)) && isDir(path) && !exists(filepath.Join(path, "metadata.json"))
}

// wasSetAside reports whether a file has a name under which a run has put one away.
func wasSetAside(name string) bool {
	stem, end, ok := strings.Cut(name, ".h5.superseded")
	return ok && isRunName(stem+".h5") && (end == "" || end[0] == '.' && isDigits(end[1:]))
}

// runReason is the text of an error about a run file without the operation and the
// path, which the caller names.
func runReason(path string, err error) string {
	f := newRunFault(path, err)
	if f.Object == "" {
		return f.Reason
	}
	return f.Object + ": " + f.Reason
}

// newRunFault is an error about a run file as an object of it and a reason.
func newRunFault(path string, err error) runFault {
	if errors.Is(err, runfile.ErrNoHDF5) {
		return runFault{Reason: errNoHDF5.Error()}
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok && samePath(p.Path, path) {
		return runFault{Reason: nothingAt(path, p.Err)}
	}
	if isForeign(path, err) {
		return runFault{Reason: fmt.Sprintf("%v (it is an HDF5 file, but %s)", errNeither, foreignReason)}
	}
	if f, ok := errors.AsType[*runfile.FileError](err); ok && samePath(f.File, path) {
		return runFault{f.Object, f.Err.Error()}
	}
	return runFault{Reason: err.Error()}
}

// foreignReason is why a file is none of a run, as errors that match
// [runfile.ErrNotRunFile] have it.
const foreignReason = "it has no attribute format_version"

// isForeign reports whether an error says that an HDF5 file is none of a run. What has
// the name of one is a damaged one.
func isForeign(path string, err error) bool {
	return errors.Is(err, runfile.ErrNotRunFile) && !isRunName(filepath.Base(path))
}

// reportRun writes an error about a run file to standard error.
func (a *app) reportRun(command, path string, err error) {
	a.complain("%s %s: %s", command, path, runReason(path, err))
}

// warnRun makes a warning of the package a line on standard error.
func (a *app) warnRun(command string) runfile.Option {
	return runfile.Warn(func(text string) { a.complain("%s: warning: %s", command, text) })
}

// runKind says what a file of a run is: a checkpoint, the output of a segment, or
// another output, as of joined segments.
func runKind(i *runfile.Info) string {
	if i.State != nil {
		return "checkpoint"
	}
	if _, ok := i.Segment(); ok {
		return "segment"
	}
	return "output"
}

// unread tells that a file is no file of a run that was finished, so that nothing but
// its root was looked at.
func unread(faults []error, err error) bool {
	return err != nil || slices.ContainsFunc(faults, func(f error) bool {
		return errors.Is(f, runfile.ErrTorn) || errors.Is(f, runfile.ErrNotRunFile) || errors.Is(f, h5.ErrFormat)
	})
}

// sizeOf is the size of a file, also of one that couldn't be opened; nil where that isn't
// known either.
func sizeOf(i *runfile.Info) *int64 {
	if i.Bytes > 0 {
		return &i.Bytes
	}
	info, err := os.Stat(i.File)
	if err != nil {
		return nil
	}
	return pointer(info.Size())
}
