package runfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/record"
)

const (
	// cloneBytes is how many bytes of numbers may be copied, only to be replaced, for each
	// object that need not be made: where the filesystem can't clone, copying these takes
	// about as long.
	cloneBytes = 64 << 10
	// mostGrowth is how many times its first size a checkpoint may have before it is
	// written anew: the space of what was replaced by something larger is lost.
	mostGrowth = 2
)

// errStale is why a file is written anew: it is not what the session wrote.
var errStale = errors.New("the file is not what the session wrote")

// A checkpointWriter writes the checkpoints of a session. The first one is written anew.
// Those after it begin as a clone of the one that was published last, in which what has
// changed is overwritten: of the settings and the layout, which are most of the objects,
// nothing but the record of the segment. Whenever the file is not the one that was
// published, the next one is written anew. Rank 0 alone has one.
type checkpointWriter struct {
	o         *options
	dir, name string     // of the run
	tmp       string     // the working file
	last      *ownedFile // that was published last, nil for none
	next      *ownedFile // that the working file becomes
}

// An ownedFile is a checkpoint of which the session knows what is in it.
type ownedFile struct {
	k       Checkpoint   // as it was written, without state and stepper
	at      fs.FileInfo  // as it was published
	first   int64        // bytes, when it was written anew
	objects int64        // that were made then
	places  []statePlace // of the state, nil where they aren't known yet
	records []summedRecord
}

// A statePlace is where a file has some numbers of the state.
type statePlace struct {
	from, to int // in the state
	offset   int64
}

func newCheckpointWriter(dir, name string, o *options) *checkpointWriter {
	return &checkpointWriter{o: o, dir: dir, name: name}
}

// write writes and publishes a checkpoint without fields in the file.
func (w *checkpointWriter) write(ctx context.Context, k *Checkpoint) error {
	if _, err := w.prepare(ctx, k, false); err != nil {
		return err
	}
	return w.complete(ctx, k, nil)
}

// prepare makes the working file have a checkpoint, with room for its fields if they
// are to be in it, and says where that is. After an error there is no such file.
func (w *checkpointWriter) prepare(ctx context.Context, k *Checkpoint, fields bool) (place, error) {
	if err := k.check(); err != nil {
		return place{}, err
	}
	w.next = &ownedFile{k: *k}
	w.next.k.State, w.next.k.Stepper = nil, record.Record{}
	w.next.k.Updates = slices.Clone(k.Updates)
	for i := range w.next.k.Updates {
		w.next.k.Updates[i].State = nil
	}
	path := CheckpointFile(w.dir, w.name)
	var err error
	if w.tmp, err = w.o.working(path); err != nil {
		return place{}, err
	}
	own := *w.o
	own.reserved = nil
	if fields {
		own.reserved = &place{Path: w.tmp}
	}
	from, err := w.published(k)
	if err != nil {
		return place{}, err
	}
	if from != "" {
		p, err := w.update(ctx, from, k, fields)
		if err == nil {
			return p, nil
		}
		err = errors.Join(err, remove(w.o.fsys, w.tmp))
		if ctx.Err() != nil || errors.As(err, new(syscall.Errno)) {
			return place{}, err
		}
		// What is at the path can't be gone on with. It is not what was published, or
		// damaged, and a new file depends on nothing of it.
		w.next.first, w.next.places, w.next.records = 0, nil, nil
	}
	if err := touch(w.o.fsys, w.tmp); err != nil {
		return place{}, err
	}
	err = makeFile(w.tmp, func(f *h5.File) error {
		err := writeCheckpoint(ctx, f, k, &own)
		w.next.objects = f.Created()
		return err
	})
	if err != nil {
		return place{}, errors.Join(err, remove(w.o.fsys, w.tmp))
	}
	if fields {
		return *own.reserved, nil
	}
	return place{}, nil
}

// published returns the path of the file that was published last, if the next checkpoint
// is to begin as its clone: nobody has changed it, it has the same datasets, and copying
// it is worth it.
func (w *checkpointWriter) published(k *Checkpoint) (string, error) {
	was := w.last
	if was == nil || was.at.Size() > mostGrowth*was.first || !was.resembles(k) {
		return "", nil
	}
	bytes := int64(len(k.State)) * 8
	for i := range k.Layout.Unknowns {
		if u := &k.Layout.Unknowns[i]; u.Kind == Field && k.Bundles[u.Name] == "" {
			bytes += u.Domain.Cells() * 8
		}
	}
	if bytes > cloneBytes*was.objects {
		return "", nil
	}
	for _, path := range []string{CheckpointFile(w.dir, w.name), PreviousFile(w.dir, w.name)} {
		info, err := w.o.fsys.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return "", err
		}
		if os.SameFile(info, was.at) && info.Size() == was.at.Size() && info.ModTime().Equal(was.at.ModTime()) {
			return path, nil
		}
	}
	return "", nil
}

