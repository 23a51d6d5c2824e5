package brick

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// mostKept are the files that a rank keeps open between creating and writing them.
const mostKept = 128

// made are files that this rank has created and not opened for writing yet.
type made struct {
	mu    sync.Mutex
	files map[int]vfs.File
}

// keep takes a file over unless there are enough.
func (m *made) keep(i int, f vfs.File) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.files) == mostKept {
		return false
	}
	if m.files == nil {
		m.files = make(map[int]vfs.File)
	}
	m.files[i] = f
	return true
}

// take gives a file to the caller, nil if it isn't there.
func (m *made) take(i int) vfs.File {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[i]
	delete(m.files, i)
	return f
}

// close closes what nobody took.
func (m *made) close(jobs []job) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, f := range m.files {
		err = also(err, jobs[i].fail("write", f.Close()))
	}
	clear(m.files)
	return err
}

// make creates the files, on all ranks or on none, and finds out when two paths lead to one.
func (p *Plan) make(ctx context.Context, jobs []job) error {
	made := p.makeFiles(ctx, jobs)
	if made != nil && !errors.Is(made, ErrSize) {
		return made
	}
	list := files(jobs)
	paths := make([]string, len(list))
	for i, j := range list {
		paths[i] = j.Path
	}
	if !vfs.MayBeOne(paths) { // the same on all ranks, as the paths are
		return made
	}
	// Two ranks that make one file may meet the other's size in it: that says less.
	var err error
	if p.c.Rank() == 0 {
		step := waiting.Doing(ctx, "look at", "the files")
		if err = vfs.Distinct(p.opt.fs, paths); err != nil {
			err = fmt.Errorf("write bricks: %w", err)
		}
		step.End()
	}
	err = p.c.Agree(ctx, err)
	if made != nil && !errors.Is(err, vfs.ErrOneFile) {
		return made
	}
	return err
}

// makeFiles creates the files, on all ranks or on none. Where the ranks are on several nodes
// it makes sure that each node sees what rank 0 made, before anything is written there:
// rank 0 leaves a nonce where each array begins, which the array then replaces.
func (p *Plan) makeFiles(ctx context.Context, jobs []job) error {
	several, looks := false, false
	look := onedir.From(ctx)
	if p.drv.name() != Node && !onedir.IsChecked(ctx) {
		var err error
		if several, looks, err = look.Nodes(ctx, p.c.Comm); err != nil {
			return err
		}
	}
	if !several {
		return p.c.Agree(ctx, p.create(ctx, jobs, nil))
	}
	var nonce onedir.Nonce
	var err error
	if p.c.Rank() == 0 {
		nonce, err = onedir.NewNonce()
	}
	if err == nil {
		err = p.create(ctx, jobs, &nonce)
	}
	words := nonce.Words(p.c.Rank() == 0)
	if err := p.c.AgreeMax(ctx, err, words); err != nil {
		return err
	}
	nonce.Set(words)
	if looks {
		err = look.Await(ctx, "what rank 0 made", func() error {
			return eachFile(ctx, "write", jobs, p.workers, func(_ int, j job) error { return p.findMark(j, &nonce) })
		})
	}
	return p.c.Agree(ctx, err)
}

// markSize is how much of the nonce an array has room for.
func (p *Plan) markSize() int64 { return min(p.FileSize(), int64(len(onedir.Nonce{}))) }

// errOther says that a file is there, and not the one that rank 0 made.
var errOther = errors.New("it is another file")

func (p *Plan) findMark(j job, nonce *onedir.Nonce) error {
	f, err := p.opt.fs.OpenFile(j.Path, os.O_RDONLY|vfs.NoWait, 0)
	if err != nil {
		return err
	}
	found := make([]byte, p.markSize())
	if err = hasSize(f, j, p.FileSize()); err == nil {
		err = vfs.ReadFull(f, found, j.Offset)
	}
	if err == nil && string(found) != string(nonce[:len(found)]) {
		err = errOther
	}
	return also(err, f.Close())
}

