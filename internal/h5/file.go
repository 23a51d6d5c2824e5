package h5

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

const (
	// How deep groups can be nested, twice as deep as records for the lists between
	// them, and how long paths can be.
	maxDepth = 144
	maxPath  = 64 << 10
)

// File is an open file.
type File struct {
	name     string
	h        handle // nil once closed
	writable bool
	size     int64 // on disk when it was opened for reading
	before   int   // objects that the library counted when it was opened
	failed   error // the first failure of a change
	sparse   int64 // bytes that were read and are not in the file
	created  int64 // objects that were made
}

// Create makes a new file and opens it for reading and writing. A file that exists
// under the name is emptied.
func Create(name string) (*File, error) { return create(name, true) }

// CreateNew is Create for a name that must not exist.
func CreateNew(name string) (*File, error) { return create(name, false) }

func create(name string, truncate bool) (*File, error) {
	f := &File{name: name, writable: true}
	err := checkFileName(name)
	if err == nil {
		err = enter(func() (err error) {
			if f.h, err = createFile(name, truncate); err == nil {
				f.before = f.h.objects()
			}
			return err
		})
	}
	if err != nil {
		return nil, &Error{Op: "create", File: name, Err: err}
	}
	return f, nil
}

// Open opens an existing file for reading.
func Open(name string) (*File, error) { return open(name, false) }

// OpenReadWrite opens an existing file for reading and writing.
func OpenReadWrite(name string) (*File, error) { return open(name, true) }

func open(name string, writable bool) (*File, error) {
	f := &File{name: name, writable: writable}
	err := checkFileName(name)
	if err == nil && Enabled {
		err = checkSignature(name)
	}
	if err == nil {
		err = enter(func() (err error) {
			f.h, err = openFile(name, writable)
			if err != nil {
				return err
			}
			// Another file may have come to the path since its signature was seen.
			f.before = f.h.objects()
			if _, f.size, err = f.h.ends(); err != nil {
				err = errors.Join(err, f.h.close())
			}
			return err
		})
		if le := (*LibraryError)(nil); errors.As(err, &le) && le.Errno == 0 {
			err = fmt.Errorf("%w: %w", ErrFormat, err)
		}
	}
	if err != nil {
		return nil, &Error{Op: "open", File: name, Err: err}
	}
	return f, nil
}

func checkFileName(name string) error {
	if name == "" || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w: %q", ErrName, name)
	}
	return nil
}

// checkSignature looks where a file in the format has its signature: at the start,
// or behind a block of the user of 512 bytes, 1024 and so on.
func checkSignature(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return errors.Unwrap(err)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: it is no regular file", ErrFormat)
	}
	f, err := os.Open(name)
	if err != nil {
		return errors.Unwrap(err)
	}
	defer f.Close()
	signature := []byte("\x89HDF\r\n\x1a\n")
	for at := int64(0); at+int64(len(signature)) <= info.Size(); at = max(512, 2*at) {
		var b [8]byte
		if _, err := f.ReadAt(b[:], at); err != nil && err != io.EOF {
			return err
		}
		if bytes.Equal(b[:], signature) {
			return nil
		}
	}
	return fmt.Errorf("%w: it has no signature of HDF5", ErrFormat)
}

// Name is the name that the file was opened by.
func (f *File) Name() string { return f.name }

// Close writes what is left and closes the file. The error is the first failure of
// any change; nothing that was written is durable without Sync before.
func (f *File) Close() error {
	err := enter(func() error {
		if f.h == nil {
			return fs.ErrClosed
		}
		if f.writable && f.failed == nil {
			f.failed = f.flush()
		}
		h := f.h
		f.h = nil
		if f.failed != nil {
			h.abandon()
			return f.failed
		}
		var left error
		// The library counts what it keeps of an abandoned file with one that comes to
		// lie at its place in memory.
		if n := h.objects(); n != f.before {
			left = fmt.Errorf("%d objects were left open", n-f.before)
		}
		return errors.Join(h.close(), left)
	})
	return f.wrap("close", "", "", err)
}

// Flush hands everything to the operating system.
func (f *File) Flush() error {
	return f.do("flush", "", "", true, func() error { return f.change(f.flush) })
}

