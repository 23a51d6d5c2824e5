package runfile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/record"
)

// FormatVersion is the version of the format that files are written in. Files from
// 0.0.1 on are read.
const FormatVersion = "0.0.5"

// Version is the version of Fieldstone that writes files.
const Version = "0.1.0"

var oldestVersion, newestVersion = [3]int{0, 0, 1}, [3]int{0, 0, 5}

const (
	versionAttribute  = "format_version"
	writerAttribute   = "writer"
	completeAttribute = "complete"
	unitAttribute     = "unit"

	writerName = "fieldstone "
)

// baseName is the last part of a path in a file.
func baseName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// parentName is a path in a file without its last part.
func parentName(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }

// unknownCommit is that of a program that was built outside a checkout.
const unknownCommit = "unknown"

// codeVersion says from which sources the program was built, as far as Go knows.
func codeVersion() (commit, version string, clean bool) {
	commit, version = unknownCommit, Version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = s.Value
			case "vcs.modified":
				clean = s.Value == "false"
			}
		}
	}
	return commit, version, clean
}

// writeRootAttributes writes those that come first.
func writeRootAttributes(f *h5.File) error {
	commit, version, clean := codeVersion()
	for _, a := range [][2]string{
		{writerAttribute, writerName + Version},
		{versionAttribute, FormatVersion},
		{"runes2p_commit", commit},
		{"runes2p_version", version},
	} {
		if err := f.SetAttributeString("/", a[0], a[1]); err != nil {
			return err
		}
	}
	n := int64(0)
	if clean {
		n = 1
	}
	return h5.SetAttribute(f, "/", "runes2p_tree_clean", []int64{n})
}

// writeFile makes a file with what write puts into it, and waits until it is on the
// disk.
func writeFile(path string, write func(f *h5.File) error) error {
	return makeFile(path, func(f *h5.File) error {
		if err := write(f); err != nil {
			return err
		}
		return complete(f)
	})
}

// makeFile makes a file with what write puts into it.
func makeFile(path string, write func(f *h5.File) error) error {
	f, err := h5.Create(path)
	if err != nil {
		return located(noDirectory(vfs.OS, path, err))
	}
	return located(closeAfter(f, write(f)))
}

// closeAfter closes a file after a change, of which err is the error. Close repeats the first
// failure of the file, which need not be said twice.
func closeAfter(f *h5.File, err error) error {
	closing := f.Close()
	var e *h5.Error
	if errors.As(closing, &e) && errors.Is(err, e.Err) {
		return err
	}
	return errors.Join(err, closing)
}

// completing is told, by tests, of a file before it gets its mark.
var completing func(path string)

// complete sets the mark that a file is complete, after everything else has been
// handed to the system, and waits until it is on the disk.
func complete(f *h5.File) error {
	if err := f.Flush(); err != nil {
		return err
	}
	if completing != nil {
		completing(f.Name())
	}
	if err := h5.SetAttribute(f, "/", completeAttribute, []uint8{1}); err != nil {
		return err
	}
	return f.Sync()
}

// change opens a file for a change.
func change(path string, do func(f *h5.File) error) error {
	f, err := h5.OpenReadWrite(path)
	if err != nil {
		return located(err)
	}
	return located(closeAfter(f, do(f)))
}

// temporary is where a file is before it has its name. A run has one writer, so the
// name is always the same, and a file that a killed writer left doesn't stay.
func temporary(path string) string { return path + ".tmp" }

// working is where a file is, before it has its name, to which all ranks write. On
// several nodes no other file had that name: a node may remember for a while what a name
// led to before, on a network filesystem without locks for that, and would write into the
// file that was published last.
func (o *options) working(path string) (string, error) {
	if !o.apart {
		return temporary(path), nil
	}
	n, err := onedir.NewNonce()
	return temporary(path + "." + n.String()), err
}

// isWorking returns the path of which a file that it names is the temporary or the
// working file.
func isWorking(file string) (path string, ok bool) {
	path, ok = strings.CutSuffix(file, temporary(""))
	if at := len(path) - 2*len(onedir.Nonce{}) - 1; at > 0 && path[at] == '.' {
		if _, err := hex.DecodeString(path[at+1:]); err == nil {
			return path[:at], ok
		}
	}
	return path, ok
}

// writeTemporary makes the temporary file of a path, complete and on the disk. After a
// failure there is none.
func writeTemporary(o *options, path string, write func(f *h5.File) error) (tmp string, err error) {
	tmp = temporary(path)
	if err := touch(o.fsys, tmp); err != nil {
		return "", err
	}
	err = writeFile(tmp, write)
	if err == nil {
		err = syncFile(o.fsys, tmp)
	}
	if err != nil {
		return "", errors.Join(err, remove(o.fsys, tmp))
	}
	return tmp, nil
}

// touch makes an empty file in place of what is there. The filesystem makes it, so that
// HDF5 follows no link in its place.
func touch(fsys vfs.FS, name string) error {
	if err := remove(fsys, name); err != nil {
		return err
	}
	f, err := fsys.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return noDirectory(fsys, name, err)
	}
	if err := f.Close(); err != nil {
		return errors.Join(err, remove(fsys, name))
	}
	return nil
}

// noDirectory is an error of making a file: one that names the directory that is missing
// for it, where one is.
func noDirectory(fsys vfs.FS, name string, err error) error {
	if named := vfs.NoDir(fsys, name, err); named != err {
		return ofFile(name, "", named)
	}
	return err
}