// create creates the files and allocates their space: on rank 0, for other nodes may
// see what it made only after a while, and on all ranks of one node together. A rank
// keeps files open that it will write itself. Files of parts are there already: the
// rank of the first part allocates the space of all of them. With a nonce each array
// begins with it.
func (p *Plan) create(ctx context.Context, jobs []job, nonce *onedir.Nonce) error {
	numbers := p.creates(len(jobs))
	parts := partsOf(jobs)
	if parts != nil {
		numbers = slices.DeleteFunc(numbers, func(i int) bool { return jobs[i].Within && parts[jobs[i].Path][0] != i })
	}
	mine := make([]job, len(numbers))
	for n, i := range numbers {
		mine[n] = jobs[i]
	}
	keep := p.drv.name() != MPIIO && nonce == nil
	return eachFile(ctx, "write", mine, p.workers, func(n int, j job) error {
		flag := os.O_CREATE | os.O_TRUNC
		if j.Within {
			flag = 0
		}
		// A FIFO would wait for its reader without NoWait.
		f, err := p.opt.fs.OpenFile(j.Path, os.O_WRONLY|flag|vfs.NoWait, 0o666)
		if err != nil {
			return err
		}
		if err = hasSize(f, j, 0); err == nil { // a device or a FIFO would fail in other ways
			err = p.allocate(f, jobs, numbers[n], parts)
		}
		if err == nil && nonce != nil {
			err = p.mark(f, jobs, numbers[n], parts, nonce)
		}
		if err == nil && keep && p.made.keep(numbers[n], f) {
			return nil
		}
		return also(err, f.Close())
	})
}

// allocate allocates the space of a file, or of all parts of one.
func (p *Plan) allocate(f vfs.File, jobs []job, i int, parts map[string][]int) error {
	if !jobs[i].Within {
		return f.Allocate(p.FileSize())
	}
	for _, k := range parts[jobs[i].Path] {
		if err := allocatePart(f, jobs[k].Offset, p.FileSize()); err != nil {
			return err
		}
	}
	return nil
}

// mark puts the nonce where the array of a file begins, or all parts of one.
func (p *Plan) mark(f vfs.File, jobs []job, i int, parts map[string][]int, nonce *onedir.Nonce) error {
	list := []int{i}
	if jobs[i].Within {
		list = parts[jobs[i].Path]
	}
	for _, k := range list {
		if _, err := f.WriteAt(nonce[:p.markSize()], jobs[k].Offset); err != nil {
			return err
		}
	}
	return nil
}

// partsOf are the jobs of each path that has parts; nil if there are none.
func partsOf(jobs []job) map[string][]int {
	var parts map[string][]int
	for i, j := range jobs {
		if !j.Within {
			continue
		}
		if parts == nil {
			parts = make(map[string][]int)
		}
		parts[j.Path] = append(parts[j.Path], i)
	}
	return parts
}

// creates are the files that this rank creates: those that it writes first.
func (p *Plan) creates(files int) []int {
	rank, ranks := p.c.Rank(), p.c.Size()
	if p.drv.name() != Node {
		if rank > 0 {
			return nil
		}
		rank, ranks = 0, 1
	}
	var mine []int
	if p.throughWindow(files) {
		elem := int64(p.elem.Size())
		s := newSchedule(files, ranks, p.FileSize()/elem, p.slot/elem)
		for i := range files {
			if s.writer(i) == rank {
				mine = append(mine, i)
			}
		}
		return mine
	}
	for i := files * rank / ranks; i < files*(rank+1)/ranks; i++ {
		mine = append(mine, i)
	}
	return mine
}

// open opens a file for writing or reading, unless this rank has it open already. The
// file of a part that is written has room for it by now: one that hasn't is another one.
func (p *Plan) open(ctx context.Context, i int, j job, flag int) (cellFile, error) {
	if _, ok := p.drv.(mpiio); ok {
		return p.openMPI(ctx, j, flag)
	}
	if f := p.made.take(i); f != nil {
		return f, nil
	}
	return p.openSized(ctx, j, flag, j.Within && flag != os.O_RDONLY)
}

// openSized opens a file, which must have room for the array if that is asked for. Where the
// ranks are on several nodes, this one may still see the size from before rank 0 made room:
// it looks again then.
func (p *Plan) openSized(ctx context.Context, j job, flag int, sized bool) (vfs.File, error) {
	pause := pauseOf(ctx)
	for again := 0; ; again++ {
		f, err := p.opt.fs.OpenFile(j.Path, flag, 0)
		if err != nil || !sized {
			return f, err
		}
		if err = hasSize(f, j, p.FileSize()); err == nil {
			return f, nil
		}
		err = also(err, f.Close())
		if p.oneNode || again == readsAgain || !errors.Is(err, ErrSize) {
			return nil, err
		}
		waiting.Rest(ctx, pause)
		pause *= 4
	}
}
