package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Mem is a filesystem in memory that can crash. Its errors carry the errno that
// Linux gives. Relative names start at the root. Permission bits are recorded
// but not enforced, and there are no hard links.
//
// # Crash model
//
// Mem knows of each operation whether an fsync covered it. [Mem.CrashClone]
// returns a new filesystem with what a crash at this moment leaves:
//
//   - Everything that an fsync covered is there. File.Sync covers the content
//     and the size of the file, and its inode, but not its entry in a directory.
//     SyncDir covers all operations on the entries of that directory.
//   - Of the other operations on one file (writes, truncations, allocations;
//     a change of size is part of its operation) an initial part is there, in
//     their order. The first one that is missing may be torn, if it is a write:
//     some of its leading 512-byte blocks are there, and perhaps the new size,
//     with zeros instead of data.
//   - Of the other operations on the entries of one directory (creations,
//     removals, renames) an initial part is there, in their order.
//   - Different files and directories are independent of each other: an entry
//     may survive without the content of its file, and the other way round,
//     which leaves nothing to see.
//   - A rename is one operation, on one directory or on two: it happened or it
//     did not, and syncing either of its directories covers it, together with
//     what came before it in the other.
//
// A failed sync, which only [Inject] can produce here, covers nothing. After it
// Sync of that file reports success and covers nothing either, for good. SyncDir
// reports success and covers nothing until the directory changes again. So does
// Linux, which takes pages that it could not write for clean.
type Mem struct {
	mu         sync.Mutex
	root       *inode
	lastID     int64
	lastSeq    int64
	capacity   int64 // pages
	used       int64 // pages
	noAllocate bool
}

// MemOption configures NewMem.
type MemOption func(*Mem)

// DefaultCapacity is the space in a Mem, in bytes.
const DefaultCapacity = 1 << 30

// Capacity sets the space for the content of files, in bytes. It counts in whole
// pages of 4096 bytes; directories and names take nothing.
func Capacity(bytes int64) MemOption {
	return func(m *Mem) { m.capacity = max(0, bytes) / pageSize }
}

// NoAllocate makes Allocate extend files without reserving space.
func NoAllocate() MemOption { return func(m *Mem) { m.noAllocate = true } }

// NewMem returns an empty filesystem.
func NewMem(opts ...MemOption) *Mem {
	m := &Mem{capacity: DefaultCapacity / pageSize}
	for _, opt := range opts {
		opt(m)
	}
	m.root = m.newInode(fs.ModeDir | 0o777)
	m.root.links = 1
	return m
}

// inode is a file, a directory or a link. All are guarded by Mem.mu.
type inode struct {
	id      int64
	mode    fs.FileMode
	mtime   time.Time
	links   int // 1 while it has an entry
	handles int // open files and locks
	lock    *memLock

	target string // of a link

	// Of a file: as it is, as the last sync left it, and the way from there.
	data        content
	durableData content
	fileOps     []fileOp
	syncLost    bool // a sync failed: no later one covers anything

	// Of a directory, likewise.
	entries        map[string]*inode
	durableEntries map[string]*inode
	dirOps         []*dirOp
	lostOps        int // so many of dirOps were there when a sync failed
}

// dirOp is a change of directories that no fsync has covered yet.
type dirOp struct {
	seq     int64
	changes []entryChange // two for a rename
}

type entryChange struct {
	dir  *inode
	name string
	node *inode // nil: removed
}

func (m *Mem) newInode(mode fs.FileMode) *inode {
	m.lastID++
	n := &inode{id: m.lastID, mode: mode, mtime: time.Now()}
	if mode.IsDir() {
		n.entries = make(map[string]*inode)
		n.durableEntries = make(map[string]*inode)
	}
	return n
}

// dirs returns the directories that op changes, each once.
func (op *dirOp) dirs() []*inode {
	dirs := make([]*inode, 0, 2)
	for _, c := range op.changes {
		if !slices.Contains(dirs, c.dir) {
			dirs = append(dirs, c.dir)
		}
	}
	return dirs
}

func (c entryChange) apply(entries map[string]*inode) {
	if c.node == nil {
		delete(entries, c.name)
	} else {
		entries[c.name] = c.node
	}
}

// change carries out one operation on directories.
func (m *Mem) change(changes ...entryChange) {
	m.lastSeq++
	op := &dirOp{seq: m.lastSeq, changes: changes}
	for _, c := range changes {
		c.apply(c.dir.entries)
		c.dir.mtime = time.Now()
	}
	for _, dir := range op.dirs() {
		dir.dirOps = append(dir.dirOps, op)
	}
}

