package runfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// disk is the store of a run in a directory. The program may change its working directory
// while the run goes on: what was relative to it is so to the one at the beginning.
type disk struct {
	given, dir string // the directory as the caller gave it, and absolute
	name       string
	log        *slog.Logger
	fsys       vfs.FS
	chunkBytes int    // of fields
	apart      bool   // the ranks are on several nodes
	work       string // working directory at the beginning, "" if it isn't known
	lost       error  // it isn't known, and dir is relative to it
	made       bool   // the directory is there, and can be written

	writer *checkpointWriter // nil before the first checkpoint
	bytes  int64             // of the values handed to the files
}

func newDisk(dir, name string, log *slog.Logger) *disk {
	d := &disk{given: dir, name: name, log: log, fsys: vfs.OS, chunkBytes: chunkBytes}
	work, err := os.Getwd()
	if err != nil && !filepath.IsAbs(dir) {
		d.lost = fmt.Errorf("working directory: %w", err)
	}
	d.work = work
	d.dir = d.absolute(dir)
	return d
}

// absolute makes a path absolute that the caller gave.
func (d *disk) absolute(path string) string {
	if d.work == "" {
		return path
	}
	return vfs.Under(d.work, path)
}

// shown is a path in the directory as the caller would give it.
func (d *disk) shown(path string) string { return filepath.Join(d.given, filepath.Base(path)) }

func (d *disk) directory() string { return d.dir }

func (d *disk) workingDirectory() string { return d.work }

func (d *disk) onNodes() { d.apart = true }

func (d *disk) warn() Option {
	return Warn(func(text string) { d.log.Warn(text) })
}

// lock makes the directory, sees that it can be written, and takes the lock <name>.lock
// in it, which ends with this process at the latest. Its file says who has it.
func (d *disk) lock() (func() error, error) {
	if !h5.Enabled {
		return nil, ErrNoHDF5
	}
	if d.lost != nil {
		return nil, d.lost
	}
	if !d.made {
		if err := vfs.MakeDir(d.fsys, filepath.Clean(d.dir), nil); err != nil {
			return nil, err
		}
		if err := owner.Writable(d.fsys, d.dir); err != nil {
			return nil, err
		}
		d.made = true
	}
	l, err := owner.Take(d.fsys, filepath.Join(d.dir, d.name+".lock"), ErrInUse)
	switch {
	case errors.Is(err, vfs.ErrNoLocks):
		d.log.Warn("nothing keeps a second run of the name away", "directory", d.dir, "error", err)
		return func() error { return nil }, nil
	case err != nil:
		return nil, err
	}
	return l.Release, nil
}

// segments has the paths as the caller would give them, as all that is shown.
func (d *disk) segments() ([]Segment, error) {
	list, err := segmentFiles(d.fsys, d.dir, d.name)
	for i := range list {
		list[i].File = SegmentFile(d.given, d.name, list[i].Number)
	}
	return list, err
}

// owns compares directories as the system does, and names as they are.
func (d *disk) owns(file string) bool {
	there, err := os.Stat(filepath.Dir(d.absolute(file)))
	if err != nil {
		return false
	}
	here, err := os.Stat(d.dir)
	if err != nil || !os.SameFile(here, there) {
		return false
	}
	return isOfRun(file, d.name)
}

func (d *disk) look(ctx context.Context, g Segment) (*Info, []error, error) {
	return judgeAlone(ctx, d.absolute(g.File), true, []Option{Warn(func(string) {}), withoutCells})
}

func (d *disk) places(number int) error {
	last, previous := CheckpointFile(d.dir, d.name), PreviousFile(d.dir, d.name)
	files := []string{last, temporary(last), previous, temporary(previous)}
	if number > 0 {
		segment := SegmentFile(d.dir, d.name, number)
		files = append(files, segment, temporary(segment))
	}
	for _, file := range files {
		info, err := d.fsys.Lstat(file)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			info, err = d.fsys.Stat(file)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case !info.Mode().IsRegular():
			return fmt.Errorf("%w: %s: it is no regular file, in the place of one of the run (move it away)", ErrFilesExist, d.shown(file))
		}
	}
	return nil
}

// checkpoint judges by the rules of Faults, less those about other files, which are the
// session's. What can't be judged is an error: nobody knows then what it is.
func (d *disk) checkpoint(ctx context.Context) (*Checkpoint, error) {
	var passed *passedOver
	for n, path := range []string{CheckpointFile(d.dir, d.name), PreviousFile(d.dir, d.name)} {
		k, err := d.judged(ctx, path)
		switch {
		case err == nil && k == nil:
		case err == nil:
			k.Previous, k.passed = n > 0, passed
			return k, nil
		case cannotJudge(err):
			return nil, err
		case passed != nil:
			return nil, errors.Join(passed.err, err)
		default:
			passed = &passedOver{d.shown(path), err}
		}
	}
	if passed != nil {
		return nil, passed.err
	}
	return nil, nil
}

