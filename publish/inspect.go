package publish

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// DamageError names a file that doesn't fit the rest of its bundle. It matches
// [ErrDamaged], and what Err matches.
type DamageError struct {
	// Bundle is the path of the bundle, File the path of the file in it, with
	// slashes.
	Bundle, File string
	// Reason says what is wrong with the file.
	Reason string
	// Err is the kind of the fault: wraps [ErrChecksum], [ErrMetadata] or
	// [fs.ErrNotExist], or is nil where there is nothing more to say.
	Err error
}

func (e *DamageError) Error() string {
	return filepath.Join(e.Bundle, filepath.FromSlash(e.File)) + ": " + e.Reason
}

// Unwrap returns Err, which may be nil.
func (e *DamageError) Unwrap() error { return e.Err }

// Is makes the error match ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// BundleError is an error about a bundle that can't be judged: at its path is none, or
// its metadata are of an unknown version.
type BundleError struct {
	// Bundle is the path of the bundle, File the path of the file in it that is the
	// reason, with slashes; empty where it is the bundle as a whole.
	Bundle, File string
	// Err is the reason: it wraps [ErrNotABundle] or [ErrVersion].
	Err error
}

func (e *BundleError) Error() string {
	path := e.Bundle
	if e.File != "" {
		path = filepath.Join(path, filepath.FromSlash(e.File))
	}
	return path + ": " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *BundleError) Unwrap() error { return e.Err }

// Info is what can be seen of a bundle without reading its fields.
type Info struct {
	// Metadata are those of the bundle. They are zero if metadata.json couldn't
	// be read.
	Metadata Metadata
	// Checksums tells whether there is a checksums.txt, Sidecar whether there is
	// a sidecar.json.
	Checksums, Sidecar bool
	// Bytes is the size of all files of the bundle together.
	Bytes int64
	// Unlisted are the files fields/*.bin, with slashes and sorted, that are none
	// of the bundle's fields: the metadata don't list them, and no reader sees
	// them. They are no damage.
	Unlisted []string
}

// Inspect looks at the structure of the bundle at dir without reading its
// fields: that the metadata are readable and, where there are checksums, the
// ones that were published; that the files that the metadata list are there,
// each of exactly the size of the grid; and that checksums.txt lists exactly
// the files of the bundle. A bundle that Fieldstone wrote has checksums: without
// them it is an incomplete copy. Those of other writers may have none. Files that
// neither names are ignored, except for [Info].Unlisted. It isn't collective.
//
// The error is a [*DamageError] for a bundle in which something doesn't fit; it
// matches [ErrNotABundle] where there is no bundle, [ErrVersion] for one of an
// unknown format version, both as a [*BundleError], and [fs.ErrNotExist] where there
// is nothing. Info has what could be read nevertheless.
func Inspect(dir string) (Info, error) {
	s, err := readStructure(vfs.OS, dir)
	return s.info, err
}

// ReadMetadata reads the metadata of the bundle at dir. A version 1 whose list of
// fields is missing or empty has the names of fields/*.bin, sorted; those that begin
// with "._" or ".#" are files of other programs. It isn't collective. It looks at metadata.json alone: neither its checksum nor the
// fields are checked, which [Inspect] and [OpenBundle] do. Errors name the file
// and the key.
func ReadMetadata(dir string) (Metadata, error) {
	m, _, err := readMetadata(vfs.OS, dir)
	return m, err
}

// structure is a bundle whose parts fit together, as far as that shows without
// reading fields.
type structure struct {
	info Info
	// text is the content of metadata.json.
	text []byte
	// sums are what checksums.txt lists, if info.Checksums is set.
	sums []fileChecksum
}