// commit makes op durable, after what came before it in its directories.
func (op *dirOp) commit() {
	dirs := op.dirs()
	for _, dir := range dirs {
		for dir.dirOps[0] != op {
			dir.dirOps[0].commit()
		}
	}
	for _, c := range op.changes {
		c.apply(c.dir.durableEntries)
	}
	for _, dir := range dirs {
		dir.dirOps = dir.dirOps[1:]
		dir.lostOps = max(0, dir.lostOps-1)
	}
}

func (n *inode) syncDir() {
	if len(n.dirOps) == n.lostOps {
		return
	}
	for len(n.dirOps) > 0 {
		n.dirOps[0].commit()
	}
	n.dirOps = nil
}

func (n *inode) syncFile() {
	if n.syncLost || len(n.fileOps) == 0 {
		return
	}
	n.durableData = n.data.snapshot()
	n.fileOps = nil
}

// unlink is called when n has lost its entry.
func (m *Mem) unlink(n *inode) {
	n.links--
	m.reclaim(n)
}

// drop ends the use of n by a handle.
func (m *Mem) drop(n *inode) {
	n.handles--
	m.reclaim(n)
}

// reclaim frees the space of a file that nobody can reach any more. Its content
// stays: its entry may come back in a crash.
func (m *Mem) reclaim(n *inode) {
	if n.links == 0 && n.handles == 0 {
		m.used -= n.data.used()
	}
}

// maxLinks and maxName are Linux's.
const (
	maxLinks = 40
	maxName  = 255
)

// place is where a path leads.
type place struct {
	chain []*inode // the directories from the root to the one with the entry
	name  string   // of the entry; "" if the path ends in "/", "." or ".."
	node  *inode   // nil if there is no such entry
	slash bool     // the path asks for a directory
}

func (p place) dir() *inode { return p.chain[len(p.chain)-1] }

// ending says what walk does with the last component of a path.
type ending int

const (
	followLink  ending = 1 << iota // where it is a link
	followSlash                    // where it is a link with a slash after it
	refuseSlash                    // as creat(2) does

	entry    ending = 0 // the call is about the entry itself
	noFollow        = followSlash
	follow          = followLink | followSlash
)

// walk follows a path. The last component need not exist.
func (m *Mem) walk(name string, end ending) (place, error) {
	switch {
	case name == "":
		return place{}, syscall.ENOENT
	case strings.ContainsRune(name, 0):
		return place{}, syscall.EINVAL
	}
	chain := []*inode{m.root}
	todo := strings.Split(name, "/")
	var at place
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		isLast := !slices.ContainsFunc(todo, func(s string) bool { return s != "" })
		if part == "" {
			continue
		}
		top := chain[len(chain)-1]
		if !top.mode.IsDir() {
			return place{}, syscall.ENOTDIR
		}
		at = place{}
		switch {
		case part == ".":
			continue
		case part == "..":
			chain = chain[:max(1, len(chain)-1)]
			continue
		case len(part) > maxName:
			return place{}, syscall.ENAMETOOLONG
		}
		slash := isLast && len(todo) > 0
		if slash && end&refuseSlash != 0 {
			return place{}, syscall.EISDIR
		}
		node := top.entries[part]
		if node != nil && node.mode&fs.ModeSymlink != 0 && (!isLast || end&followLink != 0 || end&followSlash != 0 && slash) {
			if links++; links > maxLinks {
				return place{}, syscall.ELOOP
			}
			if strings.HasPrefix(node.target, "/") {
				chain = chain[:1]
			}
			todo = append(strings.Split(node.target, "/"), todo...)
			continue
		}
		if isLast {
			if slash && end&followSlash != 0 && node != nil && !node.mode.IsDir() {
				return place{}, syscall.ENOTDIR
			}
			at = place{chain: chain, name: part, node: node, slash: slash}
			break
		}
		if node == nil {
			return place{}, syscall.ENOENT
		}
		chain = append(chain, node)
	}
	if at.chain == nil {
		top := chain[len(chain)-1]
		if !top.mode.IsDir() {
			return place{}, syscall.ENOTDIR
		}
		return place{chain: chain, node: top, slash: true}, nil
	}
	return at, nil
}

// find is walk for something that must exist.
func (m *Mem) find(name string, end ending) (*inode, error) {
	at, err := m.walk(name, end)
	if err == nil && at.node == nil {
		err = syscall.ENOENT
	}
	return at.node, err
}

func pathError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenFile implements FS.
func (m *Mem) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f, err := m.open(name, flag, perm)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return f, nil
}