// resembles reports whether a checkpoint can be made of the file by overwriting.
func (was *ownedFile) resembles(k *Checkpoint) bool {
	return was.k.HasStepper == k.HasStepper &&
		slices.EqualFunc(was.k.Updates, k.Updates, func(a, b UpdateState) bool { return a.Name == b.Name }) &&
		slices.Equal(slices.Sorted(maps.Keys(was.k.Bundles)), slices.Sorted(maps.Keys(k.Bundles))) &&
		sameButSegment(was.k.Settings, k.Settings) &&
		reflect.DeepEqual(was.k.Layout, k.Layout)
}

// update makes the working file of a clone.
func (w *checkpointWriter) update(ctx context.Context, from string, k *Checkpoint, fields bool) (p place, err error) {
	if err := ctx.Err(); err != nil {
		return p, err
	}
	if err := remove(w.o.fsys, w.tmp); err != nil {
		return p, err
	}
	if _, err := vfs.Clone(w.o.fsys, from, w.tmp, 0o666); err != nil {
		return p, err
	}
	w.next.first, w.next.objects, w.next.places, w.next.records = w.last.first, w.last.objects, w.last.places, w.last.records
	err = change(w.tmp, func(f *h5.File) error {
		if err := w.check(f); err != nil {
			return err
		}
		if err := f.DeleteAttribute("/", completeAttribute); err != nil {
			return err
		}
		if err := f.Flush(); err != nil {
			return err
		}
		if w.next.places == nil {
			if w.next.places, err = statePlaces(f, &k.Layout); err != nil {
				return err
			}
		}
		if fields {
			p.Path = w.tmp
			for i := range k.Layout.Unknowns {
				if u := &k.Layout.Unknowns[i]; u.Kind == Field && k.Bundles[u.Name] == "" {
					if err := p.locate(f, u, 0); err != nil {
						return err
					}
				}
			}
		}
		return updateCheckpoint(f, k)
	})
	if err != nil {
		return place{}, err
	}
	// The library has closed the file, so it has nothing of it in memory.
	return p, w.writeState(ctx, k.State)
}

// check makes sure that a clone is what was published.
func (w *checkpointWriter) check(f *h5.File) error {
	r, err := readRoot(f)
	if err != nil {
		return err
	}
	own, err := sessionOf(w.last.k.Settings)
	if err != nil {
		return err
	}
	session, err := readSession(f)
	if err != nil {
		return err
	}
	time, err := readScalar[float64](f, "checkpoint/time")
	if err != nil {
		return err
	}
	if !r.checkpoint || session != own || time != w.last.k.Time {
		return errStale
	}
	return nil
}

// statePlaces says where a checkpoint has the state.
func statePlaces(f *h5.File, l *Layout) ([]statePlace, error) {
	places, from := []statePlace{}, 0
	for i := range l.Unknowns {
		u := &l.Unknowns[i]
		if u.Kind == Field {
			continue
		}
		list := l.datasets(u, from)
		from += l.length(u)
		for _, d := range list {
			if d.size() == 0 {
				continue
			}
			pieces, err := f.Pieces(d.path, 0, 1)
			if err != nil {
				return nil, err
			}
			if len(pieces) != 1 || pieces[0].Bytes != int64(d.size())*8 {
				return nil, fmt.Errorf("%w: %s is not in one piece", errStale, d.path)
			}
			p := statePlace{d.from, d.to, pieces[0].Offset}
			// Small datasets that were made one after the other lie so too.
			if n := len(places) - 1; n >= 0 && places[n].to == p.from && places[n].offset+int64(p.from-places[n].from)*8 == p.offset {
				places[n].to = p.to
				continue
			}
			places = append(places, p)
		}
	}
	return places, nil
}