func readStructure(fsys vfs.FS, dir string) (s structure, err error) {
	// The checksum comes before what the metadata say: a digit that flipped in
	// the version or in the grid would accuse a good file.
	var unreadable error
	s.info.Metadata, s.text, unreadable = readMetadata(fsys, dir)
	if s.text == nil {
		return s, unreadable
	}
	if unreadable != nil && !errors.Is(unreadable, ErrVersion) {
		return s, unreadable
	}
	s.sums, err = readChecksums(fsys, dir, &s.info)
	if err == nil {
		err = s.info.checkComplete(dir)
	}
	if err == nil {
		err = s.checkMetadata(dir)
	}
	if unreadable != nil && !errors.Is(err, ErrChecksum) {
		// A later version may have checksums of another form: they don't count.
		err = unreadable
	}
	if err != nil {
		return s, err
	}
	files := []string{metadataFile}
	s.info.Bytes += int64(len(s.text))

	size, err := regularSize(fsys, dir, sidecarFile)
	switch {
	case err == nil:
		s.info.Sidecar = true
		s.info.Bytes += size
		files = append(files, sidecarFile)
	case !errors.Is(err, fs.ErrNotExist):
		return s, err
	}

	// A field is opened by its name, so the directory must not be a link to
	// somewhere else either.
	fields, err := fsys.Lstat(filepath.Join(dir, fieldsDir))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s, &DamageError{dir, fieldsDir, "the directory is missing", fs.ErrNotExist}
	case err != nil:
		return s, err
	case !fields.IsDir():
		return s, &DamageError{dir, fieldsDir, "not a directory", nil}
	}
	if err := s.info.Metadata.checkAnyField(dir); err != nil {
		return s, err
	}
	want := s.info.Metadata.Domain.Cells() * 8
	for _, id := range s.info.Metadata.Fields {
		path := fieldPath(id)
		size, err := regularSize(fsys, dir, path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return s, missing(dir, path)
		case err != nil:
			return s, err
		case size != want:
			return s, wrongSize(dir, path, size, want)
		}
		s.info.Bytes += size
		files = append(files, path)
	}
	if err := s.checkSums(dir, files); err != nil {
		return s, err
	}
	s.info.Unlisted, err = unlisted(fsys, dir, s.info.Metadata.Fields)
	return s, err
}

// checkComplete says that a bundle of ours without checksums is an incomplete copy:
// its sizes say too little, as copies may be preallocated.
func (i Info) checkComplete(dir string) error {
	if i.Checksums || i.Metadata.Writer == nil {
		return nil
	}
	return &DamageError{dir, checksumsFile, fmt.Sprintf("the file is missing: Fieldstone published this bundle with it, so the copy is incomplete; "+
		"copy it again (without the key %q in %s it counts as another writer's, and is judged by its sizes)", keyWriter, metadataFile), fs.ErrNotExist}
}

// checkAnyField says that the directory of a version 1 that lists no fields has none:
// such a bundle can't say that it is to have none.
func (m Metadata) checkAnyField(dir string) error {
	if m.FormatVersion != 1 || len(m.Fields) > 0 {
		return nil
	}
	return &DamageError{dir, fieldsDir, "no field: the metadata list none, and no file *" + fieldSuffix + " is there", fs.ErrNotExist}
}

// byPath returns nil for a bundle without checksums.
func (s structure) byPath() map[string]uint64 {
	if !s.info.Checksums {
		return nil
	}
	sums := make(map[string]uint64, len(s.sums))
	for _, f := range s.sums {
		sums[f.Path] = f.CRC
	}
	return sums
}

func missing(dir, file string) error {
	return &DamageError{dir, file, "the file is missing", fs.ErrNotExist}
}

func wrongSize(dir, file string, size, want int64) error {
	return &DamageError{dir, file, fmt.Sprintf("%d bytes, the grid needs exactly %d", size, want), nil}
}

// checkSums compares the list of checksums with the files of the bundle.
func (s structure) checkSums(dir string, files []string) error {
	if !s.info.Checksums {
		return nil
	}
	sums := s.byPath()
	have := make(map[string]bool, len(files))
	for _, path := range files {
		have[path] = true
		if _, ok := sums[path]; !ok {
			return &DamageError{dir, checksumsFile, path + " is not listed", nil}
		}
	}
	for _, f := range s.sums {
		switch {
		case have[f.Path]:
		case f.Path == sidecarFile:
			return missing(dir, f.Path)
		default:
			return &DamageError{dir, checksumsFile, f.Path + " is listed and is not a file of the bundle", nil}
		}
	}
	return nil
}

// checkMetadata compares the metadata with their checksum, where there is one.
func (s structure) checkMetadata(dir string) error {
	for _, f := range s.sums {
		if f.Path == metadataFile {
			return checkSum(dir, metadataFile, pack.Sum(s.text), f.CRC)
		}
	}
	return nil
}

func checkSum(dir, file string, got, want uint64) error {
	if got == want {
		return nil
	}
	return &DamageError{dir, file, fmt.Sprintf("%v: %016x is recorded, the file has %016x", ErrChecksum, want, got), ErrChecksum}
}

