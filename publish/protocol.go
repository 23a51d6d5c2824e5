package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
	"github.com/fieldstone-io/fieldstone/pack"
)

// publication is one run of the protocol: docs/bundle-format.md has the steps in
// words. The methods that take a context are collective and end with the same
// error on all ranks.
type publication struct {
	c         *comm.Comm
	o         options
	dir       string // the final path as the caller gave it
	final     string // absolute, and rank 0's once the inputs are agreed on
	staging   string
	fields    string
	meta      Metadata
	sidecar   []byte           // nil: none
	sums      []brick.Sum      // of the fields, nil: not known yet
	nonFinite map[string]int64 // cells of the fields that aren't finite
	checked   bool             // the fields are as they must be
	oneNode   bool             // all ranks are on one
	lock      vfs.Lock
	nonce     onedir.Nonce
	where     string // the directory that rank 0 made, "" if there is none
	marked    bool   // it has our nonce
	tried     bool   // to make it the bundle
	hook      error  // of a step's callback that panicked, until the next agreement
}

// writer puts the fields into staging. It is collective and returns the same
// error on all ranks, and the fields' sums if it knows them.
type writer func(ctx context.Context, dir string) (sums []brick.Sum, err error)

// run publishes what the ranks have agreed on: it is the protocol from top to
// bottom.
func (p *publication) run(ctx context.Context, write writer) error {
	err := p.stage(ctx)
	if err == nil {
		err = p.seenByAll(ctx)
	}
	if err == nil {
		err = p.write(ctx, write)
	}
	if err == nil {
		err = p.sum(ctx)
	}
	if err == nil {
		err = p.finite()
	}
	if err == nil {
		err = p.complete(ctx)
	}
	if err == nil {
		err = p.reveal(ctx)
	}
	if err != nil && !errors.Is(err, ErrDurabilityUnknown) {
		return p.abandon(ctx, err)
	}
	return err
}

// agree checks the inputs on all ranks and that they are the same, before
// anything is created.
func (p *publication) agree(ctx context.Context, inputs []entry, invalid error, maxima ...*int64) error {
	entries := []entry{
		{pathEntry, strconv.Quote(p.dir)},
		{"the durability", strconv.Itoa(int(p.o.durability))},
		{"the policy for cells that aren't finite", p.o.nonFinite.String()},
	}
	if invalid == nil {
		invalid = p.o.nonFinite.Check(p.meta.Fields)
	}
	if invalid == nil {
		var text []byte
		text, invalid = p.agreedMetadata()
		entries = append(entries, entry{metadataEntry, string(text)})
	}
	entries = append(entries, entry{"the sidecar", string(p.sidecar)})
	paths := onedir.NewPaths(p.final)
	maxima = append(paths.Maxima(), maxima...)
	if err := agreeInputs(ctx, p.c, invalid, append(entries, inputs...), maxima...); err != nil {
		return err
	}
	if err := paths.Settle(ctx, p.c); err != nil {
		return err
	}
	p.setFinal(paths.At(0))
	return nil
}

func (p *publication) setFinal(path string) {
	p.final, p.staging = path, path+suffixStaging
	p.fields = filepath.Join(p.staging, fieldsDir)
}

// agreedMetadata encodes what the ranks must have alike.
func (p *publication) agreedMetadata() ([]byte, error) {
	meta := p.meta
	meta.Decomposition, meta.Writer = nil, nil // rank 0's are recorded
	return EncodeMetadata(meta)
}

// onRoot runs f on rank 0 and agrees on its outcome.
func (p *publication) onRoot(ctx context.Context, f func() error) error {
	return p.c.OnRoot(ctx, p.hook, f)
}

// step reports a step. A callback that panics is this rank's error at the next
// agreement.
func (p *publication) step(s Step, detail string) {
	err := comm.Protect(func() error {
		p.o.step(s, detail)
		return nil
	})
	p.hook = cmp.Or(p.hook, err)
}

// stage takes the lock of the final path and makes a fresh staging directory. All
// ranks learn its nonce.
func (p *publication) stage(ctx context.Context) error {
	err := p.hook
	if err == nil && p.c.Rank() == 0 {
		err = cmp.Or(comm.Protect(waiting.Step(ctx, "make", "the staging directory", p.claim)), p.hook)
	}
	words := p.nonce.Words(p.c.Rank() == 0)
	if err := p.c.AgreeMax(ctx, err, words); err != nil {
		return err
	}
	p.nonce.Set(words)
	return nil
}

