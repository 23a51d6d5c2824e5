package publish

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Bundle is an open bundle. Its methods need no MPI, none is collective, and
// they may be called from several goroutines at the same time.
type Bundle struct {
	fsys    vfs.FS
	dir     string // as it was given, for errors
	root    string // absolute: fields are opened later; empty: as dir
	info    Info
	sums    map[string]uint64 // nil: no checksums.txt
	sidecar json.RawMessage   // nil: none

	mu     sync.Mutex
	files  map[string]vfs.File // fields that were read from, by id
	closed bool
}

// OpenOption changes how [OpenBundle] opens.
type OpenOption func(*openOptions)

type openOptions struct {
	fsys   vfs.FS
	verify context.Context // nil: don't
}

// VerifyOnOpen makes [OpenBundle] read all files and compare their checksums, as
// [Bundle.Verify] does, until ctx is cancelled.
func VerifyOnOpen(ctx context.Context) OpenOption {
	return func(o *openOptions) { o.verify = ctx }
}

// OpenBundle opens the bundle at path for reading, without MPI. It makes the
// checks of [Inspect], whose errors it wraps once, and reads the sidecar; fields are
// opened when they are first read. The caller closes the bundle.
func OpenBundle(path string, opts ...OpenOption) (*Bundle, error) {
	o := openOptions{fsys: vfs.OS}
	for _, opt := range opts {
		opt(&o)
	}
	b, err := openBundle(o.fsys, path)
	if err != nil {
		return nil, fmt.Errorf("open bundle: %w", err)
	}
	if o.verify != nil {
		if err := b.Verify(o.verify, nil); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

func openBundle(fsys vfs.FS, dir string) (*Bundle, error) {
	s, err := readStructure(fsys, dir)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	b := &Bundle{fsys: fsys, dir: dir, root: root, info: s.info, sums: s.byPath(), files: make(map[string]vfs.File)}
	if s.info.Sidecar {
		if b.sidecar, err = readSidecar(fsys, dir, b.sums); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// readSidecar reads sidecar.json and checks it against its checksum, if there is
// one.
func readSidecar(fsys vfs.FS, dir string, sums map[string]uint64) (json.RawMessage, error) {
	data, err := readSmall(fsys, dir, sidecarFile, maxSidecarBytes)
	if err != nil {
		return nil, err
	}
	if sums != nil {
		if err := checkSum(dir, sidecarFile, pack.Sum(data), sums[sidecarFile]); err != nil {
			return nil, err
		}
	}
	if !json.Valid(data) {
		return nil, &DamageError{dir, sidecarFile, "not JSON", nil}
	}
	return data, nil
}

// Path returns the path that the bundle was opened by.
func (b *Bundle) Path() string { return b.dir }

// Info returns the metadata and what else [Inspect] says.
func (b *Bundle) Info() Info { return b.info }

// Metadata returns the metadata. Its slices must not be changed.
func (b *Bundle) Metadata() Metadata { return b.info.Metadata }

// Fields returns the ids of the fields, in order.
func (b *Bundle) Fields() []string { return slices.Clone(b.info.Metadata.Fields) }

// HasChecksums reports whether the bundle has checksums. Bundles of other
// writers have none.
func (b *Bundle) HasChecksums() bool { return b.sums != nil }

// Checksum returns the recorded CRC-64/NVME of a field's file, and whether there
// is one.
func (b *Bundle) Checksum(id string) (uint64, bool) {
	crc, ok := b.sums[fieldPath(id)]
	return crc, ok
}

// Sidecar returns the content of sidecar.json, for [DecodeSidecar], and whether there is
// one.
func (b *Bundle) Sidecar() (json.RawMessage, bool) {
	return slices.Clone(b.sidecar), b.sidecar != nil
}

// Field returns the bytes of a field's file: little-endian float64, x fastest,
// the whole domain. It is valid until the bundle is closed.
func (b *Bundle) Field(id string) (*io.SectionReader, error) {
	f, err := b.open(id)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(f, 0, b.fieldBytes()), nil
}

func (b *Bundle) fieldBytes() int64 { return b.info.Metadata.Domain.Cells() * 8 }

// open returns the file of a field, which stays open until the bundle is closed.
func (b *Bundle) open(id string) (vfs.File, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, fmt.Errorf("bundle %s: %w", b.dir, fs.ErrClosed)
	}
	if f, ok := b.files[id]; ok {
		return f, nil
	}
	if !slices.Contains(b.info.Metadata.Fields, id) {
		return nil, fmt.Errorf("bundle %s: %w: %q is not among %q", b.dir, ErrNoField, id, b.info.Metadata.Fields)
	}
	f, err := b.openFile(fieldPath(id), b.fieldBytes())
	if err != nil {
		return nil, err
	}
	b.files[id] = f
	return f, nil
}

// openFile opens a file of the bundle, which must have the given size if that
// isn't negative.
func (b *Bundle) openFile(file string, size int64) (vfs.File, error) {
	root := cmp.Or(b.root, b.dir)
	if _, err := regularSize(b.fsys, root, file); errors.Is(err, fs.ErrNotExist) {
		return nil, missing(b.dir, file)
	} else if err != nil {
		return nil, err
	}
	f, err := b.fsys.OpenFile(filepath.Join(root, filepath.FromSlash(file)), os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && size >= 0 && info.Size() != size {
		err = wrongSize(b.dir, file, info.Size(), size)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Close closes the files. Calls after the first one do nothing.
func (b *Bundle) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.Close())
	}
	b.files = nil
	return errors.Join(errs...)
}