func (m *Mem) open(name string, flag int, perm fs.FileMode) (*memFile, error) {
	create, exclusive := flag&os.O_CREATE != 0, flag&os.O_EXCL != 0
	end := follow
	if flag&openNoFollow != 0 || create && exclusive {
		end = noFollow
	}
	if create {
		end |= refuseSlash
	}
	at, err := m.walk(name, end)
	if err != nil {
		return nil, err
	}
	node := at.node
	writes := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case node == nil && !create:
		return nil, syscall.ENOENT
	case node == nil:
		node = m.create(at, perm.Perm())
	case create && exclusive:
		return nil, syscall.EEXIST
	case node.mode&fs.ModeSymlink != 0:
		return nil, syscall.ELOOP
	case node.mode.IsDir() && (writes || create):
		return nil, syscall.EISDIR
	case !node.mode.IsDir() && flag&openDirectory != 0:
		return nil, syscall.ENOTDIR
	}
	if flag&os.O_TRUNC != 0 && node.mode.IsRegular() && node.data.size > 0 {
		m.applyOp(node, fileOp{kind: opTruncate})
	}
	node.handles++
	return &memFile{m: m, node: node, name: name, flag: flag}, nil
}

func (m *Mem) create(at place, mode fs.FileMode) *inode {
	node := m.newInode(mode)
	node.links = 1
	m.change(entryChange{at.dir(), at.name, node})
	return node
}

// applyOp carries out an operation on the content of a file.
func (m *Mem) applyOp(n *inode, op fileOp) {
	before := n.data.used()
	op.apply(&n.data)
	m.used += n.data.used() - before
	n.fileOps = append(n.fileOps, op)
	n.mtime = time.Now()
}

// Mkdir implements FS.
func (m *Mem) Mkdir(name string, perm fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.walk(name, entry)
	if err == nil && at.node != nil {
		err = syscall.EEXIST
	}
	if err != nil {
		return pathError("mkdir", name, err)
	}
	m.create(at, fs.ModeDir|perm.Perm())
	return nil
}

// Symlink creates a link that leads to target.
func (m *Mem) Symlink(target, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.walk(name, entry)
	switch {
	case err != nil:
	case target == "", at.node == nil && at.slash:
		err = syscall.ENOENT
	case at.node != nil:
		err = syscall.EEXIST
	}
	if err != nil {
		return &os.LinkError{Op: "symlink", Old: target, New: name, Err: err}
	}
	m.create(at, fs.ModeSymlink|0o777).target = target
	return nil
}

// Lstat implements FS.
func (m *Mem) Lstat(name string) (fs.FileInfo, error) { return m.stat("lstat", name, noFollow) }

// Stat implements FS.
func (m *Mem) Stat(name string) (fs.FileInfo, error) { return m.stat("stat", name, follow) }

func (m *Mem) stat(op, name string, end ending) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find(name, end)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return node.info(name), nil
}

// ReadDir implements FS.
func (m *Mem) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find(name, follow)
	if err == nil && !node.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries := make([]fs.DirEntry, 0, len(node.entries))
	for _, name := range slices.Sorted(maps.Keys(node.entries)) {
		entries = append(entries, fs.FileInfoToDirEntry(node.entries[name].info(name)))
	}
	return entries, nil
}

// Rename implements FS.
func (m *Mem) Rename(oldname, newname string) error { return m.rename(oldname, newname, true) }

// RenameNoReplace implements FS.
func (m *Mem) RenameNoReplace(oldname, newname string) error {
	return m.rename(oldname, newname, false)
}

func (m *Mem) rename(oldname, newname string, replace bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to, err := m.checkRename(oldname, newname, replace)
	if err != nil {
		return linkError(oldname, newname, err)
	}
	if from.node == to.node {
		return nil
	}
	m.change(entryChange{from.dir(), from.name, nil}, entryChange{to.dir(), to.name, from.node})
	if to.node != nil {
		m.unlink(to.node)
	}
	return nil
}

// checkRename makes the checks of rename(2) in the order of Linux.
func (m *Mem) checkRename(oldname, newname string, replace bool) (from, to place, err error) {
	if from, err = m.walk(oldname, entry); err != nil {
		return from, to, err
	}
	if to, err = m.walk(newname, entry); err != nil {
		return from, to, err
	}
	switch {
	case from.name == "":
		err = syscall.EBUSY
	case to.name == "" && !replace:
		err = syscall.EEXIST
	case to.name == "":
		err = syscall.EBUSY
	case from.node == nil:
		err = syscall.ENOENT
	case to.node != nil && !replace:
		err = syscall.EEXIST
	case !from.node.mode.IsDir() && (from.slash || to.slash):
		err = syscall.ENOTDIR
	case slices.Contains(to.chain, from.node):
		err = syscall.EINVAL
	case to.node != nil && slices.Contains(from.chain, to.node):
		err = syscall.ENOTEMPTY
	case to.node == nil || to.node == from.node:
	case from.node.mode.IsDir() && !to.node.mode.IsDir():
		err = syscall.ENOTDIR
	case !from.node.mode.IsDir() && to.node.mode.IsDir():
		err = syscall.EISDIR
	case len(to.node.entries) > 0:
		err = syscall.ENOTEMPTY
	}
	return from, to, err
}