// readMetadata also returns the bytes of the file.
func readMetadata(fsys vfs.FS, dir string) (Metadata, []byte, error) {
	info, err := fsys.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(vfs.CheckLink(fsys, dir), err)
	}
	if err != nil {
		return Metadata{}, nil, err
	}
	if !info.IsDir() {
		return Metadata{}, nil, &BundleError{dir, "", fmt.Errorf("%w: not a directory", ErrNotABundle)}
	}
	data, err := readSmall(fsys, dir, metadataFile, maxMetadataBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return Metadata{}, nil, &BundleError{dir, "", fmt.Errorf("%w: no %s", ErrNotABundle, metadataFile)}
	}
	if err != nil {
		return Metadata{}, nil, err
	}
	m, err := ParseMetadata(data)
	switch {
	case errors.Is(err, ErrVersion):
		// Nothing is wrong with the file.
		return Metadata{}, data, &BundleError{dir, metadataFile, err}
	case err != nil:
		return Metadata{}, data, &DamageError{dir, metadataFile, err.Error(), err}
	}
	if m.Fields == nil {
		if m.Fields, err = listFields(fsys, dir); err != nil {
			return Metadata{}, data, err
		}
	}
	return m, data, nil
}

// listFields returns the ids of the files fields/*.bin, sorted.
func listFields(fsys vfs.FS, dir string) ([]string, error) {
	names, err := payloads(fsys, dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &DamageError{dir, fieldsDir, "the directory is missing", fs.ErrNotExist}
	case err != nil:
		return nil, err
	}
	ids := make([]string, len(names))
	for i, name := range names {
		ids[i] = strings.TrimSuffix(name, fieldSuffix)
		if err := CheckID(ids[i]); err != nil {
			return nil, &DamageError{dir, fieldsDir, err.Error(), nil}
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// payloads returns the names of the files fields/*.bin.
func payloads(fsys vfs.FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(filepath.Join(dir, fieldsDir))
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), fieldSuffix) && !isLitter(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// isLitter reports whether a name in fields/ is that of a file that other programs
// leave beside those that they handle: what a Mac keeps beside each file of a foreign
// filesystem (._phi.bin) and in each folder (.DS_Store), an editor's lock (.#phi.bin),
// and an open file that a network or FUSE filesystem removes later.
func isLitter(name string) bool {
	for _, prefix := range []string{"._", ".#"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if strings.HasSuffix(name, fieldSuffix) {
		return false // a field may have any other name
	}
	return name == ".DS_Store" || strings.HasPrefix(name, ".nfs") || strings.HasPrefix(name, ".fuse_hidden")
}

// unlisted returns the files fields/*.bin that are none of the fields. A directory
// that doesn't let itself be listed says nothing; the fields can be read.
func unlisted(fsys vfs.FS, dir string, ids []string) ([]string, error) {
	names, err := payloads(fsys, dir)
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil
	}
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id+fieldSuffix] = true
	}
	var files []string
	for _, name := range names {
		if !known[name] {
			files = append(files, fieldsDir+"/"+name)
		}
	}
	slices.Sort(files)
	return files, err
}

// readChecksums returns nil for a bundle without checksums.txt.
func readChecksums(fsys vfs.FS, dir string, info *Info) ([]fileChecksum, error) {
	data, err := readSmall(fsys, dir, checksumsFile, maxChecksumsBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	info.Checksums = true
	info.Bytes += int64(len(data))
	sums, err := parseChecksums(data)
	if err != nil {
		return nil, &DamageError{dir, checksumsFile, err.Error(), nil}
	}
	return sums, nil
}

// regularSize returns the size of a file of the bundle. Nothing but a regular
// file will do: a link would lead out of the bundle.
func regularSize(fsys vfs.FS, dir, file string) (int64, error) {
	info, err := fsys.Lstat(filepath.Join(dir, filepath.FromSlash(file)))
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &DamageError{dir, file, "not a regular file", nil}
	}
	return info.Size(), nil
}

// readSmall reads a file of the bundle of at most limit bytes.
func readSmall(fsys vfs.FS, dir, file string, limit int64) ([]byte, error) {
	if _, err := regularSize(fsys, dir, file); err != nil {
		return nil, err
	}
	data, err := vfs.ReadFile(fsys, filepath.Join(dir, filepath.FromSlash(file)), limit)
	if errors.Is(err, vfs.ErrTooLarge) {
		return nil, &DamageError{dir, file, fmt.Sprintf("more than the %d bytes that are read", limit), nil}
	}
	return data, err
}