func (p *publication) mustNotExist() error {
	exists, err := vfs.Exists(p.o.fs, p.final)
	if err == nil && exists {
		err = ErrExists
	}
	return err
}

// seenByAll makes one rank of each node but that of rank 0 find its nonce, so that
// a path that is local to a node is found before anything is written to it.
func (p *publication) seenByAll(ctx context.Context) error {
	several, err := p.o.look.EachNode(ctx, p.c, "the staging directory that rank 0 made",
		func() error { return p.checkNonce(p.staging) })
	if err != nil {
		return err
	}
	p.oneNode = !several
	p.step(StepStaged, p.staging)
	return nil
}

func (p *publication) write(ctx context.Context, write writer) error {
	sums, err := write(ctx, p.fields)
	if err != nil {
		return err
	}
	p.sums = sums
	p.step(StepWritten, p.fields)
	return nil
}

// sum makes the sums of fields that a callback wrote, after a look at them.
func (p *publication) sum(ctx context.Context) error {
	if p.sums != nil {
		return nil
	}
	if err := p.onRoot(ctx, waiting.Step(ctx, "check", "the fields", p.checkFields)); err != nil {
		return err
	}
	if p.o.durability == Full {
		if err := brick.Durable(onedir.Checked(ctx), p.c, p.o.fs, p.paths()); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
	}
	var err error
	p.sums, err = brick.Checksums(onedir.Checked(ctx), p.c, p.o.fs, p.paths(), p.meta.Domain.Cells()*8)
	p.checked = true
	return err
}

// complete puts beside the fields what describes them, while all ranks of the node
// look at the fields themselves: what would not load is not published. Then staging
// is what the bundle will be, and durable but for its own entries, which follow when
// its nonce is gone.
func (p *publication) complete(ctx context.Context) error {
	err := p.hook
	if err == nil && !p.checked {
		err = comm.Protect(waiting.Step(ctx, "check", "the fields", func() error { return p.blame(p.checkShare()) }))
	}
	return p.c.OnRoot(ctx, err, waiting.Step(ctx, "write", "what describes the fields", func() error {
		if !p.checked {
			if err := p.blame(p.checkNames()); err != nil {
				return err
			}
		}
		if err := p.describe(); err != nil {
			return err
		}
		if p.o.durability == Full {
			if err := p.o.fs.SyncDir(p.fields); err != nil {
				return fmt.Errorf("sync: %w", err)
			}
		}
		p.step(StepSynced, p.staging)
		return p.hook
	}))
}

// describe writes metadata, sidecar and checksums.
func (p *publication) describe() error {
	meta := p.meta
	meta.Writer = &Writer{Version: Version, Created: time.Now().UTC().Truncate(time.Second), NonFinite: p.nonFinite}
	text, err := EncodeMetadata(meta)
	if err != nil {
		return err
	}
	if err := p.put(metadataFile, text); err != nil {
		return err
	}
	sums := []fileChecksum{{metadataFile, pack.Sum(text)}}
	if p.sidecar != nil {
		if err := p.put(sidecarFile, p.sidecar); err != nil {
			return err
		}
		sums = append(sums, fileChecksum{sidecarFile, pack.Sum(p.sidecar)})
	}
	p.step(StepMetadata, p.staging)
	for i, id := range p.meta.Fields {
		sums = append(sums, fileChecksum{fieldPath(id), p.sums[i].CRC})
	}
	if err := p.put(checksumsFile, formatChecksums(sums)); err != nil {
		return err
	}
	p.step(StepChecksums, p.staging)
	return nil
}