// judged reads a checkpoint that is good by itself, or returns nil where there is none.
func (d *disk) judged(ctx context.Context, path string) (*Checkpoint, error) {
	o, err := d.options()
	if err != nil {
		return nil, err
	}
	there, err := vfs.Exists(d.fsys, path)
	if err != nil || !there {
		return nil, err
	}
	_, faults, err := judgeAlone(ctx, path, true, []Option{Warn(func(string) {}), withoutCells})
	if err == nil && len(faults) > 0 {
		err = faults[0]
	}
	if err != nil {
		return nil, err
	}
	k, err := o.checkpointAt(ctx, path)
	if k != nil {
		k.File = d.shown(k.File)
	}
	return k, err
}

func (d *disk) previous(ctx context.Context) (*Checkpoint, error) {
	k, err := d.judged(ctx, PreviousFile(d.dir, d.name))
	if k != nil {
		k.Previous = true
	}
	return k, err
}

func (d *disk) checkpointsFrom(ctx context.Context, number int) (list []string, err error) {
	o, err := d.options()
	if err != nil {
		return nil, err
	}
	for _, path := range []string{CheckpointFile(d.dir, d.name), PreviousFile(d.dir, d.name)} {
		there, err := vfs.Exists(d.fsys, path)
		if err != nil {
			return nil, err
		}
		if !there {
			continue
		}
		k, err := o.checkpointAt(ctx, path)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil || k.Segment >= number {
			list = append(list, d.shown(path))
		}
	}
	return list, nil
}

func (d *disk) setAside(file string) (string, error) {
	file = d.absolute(file)
	for n := 1; ; n++ {
		to := file + ".superseded"
		if n > 1 {
			to += "." + strconv.Itoa(n)
		}
		err := vfs.MoveNoReplace(d.fsys, file, to)
		switch {
		case errors.Is(err, vfs.ErrUnclear):
			return "", err
		case errors.Is(err, fs.ErrExist):
			continue
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case err != nil:
			return "", err
		}
		return d.shown(to), d.fsys.SyncDir(filepath.Dir(file))
	}
}

func (d *disk) state(ctx context.Context, file string, number int) (*Checkpoint, error) {
	counted := func(o *options) error { o.stateBase = 1; return nil } // as Config.FromState is
	if _, faults, err := Faults(ctx, d.absolute(file), NoValues(), Warn(func(string) {})); err == nil && len(faults) > 0 {
		return nil, faults[0]
	}
	k, err := ReadState(ctx, d.absolute(file), State(number), counted, d.warn())
	if k != nil {
		k.File = file
	}
	return k, err
}

func (d *disk) exists(file string) (bool, error) { return vfs.Exists(d.fsys, d.absolute(file)) }

func (d *disk) filesystem() vfs.FS { return d.fsys }

func (d *disk) options(opts ...Option) (*options, error) {
	o, err := newOptions(append(opts, d.warn()))
	if err == nil {
		o.fsys, o.chunkBytes, o.apart, o.total = d.fsys, d.chunkBytes, d.apart, &d.bytes
	}
	return o, err
}

func (d *disk) written() int64 { return d.bytes }

func (d *disk) segment(number int) (segmentFile, error) {
	o, err := d.options(Extendible())
	if err != nil {
		return nil, err
	}
	return newSegmentWriter(d.dir, d.name, number, o), nil
}

func (d *disk) checkpoints() (*checkpointWriter, error) {
	if d.writer == nil {
		o, err := d.options()
		if err != nil {
			return nil, err
		}
		d.writer = newCheckpointWriter(d.dir, d.name, o)
	}
	return d.writer, nil
}

func (d *disk) writeCheckpoint(ctx context.Context, k *Checkpoint) error {
	w, err := d.checkpoints()
	if err != nil {
		return err
	}
	return w.write(ctx, k)
}

func (d *disk) reserveCheckpoint(ctx context.Context, k *Checkpoint) (place, error) {
	w, err := d.checkpoints()
	if err != nil {
		return place{}, err
	}
	return w.prepare(ctx, k, true)
}

func (d *disk) completeCheckpoint(ctx context.Context, k *Checkpoint, counts map[string]int64) error {
	w, err := d.checkpoints()
	if err != nil {
		return err
	}
	return w.complete(ctx, k, counts)
}

func (d *disk) discardCheckpoint() error {
	if d.writer == nil {
		return nil
	}
	return d.writer.discard()
}
