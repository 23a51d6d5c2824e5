package runfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// SegmentFile returns the path of the output of a segment, which is 1 or more, of the
// run of a name in a directory.
func SegmentFile(dir, name string, segment int) string {
	return filepath.Join(dir, fmt.Sprintf("%s.segment%04d.h5", name, segment))
}

// CheckpointFile returns the path of the last checkpoint of a run.
func CheckpointFile(dir, name string) string {
	return filepath.Join(dir, name+".checkpoint.h5")
}

// PreviousFile returns the path of the checkpoint before the last one.
func PreviousFile(dir, name string) string {
	return filepath.Join(dir, name+".checkpoint.prev.h5")
}

// CheckName tells whether a run may have a name: it is the beginning of the names of
// its files, so it has neither '/' nor control characters, and doesn't begin with a
// point. On Windows it has no backslash and no colon either, and isn't that of a device.
// The error matches [ErrInput].
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("name of the run: %w: empty", ErrInput)
	case strings.HasPrefix(name, "."), !vfs.IsFileName(name + ".lock"), strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("name of the run: %w: %q can't begin the name of a file", ErrInput, name)
	case len(name) > 200:
		return fmt.Errorf("name of the run: %w: %d bytes are more than the 200 for which there is room in the name of a file", ErrInput, len(name))
	}
	return nil
}

// A Segment is an output file of a run.
type Segment struct {
	Number int
	File   string
}

// SegmentFiles returns the segments of a run that exist, in the order of their
// numbers. A directory that isn't there has none.
func SegmentFiles(dir, name string) ([]Segment, error) {
	return segmentFiles(vfs.OS, dir, name)
}

func segmentFiles(fsys vfs.FS, dir, name string) ([]Segment, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	entries, err := fsys.ReadDir(filepath.Clean(dir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("segments of run %q: %w", name, err)
	}
	var list []Segment
	for _, e := range entries {
		if n, ok := segmentNumber(e.Name(), name); ok {
			list = append(list, Segment{n, SegmentFile(dir, name, n)})
		} else if err := otherSpelling(fsys, dir, name, e.Name(), entries); err != nil {
			return nil, fmt.Errorf("segments of run %q: %w", name, err)
		}
	}
	slices.SortFunc(list, func(a, b Segment) int { return a.Number - b.Number })
	return list, nil
}

// otherSpelling is an error if a file is a segment of a run whose name differs in case
// only, and the filesystem takes it for one of this run: it would be replaced.
func otherSpelling(fsys vfs.FS, dir, name, file string, entries []fs.DirEntry) error {
	if len(file) < len(name) || !strings.EqualFold(file[:len(name)], name) {
		return nil
	}
	n, ok := segmentNumber(name+file[len(name):], name)
	own := SegmentFile("", name, n)
	if !ok || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == own }) {
		return nil
	}
	there, err := vfs.Exists(fsys, filepath.Join(dir, own))
	if err != nil || !there {
		return err
	}
	return fmt.Errorf("%q, of another run, and %q: %w", file, own, vfs.ErrOneFile)
}

// segmentNumber gives the number of the segment that a file in the directory of a run
// is, if it is one.
func segmentNumber(file, name string) (int, bool) {
	digits, ok := strings.CutPrefix(file, name+".segment")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, ".h5"); !ok {
		return 0, false
	}
	// Only the one spelling of a number that SegmentFile gives is ours.
	n, err := strconv.Atoi(digits)
	if err != nil || n < 1 || fmt.Sprintf("%04d", n) != digits {
		return 0, false
	}
	return n, true
}

// isOfRun reports whether a file has the name of a file of a run, in any directory.
func isOfRun(file, name string) bool {
	base := filepath.Base(file)
	_, segment := segmentNumber(base, name)
	return segment || base == filepath.Base(CheckpointFile("", name)) || base == filepath.Base(PreviousFile("", name))
}
