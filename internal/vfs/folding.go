package vfs

import (
	"io/fs"
	"path"
	"path/filepath"
)

// Folding is a filesystem that takes some names for one, those that fold makes the same,
// as one that doesn't tell case apart. An entry keeps the name with which it was made. For
// tests; it has slashes.
func Folding(base FS, fold func(name string) string) FS { return &folding{base, fold} }

type folding struct {
	FS
	fold func(name string) string
}

// at is the name by which the base knows what name leads to.
func (f *folding) at(name string) string {
	dir, last := path.Split(filepath.ToSlash(name))
	if last == "" || dir == "" || dir == name {
		return name
	}
	if parent := path.Clean(dir); parent != "/" {
		dir = f.at(parent) + "/"
	}
	entries, err := f.FS.ReadDir(path.Clean(dir))
	if err != nil {
		return dir + last
	}
	for _, e := range entries {
		if f.fold(e.Name()) == f.fold(last) {
			return dir + e.Name()
		}
	}
	return dir + last
}

func (f *folding) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	return f.FS.OpenFile(f.at(name), flag, perm)
}
func (f *folding) Mkdir(name string, perm fs.FileMode) error  { return f.FS.Mkdir(f.at(name), perm) }
func (f *folding) Lstat(name string) (fs.FileInfo, error)     { return f.FS.Lstat(f.at(name)) }
func (f *folding) Stat(name string) (fs.FileInfo, error)      { return f.FS.Stat(f.at(name)) }
func (f *folding) ReadDir(name string) ([]fs.DirEntry, error) { return f.FS.ReadDir(f.at(name)) }
func (f *folding) Remove(name string) error                   { return f.FS.Remove(f.at(name)) }
func (f *folding) SyncDir(name string) error                  { return f.FS.SyncDir(f.at(name)) }
func (f *folding) Lock(name string) (Lock, error)             { return f.FS.Lock(f.at(name)) }
func (f *folding) Usage(name string) (Usage, error)           { return f.FS.Usage(f.at(name)) }
func (f *folding) Rename(oldname, newname string) error {
	return f.FS.Rename(f.at(oldname), f.at(newname))
}
func (f *folding) RenameNoReplace(oldname, newname string) error {
	return f.FS.RenameNoReplace(f.at(oldname), f.at(newname))
}