// writeState overwrites the state.
func (w *checkpointWriter) writeState(ctx context.Context, state []float64) error {
	f, err := w.o.fsys.OpenFile(w.tmp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for _, p := range w.next.places {
		if err = ctx.Err(); err != nil {
			break
		}
		if _, err = f.WriteAt(pack.Bytes(state[p.from:p.to]), p.offset); err != nil {
			break
		}
		w.o.count((p.to - p.from) * 8)
	}
	return errors.Join(err, f.Close())
}

// updateCheckpoint overwrites what a checkpoint has beside state and fields, and what is
// the same for the whole session.
func updateCheckpoint(f *h5.File, k *Checkpoint) error {
	if k.Settings.Has(segmentSection) {
		segment, err := k.Settings.Record(segmentSection)
		if err != nil {
			return err
		}
		if err := updateRecord(f, h5.Join("settings", segmentSection), segment); err != nil {
			return err
		}
	}
	if err := overwrite(f, "time", []float64{k.Time}, 1); err != nil {
		return err
	}
	if err := overwrite(f, "checkpoint/time", []float64{k.Time}); err != nil {
		return err
	}
	if err := overwrite(f, "checkpoint/segment", []int64{int64(k.Segment)}); err != nil {
		return err
	}
	if err := overwrite(f, "checkpoint/saved_count", []int64{int64(k.SavedCount)}); err != nil {
		return err
	}
	summary, err := k.Summary.record()
	if err != nil {
		return err
	}
	if err := updateRecord(f, "checkpoint/summary", summary); err != nil {
		return err
	}
	if k.HasStepper {
		if err := updateRecord(f, "checkpoint/stepper", k.Stepper); err != nil {
			return err
		}
	}
	const updates = "checkpoint/update_states"
	names := make([]string, len(k.Updates))
	for i, u := range k.Updates {
		names[i] = u.Name
	}
	err = updateMembers(f, updates, names, func(i int, _ h5.Kind) (bool, error) {
		return h5.Overwrite(f, h5.Join(updates, names[i]), k.Updates[i].State, len(k.Updates[i].State))
	}, func(i int) error {
		return h5.Write(f, h5.Join(updates, names[i]), k.Updates[i].State, len(k.Updates[i].State))
	})
	if err != nil {
		return err
	}
	if len(k.Bundles) > 0 {
		const bundles = "checkpoint/bundles"
		names := slices.Sorted(maps.Keys(k.Bundles))
		err := updateMembers(f, bundles, names, func(i int, _ h5.Kind) (bool, error) {
			return f.OverwriteString(h5.Join(bundles, names[i]), k.Bundles[names[i]])
		}, func(i int) error {
			return f.WriteString(h5.Join(bundles, names[i]), k.Bundles[names[i]])
		})
		if err != nil {
			return err
		}
	}
	return updateNonFinite(f, k.NonFinite)
}

// overwrite is for a dataset that always has the same type and shape.
func overwrite[T h5.Element](f *h5.File, path string, v []T, shape ...int) error {
	fits, err := h5.Overwrite(f, path, v, shape...)
	if err == nil && !fits {
		err = fmt.Errorf("%w: %s has another type or shape", errStale, path)
	}
	return err
}

// updateNonFinite makes the counts of a file others; nil takes the group away.
func updateNonFinite(f *h5.File, counts map[string]int64) error {
	there, err := f.Exists(nonFiniteGroup)
	if err != nil {
		return err
	}
	if !there {
		if counts == nil {
			return nil
		}
		return writeNonFinite(f, counts)
	}
	if counts == nil {
		return f.Unlink(nonFiniteGroup)
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > 0 {
			names = append(names, name)
		}
	}
	return updateMembers(f, nonFiniteGroup, names, func(i int, _ h5.Kind) (bool, error) {
		return h5.Overwrite(f, h5.Join(nonFiniteGroup, names[i]), []int64{counts[names[i]]})
	}, func(i int) error {
		return h5.Write(f, h5.Join(nonFiniteGroup, names[i]), []int64{counts[names[i]]})
	})
}

// complete publishes the working file, to whose fields their cells have come. counts are
// what k.NonFinite has more than it had when the file was prepared. After an error there
// is no working file, unless the new checkpoint has its name.
func (w *checkpointWriter) complete(ctx context.Context, k *Checkpoint, counts map[string]int64) error {
	err := change(w.tmp, func(f *h5.File) error {
		if k.NonFinite != nil {
			if err := writeNonFinite(f, counts); err != nil {
				return err
			}
		}
		var err error
		if w.next.records, err = writeCheckpointSums(f, k, w.next.records, w.o); err != nil {
			return err
		}
		return complete(f)
	})
	if err == nil {
		err = syncFile(w.o.fsys, w.tmp)
	}
	if err == nil {
		w.next.at, err = w.o.fsys.Lstat(w.tmp)
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	if w.next.first == 0 {
		w.next.first = w.next.at.Size()
	}
	err = publishCheckpoint(ctx, w.dir, w.name, w.tmp, k.policies, w.o)
	if err == nil {
		w.last = w.next
	}
	return err
}

// discard removes the working file.
func (w *checkpointWriter) discard() error {
	if w.tmp == "" {
		return nil
	}
	return remove(w.o.fsys, w.tmp)
}