// flush compares the size of the file as well: after a full disk the library
// reports success.
func (f *File) flush() error {
	if err := f.h.flush(); err != nil {
		return err
	}
	return f.checkSize()
}

func (f *File) checkSize() error {
	want, got, err := f.h.ends()
	if err == nil && got < want {
		err = fmt.Errorf("%w: %d of %d bytes", ErrShort, got, want)
	}
	return err
}

// Size gives the length of the file on the disk, whatever is at its path by now.
func (f *File) Size() (int64, error) {
	var size int64
	err := f.do("stat", "", "", false, func() (err error) {
		_, size, err = f.h.ends()
		return err
	})
	return size, err
}

// Sync hands everything to the operating system and waits until content and size of
// the file are on the disk.
func (f *File) Sync() error {
	return f.do("sync", "", "", true, func() error {
		return f.change(func() error {
			if err := f.h.sync(); err != nil {
				return err
			}
			return f.checkSize()
		})
	})
}

// do makes one call: it owns the library meanwhile.
func (f *File) do(op, path, attribute string, write bool, call func() error) error {
	err := enter(func() error {
		switch {
		case f.h == nil:
			return fs.ErrClosed
		case write && !f.writable:
			return fmt.Errorf("file is open for reading only: %w", fs.ErrPermission)
		case write && f.failed != nil:
			return fmt.Errorf("after an earlier failure: %w", f.failed)
		}
		if write && path != "" {
			changes.Add(1)
		}
		return call()
	})
	return f.wrap(op, path, attribute, err)
}

// on is do for one object.
func (f *File) on(op, path, attribute string, write bool, call func(object) error) error {
	if err := checkPath(path); err != nil {
		return f.wrap(op, path, attribute, err)
	}
	return f.do(op, path, attribute, write, func() error {
		o, err := f.object(path)
		if err != nil {
			return err
		}
		err = call(o)
		// Closing may be what writes.
		e := o.close()
		if e != nil && write {
			e = f.change(func() error { return e })
		}
		return errors.Join(err, e)
	})
}

func closing(o object, call func(object) error) (err error) {
	defer func() { err = errors.Join(err, o.close()) }()
	return call(o)
}

// change runs what changes the file; a failure of it is final.
func (f *File) change(call func() error) error {
	err := call()
	if err != nil && f.failed == nil {
		f.failed = err
	}
	return err
}

func (f *File) wrap(op, path, attribute string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Op: op, File: f.name, Object: path, Attribute: attribute, Err: err}
}

// object opens what a path leads to.
func (f *File) object(path string) (object, error) {
	o, err := f.h.open(path)
	if err == nil || errors.Is(err, ErrLink) {
		return o, err
	}
	if gone, e := f.h.missing(path); e == nil && gone != "" {
		err = noObject(gone, path)
	}
	return nil, err
}

// absent is an error that matches fs.ErrNotExist, in words that fit what is in a file.
type absent string

func (e absent) Error() string { return string(e) }
func (e absent) Unwrap() error { return fs.ErrNotExist }

const noAttribute absent = "there is no such attribute"

// noObject says from which part on a path leads nowhere. The path itself is told by the
// error around it.
func noObject(from, path string) error {
	if from == path {
		return absent("there is no such object")
	}
	return absent("there is no " + from)
}

// free fails if there is something at the path, or if something other than a
// group stands where its parents are to be.
func (f *File) free(path string) error {
	gone, err := f.h.missing(path)
	if err != nil {
		return err
	}
	there := gone == ""
	if gone == path {
		// A soft link that leads nowhere is in the way as well.
		if there, err = f.h.exists(path); err != nil {
			return err
		}
	}
	if there {
		return fs.ErrExist
	}
	return nil
}

// checkPath allows paths from the root, with one form for each object.
func checkPath(path string) error {
	if path == "/" {
		return nil
	}
	if path == "" || len(path) > maxPath || !utf8.ValidString(path) || strings.ContainsRune(path, 0) {
		return fmt.Errorf("%w of an object: %.100q", ErrName, path)
	}
	parts := strings.Split(path, "/")
	if len(parts) > maxDepth {
		return fmt.Errorf("%w of an object: deeper than %d groups", ErrName, maxDepth)
	}
	for _, part := range parts {
		if part == "" || part == "." {
			return fmt.Errorf("%w of an object: %.100q", ErrName, path)
		}
	}
	return nil
}

