// Package onedirtest spreads the ranks of a test over nodes that aren't there, each with
// a view of its own of the files.
package onedirtest

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Nodes makes ranks believe that rank r is on node nodes[r]. They look twice, and don't
// wait long.
func Nodes(nodes ...int) onedir.Look {
	return onedir.Look{Tries: 2, Pause: time.Millisecond, Node: func(c *comm.Comm, _ context.Context) (rank, size int, err error) {
		for r, node := range nodes {
			if node != nodes[c.Rank()] {
				continue
			}
			size++
			if r < c.Rank() {
				rank++
			}
		}
		return rank, size, nil
	}}
}

// Moved is a view of a filesystem in which the directory from is another one, to, as on
// a node on which a path is local.
func Moved(fsys vfs.FS, from, to string) vfs.FS { return moved{fsys, from, to} }

type moved struct {
	vfs.FS
	from, to string
}

func (m moved) at(name string) string {
	if rest, ok := strings.CutPrefix(filepath.Clean(name), m.from); ok && (rest == "" || rest[0] == filepath.Separator) {
		return m.to + rest
	}
	return name
}

func (m moved) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	return m.FS.OpenFile(m.at(name), flag, perm)
}
func (m moved) Mkdir(name string, perm fs.FileMode) error  { return m.FS.Mkdir(m.at(name), perm) }
func (m moved) Lstat(name string) (fs.FileInfo, error)     { return m.FS.Lstat(m.at(name)) }
func (m moved) Stat(name string) (fs.FileInfo, error)      { return m.FS.Stat(m.at(name)) }
func (m moved) ReadDir(name string) ([]fs.DirEntry, error) { return m.FS.ReadDir(m.at(name)) }
func (m moved) Remove(name string) error                   { return m.FS.Remove(m.at(name)) }
func (m moved) SyncDir(name string) error                  { return m.FS.SyncDir(m.at(name)) }
func (m moved) Lock(name string) (vfs.Lock, error)         { return m.FS.Lock(m.at(name)) }
func (m moved) Usage(name string) (vfs.Usage, error)       { return m.FS.Usage(m.at(name)) }
func (m moved) Rename(oldname, newname string) error {
	return m.FS.Rename(m.at(oldname), m.at(newname))
}
func (m moved) RenameNoReplace(oldname, newname string) error {
	return m.FS.RenameNoReplace(m.at(oldname), m.at(newname))
}
