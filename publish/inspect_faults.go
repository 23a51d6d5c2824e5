package publish

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Faults looks for everything that is wrong with the bundle at dir: it reads all
// files in a stream and goes on after a damaged one, where [Inspect] and
// [Bundle.Verify] stop. It returns one fault for each damaged file, and none for
// a good bundle. Of a bundle of another writer without checksums only the structure
// and the sizes can be checked; Info tells. It isn't collective.
//
// With metadata that aren't the ones that were published, the grid isn't known:
// the files are then compared with their checksums only.
//
// The error is not about damage: it matches [ErrNotABundle] where there is no
// bundle, [ErrVersion] for one of an unknown format version, and otherwise says
// why something can't be read.
//
// progress, if not nil, is called after each piece with the file that is being
// read and the number of bytes of all files that are done and to be done.
func Faults(ctx context.Context, dir string, progress func(file string, done, total int64)) (Info, []*DamageError, error) {
	f := &faultFinder{bundle: &Bundle{fsys: vfs.OS, dir: dir}, of: make(map[string]bool)}
	err := f.run(ctx, progress)
	return f.info, f.faults, err
}

type faultFinder struct {
	bundle *Bundle
	info   Info
	faults []*DamageError
	of     map[string]bool // files that have a fault

	trusted bool             // the metadata are readable, and those that were published
	sizes   map[string]int64 // of the files whose contents are to be verified
	order   []string         // of the same
}

// keep records a fault, the first one of its file. It returns other errors.
func (f *faultFinder) keep(err error) error {
	var fault *DamageError
	if !errors.As(err, &fault) {
		return err
	}
	if !f.of[fault.File] {
		f.of[fault.File] = true
		f.faults = append(f.faults, fault)
	}
	return nil
}

func (f *faultFinder) run(ctx context.Context, progress func(file string, done, total int64)) error {
	for _, step := range []func() error{f.metadata, f.sidecar, f.fields} {
		if err := step(); err != nil {
			return err
		}
	}
	return f.contents(ctx, progress)
}

// metadata reads metadata.json and checksums.txt.
func (f *faultFinder) metadata() error {
	b := f.bundle
	m, text, broken := readMetadata(b.fsys, b.dir)
	unknown := errors.Is(broken, ErrVersion)
	if !unknown {
		if err := f.keep(broken); err != nil {
			return err
		}
	}
	f.info.Metadata = m
	f.info.Bytes += int64(len(text))
	list, err := readChecksums(b.fsys, b.dir, &f.info)
	if kept := f.keep(err); kept != nil {
		return kept
	}
	if err := f.keep(f.info.checkComplete(b.dir)); err != nil {
		return err
	}
	published := true
	if f.info.Checksums && err == nil {
		b.sums = structure{info: f.info, sums: list}.byPath()
		if want, listed := b.sums[metadataFile]; !listed {
			f.unlisted(metadataFile)
		} else if err := checkSum(b.dir, metadataFile, pack.Sum(text), want); err != nil && text != nil {
			published = false
			if err := f.keep(err); err != nil {
				return err
			}
		}
	}
	if unknown && published {
		return broken
	}
	f.trusted = broken == nil && published
	return nil
}

func (f *faultFinder) unlisted(file string) {
	_ = f.keep(&DamageError{f.bundle.dir, checksumsFile, file + " is not listed", nil})
}

// size finds out the size of a file that should be there.
func (f *faultFinder) size(file string) (size int64, ok bool, err error) {
	b := f.bundle
	size, err = regularSize(b.fsys, b.dir, file)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing(b.dir, file)
	}
	if err != nil {
		return 0, false, f.keep(err)
	}
	f.info.Bytes += size
	if _, listed := b.sums[file]; b.sums != nil && !listed {
		f.unlisted(file)
	}
	return size, true, nil
}

func (f *faultFinder) sidecar() error {
	b := f.bundle
	there, err := vfs.Exists(b.fsys, filepath.Join(b.dir, sidecarFile))
	if err != nil {
		return err
	}
	_, listed := b.sums[sidecarFile]
	if !there && !listed {
		return nil
	}
	_, ok, err := f.size(sidecarFile)
	if err != nil || !ok {
		return err
	}
	f.info.Sidecar = true
	sums := b.sums
	if !listed {
		sums = nil
	}
	_, err = readSidecar(b.fsys, b.dir, sums)
	return f.keep(err)
}

// fields looks at the sizes of the fields' files.
func (f *faultFinder) fields() error {
	b := f.bundle
	info, err := b.fsys.Lstat(filepath.Join(b.dir, fieldsDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.keep(&DamageError{b.dir, fieldsDir, "the directory is missing", fs.ErrNotExist})
	case err != nil:
		return err
	case !info.IsDir():
		return f.keep(&DamageError{b.dir, fieldsDir, "not a directory", nil})
	}
	f.sizes = make(map[string]int64)
	for _, file := range f.files() {
		size, ok, err := f.size(file)
		if err != nil {
			return err
		}
		if want := f.info.Metadata.Domain.Cells() * 8; ok && f.trusted && size != want {
			_ = f.keep(wrongSize(b.dir, file, size, want))
			ok = false
		}
		if _, listed := b.sums[file]; ok && listed {
			f.sizes[file] = size
			f.order = append(f.order, file)
		}
	}
	if f.trusted {
		if err := f.keep(f.info.Metadata.checkAnyField(b.dir)); err != nil {
			return err
		}
		f.info.Unlisted, err = unlisted(b.fsys, b.dir, f.info.Metadata.Fields)
	}
	return err
}

// files lists the files of the fields: those of the metadata, if these can be
// trusted, otherwise those that have checksums.
func (f *faultFinder) files() []string {
	var files []string
	known := make(map[string]bool)
	if f.trusted {
		for _, id := range f.info.Metadata.Fields {
			files = append(files, fieldPath(id))
			known[fieldPath(id)] = true
		}
	}
	for _, file := range slices.Sorted(maps.Keys(f.bundle.sums)) {
		switch {
		case known[file] || !strings.HasPrefix(file, fieldsDir+"/"):
		case f.trusted:
			_ = f.keep(&DamageError{f.bundle.dir, checksumsFile, file + " is listed and is not a file of the bundle", nil})
		default:
			files = append(files, file)
		}
	}
	return files
}

// contents compares the checksums of the fields.
func (f *faultFinder) contents(ctx context.Context, progress func(file string, done, total int64)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var done, total int64
	for _, size := range f.sizes {
		total += size
	}
	buffer := make([]byte, readBuffer)
	for _, file := range f.order {
		start := done
		err := f.bundle.verifyFile(ctx, file, f.sizes[file], buffer, func(n int64) {
			done += n
			if progress != nil {
				progress(file, done, total)
			}
		})
		if err := f.keep(err); err != nil {
			return err
		}
		done = start + f.sizes[file]
	}
	return nil
}