func checkAttributeName(name string) error {
	if name == "" || len(name) > maxPath || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return fmt.Errorf("%w of an attribute: %.100q", ErrName, name)
	}
	return nil
}

// Join puts a name behind the path of a group.
func Join(group, name string) string {
	if group == "/" {
		return name
	}
	return group + "/" + name
}

// CreateGroup makes a group, and those above it that are missing. The error wraps
// fs.ErrExist if there is something at the path.
func (f *File) CreateGroup(path string) error {
	if err := checkPath(path); err != nil {
		return f.wrap("create group", path, "", err)
	}
	return f.do("create group", path, "", true, func() error {
		if err := f.free(path); err != nil {
			return err
		}
		f.noteCreated()
		return f.change(func() error { return f.h.makeGroup(path) })
	})
}

// Exists reports whether a path leads to an object. A soft link that leads nowhere
// does not.
func (f *File) Exists(path string) (bool, error) {
	there := false
	err := f.on("look for", path, "", false, func(object) error {
		there = true
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return there, err
}

// Stat describes an object.
func (f *File) Stat(path string) (Info, error) {
	var info Info
	err := f.on("stat", path, "", false, func(o object) (err error) {
		info, err = o.info()
		return err
	})
	return info, err
}

// List gives the members of a group in the order in which they were made; in that of
// their names' bytes where the group does not keep the other, as in many files of
// others.
func (f *File) List(group string) ([]Entry, error) {
	var entries []Entry
	err := f.on("list", group, "", false, func(o object) (err error) {
		if err := wantKind(o, Group); err != nil {
			return err
		}
		entries, err = o.list()
		return err
	})
	return entries, err
}

func wantKind(o object, want Kind) error {
	if o.kind() != want {
		return fmt.Errorf("%w: it is a %v, not a %v", ErrKind, o.kind(), want)
	}
	return nil
}

// Walk calls visit for everything below a group, in the order of List, groups before
// their members. A group that is reached a second time, as where a link leads
// back up, is an error that wraps ErrLink; so is one that is nested too deep. Soft and
// external links are visited, not followed. An error of visit ends the walk.
func (f *File) Walk(group string, visit func(path string, e Entry) error) error {
	seen := map[uint64]string{}
	var walk func(group string) error
	walk = func(group string) error {
		entries, err := f.List(group)
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := Join(group, e.Name)
			if e.Kind == Group {
				if first, ok := seen[e.address]; ok {
					return f.wrap("walk", path, "", fmt.Errorf("%w: the group is also %s", ErrLink, first))
				}
				seen[e.address] = path
				if strings.Count(path, "/") >= maxDepth {
					return f.wrap("walk", path, "", fmt.Errorf("%w: deeper than %d groups", ErrLink, maxDepth))
				}
			}
			if err := visit(path, e); err != nil {
				return err
			}
			if e.Kind == Group {
				if err := walk(path); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := f.on("walk", group, "", false, func(o object) error {
		at, err := o.address()
		seen[at] = group
		return err
	}); err != nil {
		return err
	}
	return walk(group)
}

// Unlink removes the link at the end of a path. The object goes with its last link;
// the file does not become smaller.
func (f *File) Unlink(path string) error {
	if path == "/" {
		return f.wrap("unlink", path, "", fmt.Errorf("%w: the root stays", ErrName))
	}
	if err := checkPath(path); err != nil {
		return f.wrap("unlink", path, "", err)
	}
	return f.do("unlink", path, "", true, func() error {
		gone, err := f.h.missing(path)
		if err != nil {
			return err
		}
		there := gone == ""
		if gone == path {
			if there, err = f.h.exists(path); err != nil {
				return err
			}
		}
		if !there {
			return noObject(gone, path)
		}
		return f.change(func() error { return f.h.unlink(path) })
	})
}