// Remove implements FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.walk(name, entry)
	switch {
	case err != nil:
	case at.node == nil:
		err = syscall.ENOENT
	case at.slash && !at.node.mode.IsDir():
		err = syscall.ENOTDIR
	case at.name == "" && at.node == m.root:
		err = syscall.EBUSY
	case at.name == "":
		err = syscall.EINVAL
	case len(at.node.entries) > 0:
		err = syscall.ENOTEMPTY
	}
	if err != nil {
		return pathError("remove", name, err)
	}
	m.remove(at)
	return nil
}

func (m *Mem) remove(at place) {
	m.change(entryChange{at.dir(), at.name, nil})
	m.unlink(at.node)
}

// SyncDir implements FS.
func (m *Mem) SyncDir(name string) error { return m.onDir(name, (*inode).syncDir) }

// failSyncDir lets a sync fail: see Mem.
func (m *Mem) failSyncDir(name string) {
	// A directory that is not there has nothing to lose.
	_ = m.onDir(name, (*inode).failSyncDir)
}

func (n *inode) failSyncDir() { n.lostOps = len(n.dirOps) }

func (m *Mem) onDir(name string, do func(*inode)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	node, err := m.find(name, follow)
	if err == nil && !node.mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return pathError("syncdir", name, err)
	}
	do(node)
	return nil
}

// Usage implements FS.
func (m *Mem) Usage(name string) (Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.find(name, follow); err != nil {
		return Usage{}, pathError("statfs", name, err)
	}
	return Usage{
		Free:      m.free() * pageSize,
		Total:     m.capacity * pageSize,
		Type:      "mem",
		Allocates: !m.noAllocate,
	}, nil
}

// free is in pages. A crash that brings removed files back can fill Mem beyond
// its capacity.
func (m *Mem) free() int64 { return max(0, m.capacity-m.used) }

// Lock implements FS. A lock belongs to its Lock value alone.
func (m *Mem) Lock(name string) (Lock, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, err := m.walk(name, entry|refuseSlash)
	switch {
	case err != nil:
	case at.node != nil && at.node.mode.IsDir():
		err = syscall.EISDIR
	case at.node == nil:
		at.node = m.create(at, 0o666)
	case at.node.mode&fs.ModeSymlink != 0:
		err = syscall.ELOOP
	case at.node.lock != nil:
		err = fmt.Errorf("%w: %w", ErrLocked, syscall.EAGAIN)
	}
	if err != nil {
		return nil, pathError("lock", name, err)
	}
	at.node.handles++
	at.node.lock = &memLock{m: m, node: at.node, name: name}
	return at.node.lock, nil
}

type memLock struct {
	m    *Mem
	node *inode
	name string
}

func (l *memLock) Release() error { return l.release(true) }

func (l *memLock) release(remove bool) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.node.lock != l {
		return pathError("unlock", l.name, fs.ErrClosed)
	}
	var err error
	if remove {
		var at place
		at, err = l.m.walk(l.name, entry)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = nil
		case err != nil:
			err = pathError("unlock", l.name, err)
		case at.node == l.node:
			l.m.remove(at)
		}
	}
	l.node.lock = nil
	l.m.drop(l.node)
	return err
}

func (l *memLock) Describe(text string) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.node.lock != l {
		return pathError("write", l.name, fs.ErrClosed)
	}
	l.m.applyOp(l.node, fileOp{kind: opTruncate})
	f := &memFile{m: l.m, node: l.node, name: l.name, flag: os.O_WRONLY}
	if _, err := f.write([]byte(text), 0); err != nil {
		return pathError("write", l.name, err)
	}
	return nil
}

func (l *memLock) Current() (bool, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.node.lock != l {
		return false, pathError("lstat", l.name, fs.ErrClosed)
	}
	at, err := l.m.walk(l.name, entry)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, pathError("lstat", l.name, err)
	}
	return at.node == l.node, nil
}

// Dump lists everything in the filesystem, sorted by path: "/dir/",
// "/file 12" with the size, "/link -> target". It is for messages of tests.
func (m *Mem) Dump() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	var list func(dir *inode, path string)
	list = func(dir *inode, path string) {
		for _, name := range slices.Sorted(maps.Keys(dir.entries)) {
			n, path := dir.entries[name], path+name
			switch {
			case n.mode.IsDir():
				lines = append(lines, path+"/")
				list(n, path+"/")
			case n.mode.IsRegular():
				lines = append(lines, fmt.Sprintf("%s %d", path, n.data.size))
			default:
				lines = append(lines, path+" -> "+n.target)
			}
		}
	}
	list(m.root, "/")
	return lines
}