func syncFile(fsys vfs.FS, name string) error {
	f, err := fsys.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// remove removes a file that need not be there.
func remove(fsys vfs.FS, name string) error {
	if err := fsys.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeAtomically replaces the file at a path by one with what write puts into it.
func writeAtomically(o *options, path string, write func(f *h5.File) error) error {
	tmp, err := writeTemporary(o, path, write)
	if err != nil {
		return err
	}
	if err := vfs.Move(o.fsys, tmp, path); err != nil {
		return errors.Join(err, remove(o.fsys, tmp))
	}
	return o.fsys.SyncDir(filepath.Dir(path))
}

// parseVersion reads a version, which is three numbers.
func parseVersion(s string) (v [3]int, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, p := range parts {
		n, err := strconv.ParseUint(p, 10, 31)
		if err != nil {
			return v, false
		}
		v[i] = int(n)
	}
	return v, true
}

func before(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// root is what the root of a file says of it.
type root struct {
	version    string
	ours       bool // our writer made it
	checkpoint bool
	sums       *storedSums
}

// withFile opens a file of a run for reading, and closes it after use.
func withFile(ctx context.Context, path string, use func(f *h5.File, r root) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, err := h5.Open(path)
	if err != nil {
		return located(err)
	}
	r, err := readRoot(f)
	if err == nil {
		err = use(f, r)
	}
	return located(errors.Join(err, f.Close()))
}

// readRoot refuses files that aren't those of a run, or not of a version that is
// known, or not finished.
func readRoot(f *h5.File) (r root, err error) {
	r.sums = newStoredSums(f)
	has, err := f.HasAttribute("/", versionAttribute)
	if err != nil {
		return r, err
	}
	if !has {
		return r, in(f.Name(), "", ErrNotRunFile, "it has no attribute %s", versionAttribute)
	}
	if r.version, err = f.AttributeString("/", versionAttribute); err != nil {
		return r, err
	}
	v, ok := parseVersion(r.version)
	if !ok {
		return r, in(f.Name(), "", ErrVersion, "%s is %q, not major.minor.patch", versionAttribute, r.version)
	}
	if before(v, oldestVersion) || before(newestVersion, v) {
		return r, in(f.Name(), "", ErrVersion, "%s is %s, known are 0.0.1 to %s", versionAttribute, r.version, FormatVersion)
	}
	if r.ours, err = checkComplete(f); err != nil {
		return r, err
	}
	r.checkpoint, err = f.Exists("checkpoint")
	return r, err
}

// checkComplete tells whether our writer made the file, and looks for the mark that it
// sets last.
func checkComplete(f *h5.File) (ours bool, err error) {
	has, err := f.HasAttribute("/", writerAttribute)
	if err != nil || !has {
		return false, err
	}
	writer, err := f.AttributeString("/", writerAttribute)
	switch {
	case errors.Is(err, h5.ErrType) || errors.Is(err, h5.ErrShape) || err == nil && !strings.HasPrefix(writer, writerName):
		return false, nil
	case err != nil:
		return false, err
	}
	if has, err = f.HasAttribute("/", completeAttribute); err != nil {
		return false, err
	}
	if has {
		mark, _, err := h5.AttributeAs[bool](f, "/", completeAttribute)
		if err != nil {
			return false, err
		}
		has = len(mark) == 1 && mark[0]
	}
	if !has {
		return false, in(f.Name(), "", ErrTorn, "it was written by %q and has no attribute %s", writer, completeAttribute)
	}
	return true, nil
}

// readScalar reads a dataset of one number.
func readScalar[T h5.Element](f *h5.File, path string) (v T, err error) {
	data, _, err := h5.ReadAs[T](f, path)
	if err != nil {
		return v, err
	}
	if len(data) != 1 {
		return v, in(f.Name(), path, ErrMismatch, "%d numbers, must be one", len(data))
	}
	return data[0], nil
}

// readVector reads a dataset with one axis.
func readVector[T h5.Element](f *h5.File, path string) ([]T, error) {
	data, shape, err := h5.ReadAs[T](f, path)
	if err != nil {
		return nil, err
	}
	if len(shape) != 1 {
		return nil, in(f.Name(), path, ErrMismatch, "%d axes, must be one", len(shape))
	}
	return data, nil
}

// readSettings reads the record of a run.
func readSettings(f *h5.File, sums *storedSums) (record.Record, error) {
	settings, err := readRecord(f, "settings")
	if err == nil {
		err = sums.settings(settings)
	}
	return settings, err
}

// ReadSettings returns the record of the run that wrote a file, output or checkpoint:
// of files that this package wrote as it was written, type for type. Of others every
// list of records is a record keyed by the names, and every list of arrays one keyed
// "1", "2", ….
func ReadSettings(ctx context.Context, path string, opts ...Option) (record.Record, error) {
	_, err := newOptions(opts)
	if err != nil {
		return record.Record{}, fmt.Errorf("read settings of %s: %w", path, err)
	}
	var settings record.Record
	err = withFile(ctx, path, func(f *h5.File, r root) (err error) {
		settings, err = readSettings(f, r.sums)
		return err
	})
	if err != nil {
		return record.Record{}, fmt.Errorf("read settings: %w", err)
	}
	return settings, nil
}

// checkTimes tells whether times can be those of saved states.
func checkTimes(times []float64) error {
	for i, t := range times {
		if math.IsNaN(t) || math.IsInf(t, 0) {
			return fmt.Errorf("saved time %d is %v", i, t)
		}
		if i > 0 && t <= times[i-1] {
			return fmt.Errorf("the saved times are not increasing: %v s is followed by %v s", times[i-1], t)
		}
	}
	return nil
}
