package runfile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// errUnsynced is in the chain of errors that say that a segment has its new content,
// of which a crash of the system may take it back.
var errUnsynced = errors.New("the directory of the new file is not synced")

// A segmentWriter writes the output of a segment as it comes to be. The file has all
// that was published at any time: what is new goes into a working file beside it, which
// begins as its clone, and which then replaces it. So what is published costs what is
// new, where the filesystem can clone. Rank 0 alone has one.
type segmentWriter struct {
	o       *options
	dir     string
	name    string // of the run
	path    string
	tmp     string // the working file
	began   bool   // the file at the path is this one's
	working bool   // there is a working file
	cloned  vfs.Cloned

	// What the file at the path has.
	states, attempts, iterations int
	publications                 int // that added attempts
	// fields is how many states of fields the working file has beyond that.
	fields int
}

// newSegmentWriter begins the segment of a number. What is at its path is replaced by
// what is published first, and not before.
func newSegmentWriter(dir, name string, number int, o *options) *segmentWriter {
	path := SegmentFile(dir, name, number)
	return &segmentWriter{o: o, dir: dir, name: name, path: path, tmp: temporary(path)}
}

// removeLeftovers removes the working files that killed runs of the name left. The
// caller holds the lock of the run.
func removeLeftovers(fsys vfs.FS, dir, name string) error {
	entries, err := fsys.ReadDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		path, ok := isWorking(e.Name())
		_, segment := segmentNumber(path, name)
		// The temporary file of a checkpoint is replaced by the next one, and only
		// working files of several nodes have names of their own.
		checkpoint := path == CheckpointFile("", name) && e.Name() != temporary(path)
		if !ok || !segment && !checkpoint {
			continue
		}
		if err := remove(fsys, filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// publish makes the file at the path have what was added to it: the states, the attempts
// and the present settings of add. An error leaves the path as it was, unless it matches
// errUnsynced, and removes the working file.
func (w *segmentWriter) publish(ctx context.Context, add *Solution) error {
	err := w.change(ctx, add, func(f *h5.File) error {
		if err := w.add(ctx, f, add); err != nil {
			return err
		}
		return complete(f)
	})
	if err == nil {
		err = syncFile(w.o.fsys, w.tmp)
	}
	if err == nil {
		err = vfs.Move(w.o.fsys, w.tmp, w.path)
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	w.began, w.working, w.fields = true, false, 0
	w.states += len(add.Times)
	w.attempts += add.Statistics.Attempts()
	w.iterations += len(add.Statistics.IterationAttempt)
	if add.Statistics.hasEntries() {
		w.publications++
	}
	if err := w.o.fsys.SyncDir(filepath.Dir(w.path)); err != nil {
		return fmt.Errorf("%w: %w", errUnsynced, err)
	}
	return nil
}

// discard removes the working file.
func (w *segmentWriter) discard() error {
	w.working, w.fields = false, 0
	return remove(w.o.fsys, w.tmp)
}

// change opens the working file, and makes it if there is none.
func (w *segmentWriter) change(ctx context.Context, add *Solution, do func(f *h5.File) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.working {
		return change(w.tmp, do)
	}
	var err error
	if w.tmp, err = w.o.working(w.path); err != nil {
		return err
	}
	if !w.began {
		if err := removeLeftovers(w.o.fsys, w.dir, w.name); err != nil {
			return err
		}
		if err := touch(w.o.fsys, w.tmp); err != nil {
			return err
		}
		w.working = true
		return makeFile(w.tmp, func(f *h5.File) error {
			if err := w.head(ctx, f, add); err != nil {
				return err
			}
			return do(f)
		})
	}
	if err := remove(w.o.fsys, w.tmp); err != nil {
		return err
	}
	if w.cloned, err = vfs.Clone(w.o.fsys, w.path, w.tmp, 0o666); err != nil {
		return err
	}
	w.working = true
	return change(w.tmp, func(f *h5.File) error {
		if err := w.check(f, add); err != nil {
			return err
		}
		if err := f.DeleteAttribute("/", completeAttribute); err != nil {
			return err
		}
		if err := f.Flush(); err != nil {
			return err
		}
		return do(f)
	})
}

// head writes what a segment has from its beginning on.
func (w *segmentWriter) head(ctx context.Context, f *h5.File, add *Solution) error {
	empty := &Solution{Settings: add.Settings, Layout: add.Layout}
	return writeOutput(ctx, f, empty, w.o)
}

// reserve makes the working file have room for the cells of one more state of the
// fields, and says where. Others than HDF5 write them, before anything else is called
// but discard. After an error there is no working file.
func (w *segmentWriter) reserve(ctx context.Context, head *Solution) (place, error) {
	p := place{}
	err := w.change(ctx, head, func(f *h5.File) error {
		if err := needGroup(f, "unknowns"); err != nil {
			return err
		}
		for i := range head.Layout.Unknowns {
			u := &head.Layout.Unknowns[i]
			if u.Kind != Field {
				continue
			}
			if err := p.reserve(f, u, w.states+w.fields, w.o); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return place{}, errors.Join(err, w.discard())
	}
	w.fields++
	p.Path = w.tmp
	return p, nil
}

// sessionPath is where a file names its session.
const sessionPath = "settings/environment/" + sessionKey

// readSession returns the name of the session that wrote a file, "" where it has none.
func readSession(f *h5.File) (string, error) {
	has, err := f.Exists(sessionPath)
	if err != nil || !has {
		return "", err
	}
	return f.ReadString(sessionPath)
}

// check makes sure that what is to be added to is what was published: nobody else has
// changed the file.
func (w *segmentWriter) check(f *h5.File, add *Solution) error {
	if _, err := readRoot(f); err != nil {
		return err
	}
	own, err := sessionOf(add.Settings)
	if err != nil {
		return err
	}
	there, err := readSession(f)
	if err != nil {
		return err
	}
	if there != own {
		return in(w.path, sessionPath, ErrMismatch, "it is of the session %q, and this is %q: something else has changed the file", there, own)
	}
	for _, d := range []struct {
		path string
		rows int
	}{{"time", w.states}, {h5.Join(statisticsGroup, "time"), w.attempts}} {
		there, err := f.Exists(d.path)
		if err != nil {
			return err
		}
		rows := 0
		if there {
			info, err := f.Stat(d.path)
			if err != nil {
				return err
			}
			if len(info.Shape) == 1 {
				rows = info.Shape[0]
			}
		}
		if rows != d.rows {
			return in(w.path, d.path, ErrMismatch, "it has %d entries, and had %d when it was written: something else has changed the file", rows, d.rows)
		}
	}
	return nil
}

// add writes what is new.
func (w *segmentWriter) add(ctx context.Context, f *h5.File, add *Solution) error {
	for i := range add.Layout.Unknowns {
		if u := &add.Layout.Unknowns[i]; u.Kind == Field && w.fields != len(add.Times) {
			return in(f.Name(), h5.Join("unknowns", u.Name), ErrMismatch, "%d states of the field for %d times", w.fields, len(add.Times))
		}
	}
	segment, err := add.Settings.Record("segment")
	if err != nil {
		return err
	}
	if err := updateRecord(f, "settings/segment", segment); err != nil {
		return err
	}
	if err := updateRecordSum(f, "settings/segment", segment); err != nil {
		return err
	}
	if len(add.Times) > 0 {
		if err := writeStates(ctx, f, add, w.states, w.o); err != nil {
			return err
		}
		if err := writeUpdates(ctx, f, add.Updates, w.states, w.o); err != nil {
			return err
		}
		if w.states == 0 {
			if err := writeScales(ctx, f, &add.Layout, nil, w.o); err != nil {
				return err
			}
		}
	}
	if err := writeStatistics(f, &add.Statistics, w.attempts, w.iterations, w.o); err != nil {
		return err
	}
	return w.addSums(f, add)
}

// addSums writes the checksums of what is new.
func (w *segmentWriter) addSums(f *h5.File, add *Solution) error {
	if err := writeStateSums(f, add, w.states, w.o); err != nil {
		return err
	}
	for i := range add.Layout.Unknowns {
		u := &add.Layout.Unknowns[i]
		if u.Kind != Field {
			continue
		}
		rows := make([][]uint64, len(add.fieldSums))
		for k := range rows {
			rows[k] = add.fieldSums[k][u.Name]
		}
		if len(rows) != len(add.Times) {
			return in(f.Name(), h5.Join("unknowns", u.Name), ErrMismatch, "checksums of %d states of the field for %d times", len(rows), len(add.Times))
		}
		if err := writeFieldSums(f, u.Name, rows, w.states, w.o); err != nil {
			return err
		}
	}
	return writeStatisticSums(f, &add.Statistics, w.publications, w.attempts, w.iterations, w.o)
}