func (p *publication) put(name string, data []byte) error {
	err := vfs.WriteFile(p.o.fs, filepath.Join(p.staging, name), data, 0o666, p.o.durability == Full)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// checkFields looks whether staging holds exactly the listed fields, each of the
// right size.
func (p *publication) checkFields() error {
	for _, id := range p.meta.Fields {
		if err := p.checkField(id); err != nil {
			return err
		}
	}
	return p.checkNames()
}

// checkShare looks at this rank's share of the fields, as many as there are when all
// ranks are on one node; other nodes may know sizes of long ago. Rank 0 has more to
// do than the others.
func (p *publication) checkShare() error {
	first, step := p.c.Rank()-1, p.c.Size()-1
	if !p.oneNode || step == 0 {
		if p.c.Rank() > 0 {
			return nil
		}
		first, step = 0, 1
	}
	if first < 0 {
		return nil
	}
	for i := first; i < len(p.meta.Fields); i += step {
		if err := p.checkField(p.meta.Fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// blame says that staging isn't ours any more, where that explains an error.
func (p *publication) blame(err error) error {
	if err == nil {
		return nil
	}
	if taken := p.checkNonce(p.staging); errors.Is(taken, ErrTakenOver) {
		return taken
	}
	return err
}

func (p *publication) checkField(id string) error {
	size := p.meta.Domain.Cells() * 8
	info, err := p.o.fs.Lstat(filepath.Join(p.fields, id+fieldSuffix))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("field %q was not written: %w", id, err)
	case err != nil:
		return fmt.Errorf("field %q: %w", id, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("field %q: %s is not a regular file", id, info.Name())
	case info.Size() != size:
		return fmt.Errorf("field %q: %w", id, &brick.SizeError{Path: info.Name(), Got: info.Size(), Want: size})
	}
	return nil
}

// checkNames looks whether staging holds nothing but the listed fields, and what
// other programs leave beside files.
func (p *publication) checkNames() error {
	listed := make(map[string]bool, len(p.meta.Fields))
	for _, id := range p.meta.Fields {
		listed[id+fieldSuffix] = true
	}
	entries, err := p.o.fs.ReadDir(p.fields)
	if err != nil {
		return err
	}
	present := make(map[string]bool, len(entries))
	for _, e := range entries {
		present[e.Name()] = true
	}
	for _, id := range p.meta.Fields {
		if !present[id+fieldSuffix] {
			// It is there: then it has another field's file, or the list is behind.
			if err := vfs.Distinct(p.o.fs, p.paths()); errors.Is(err, vfs.ErrOneFile) {
				return inputError(err)
			}
			break
		}
	}
	for _, e := range entries {
		if !listed[e.Name()] && !isLitter(e.Name()) {
			return fmt.Errorf("%s/%s is not one of the fields that the metadata lists", fieldsDir, e.Name())
		}
	}
	return nil
}

func (p *publication) paths() []string {
	paths := make([]string, len(p.meta.Fields))
	for i, id := range p.meta.Fields {
		paths[i] = filepath.Join(p.fields, id+fieldSuffix)
	}
	return paths
}

// reveal renames staging to the final path. From the rename on the bundle stays,
// so a cancelled context doesn't count any more.
func (p *publication) reveal(ctx context.Context) error {
	var err error
	if p.c.Rank() == 0 {
		err = comm.Protect(waiting.Step(ctx, "rename", "the bundle into place", p.putInPlace))
		switch {
		case errors.Is(err, ErrDurabilityUnknown):
			p.unlock()
		case err == nil && p.o.after != nil:
			p.o.after(ctx)
		}
		if p.hook != nil {
			p.o.log.Warn("the callback of a step panicked after the rename", "path", p.final, "error", p.hook)
		}
	}
	return p.c.Agree(context.WithoutCancel(ctx), err)
}

// putInPlace runs on rank 0. Up to the rename it fails without a trace; then it
// can only fail with ErrDurabilityUnknown, or with ErrMaybePublished.
func (p *publication) putInPlace() error {
	if err := p.setApart(); err != nil {
		return err
	}
	p.tried = true
	err := vfs.MoveNoReplace(p.o.fs, p.where, p.final)
	switch {
	case errors.Is(err, vfs.ErrUnclear):
		p.where = "" // it may lead to the bundle
		return fmt.Errorf("%w: %w", ErrMaybePublished, err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%w: %w", ErrExists, err)
	case err != nil:
		return fmt.Errorf("rename: %w", err)
	}
	p.where = ""
	p.step(StepRenamed, p.final)
	if p.o.durability == Full {
		if err := p.o.fs.SyncDir(filepath.Dir(p.final)); err != nil {
			return fmt.Errorf("%w: %w", ErrDurabilityUnknown, err)
		}
	}
	p.unlock()
	p.step(StepPublished, p.final)
	return nil
}

// abandon removes what this publication made and returns err, on all ranks after
// rank 0 is done with it.
func (p *publication) abandon(ctx context.Context, err error) error {
	var left error
	if p.c.Rank() == 0 {
		left = comm.Protect(waiting.Step(ctx, "remove", "the staging directory", p.discard))
		p.unlock()
	}
	if errors.Is(err, comm.ErrDead) {
		return err
	}
	if left := p.c.Agree(context.WithoutCancel(ctx), left); left != nil {
		return fmt.Errorf("%w (and the staging directory stays: %w)", err, left)
	}
	return err
}

// newPublication settles the paths. The final path is made absolute: it is rank 0's that
// counts, and a change of the working directory in a callback changes nothing.
func newPublication(c *comm.Comm, dir string, meta Metadata, o options) (*publication, error) {
	p := &publication{c: c, o: o, dir: dir, meta: meta}
	if dir == "" {
		return p, errors.New("the path is empty")
	}
	if strings.ContainsRune(dir, 0) {
		return p, fmt.Errorf("path %q has a NUL character", dir)
	}
	final, err := filepath.Abs(dir)
	if err != nil {
		return p, fmt.Errorf("path %q: %w", dir, err)
	}
	p.setFinal(final)
	name := filepath.Base(final)
	switch {
	case name == string(filepath.Separator):
		return p, fmt.Errorf("path %q is the root directory", dir)
	case !vfs.IsFileName(name):
		return p, fmt.Errorf("path %q: this system has no directory of the name %q", dir, name)
	case len(name)+longestSuffix > maxNameBytes:
		return p, fmt.Errorf("path %q: the last element has %d bytes, at most %d leave room for the staging directory",
			dir, len(name), maxNameBytes-longestSuffix)
	}
	return p, nil
}

// Directory publishes a bundle whose fields the caller writes. It is collective.
//
// write runs on every rank and receives the staging directory for the fields;
// it puts there one file <id>.bin for each id of meta.Fields, float64, x
// fastest, exactly the domain's cells. When it returns an error or panics on any
// rank, nothing is published, and all ranks return the same error. The checksums
// are computed from the files. All ranks give the same path and metadata, but for
// Decomposition, of which rank 0's is recorded; format version and writer are
// filled in. A relative path is relative to the working directory of rank 0, and a node
// that doesn't see rank 0's staging directory there is an error that names it, before
// write is called.
//
// Directory fails with [ErrExists] when anything is at dir, [ErrBeingPublished]
// when another job publishes there, [ErrTakenOver] when another job got hold of
// the staging directory, [ErrInput] when the inputs are invalid or differ between
// ranks, [ErrNonFinite] when cells are NaN or infinite and [NonFinite] refuses them, and [ErrDurabilityUnknown] when the bundle is in place but the last fsync
// failed. In all cases except the last, dir has no bundle of ours. Nothing is said about dir
// when a rank is missing ([comm.ErrDead]), and when the rename itself failed in a way that
// leaves open whether it was carried out ([ErrMaybePublished]).
func Directory(ctx context.Context, c *comm.Comm, dir string, meta Metadata,
	write func(ctx context.Context, fieldsDir string) error, opts ...Option) error {
	ctx = waiting.Named(ctx, "Directory")
	o, err := newOptions(opts)
	p, perr := newPublication(c, dir, meta, o)
	p.meta.FormatVersion, p.meta.Writer = formatVersion, nil
	err = cmp.Or(err, perr, p.meta.Validate())
	sidecar, serr := encodeSidecar(o.sidecar, maxSidecarBytes)
	p.sidecar = sidecar
	err = cmp.Or(err, serr)
	if write == nil {
		err = cmp.Or(err, errors.New("no function writes the fields"))
	}
	if err := p.agree(ctx, nil, err); err != nil {
		return named("publish", dir, err)
	}
	work, end := o.atWork(ctx, c, "publish", dir)
	defer end()
	err = p.run(work, func(_ context.Context, dir string) ([]brick.Sum, error) {
		// The caller's part: who hangs in it doesn't come.
		return nil, c.Agree(ctx, comm.Protect(func() error { return write(ctx, dir) }))
	})
	return named("publish", dir, err)
}

// encodeSidecar turns the caller's value into the bytes of sidecar.json, at most
// as many as readers take.
func encodeSidecar(v any, limit int) (text []byte, err error) {
	if v == nil {
		return nil, nil
	}
	err = comm.Protect(func() error {
		text, err = marshalSidecar(v)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	if text = append(text, '\n'); len(text) > limit {
		return nil, fmt.Errorf("sidecar: %d bytes of JSON, at most %d are read", len(text), limit)
	}
	if err := strictjson.Check(text); err != nil {
		return nil, fmt.Errorf("sidecar: %w", err)
	}
	return text, nil
}
