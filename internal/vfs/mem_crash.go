package vfs

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Keep says how much of what no fsync covered survives a crash.
type Keep int

const (
	KeepNone   Keep = iota // nothing
	KeepRandom             // a random part that the crash model allows
	KeepAll                // everything
)

func (k Keep) String() string {
	switch k {
	case KeepNone:
		return "none"
	case KeepRandom:
		return "random"
	case KeepAll:
		return "all"
	}
	return fmt.Sprintf("Keep(%d)", int(k))
}

// CrashOptions chooses one of the states that a crash may leave.
type CrashOptions struct {
	Keep Keep
	// Seed decides all random choices. The same operations, crash and seed give
	// the same state. A test prints it.
	Seed uint64
	// Torn lets the first lost write of a file be there in part.
	Torn bool
}

// String returns the options for the message of a test.
func (o CrashOptions) String() string {
	return fmt.Sprintf("keep %s, seed %d, torn %t", o.Keep, o.Seed, o.Torn)
}

// CrashClone returns what the machine finds after a crash at this moment: a new
// filesystem, all of it durable, with no open file and no lock. m itself goes on
// as if nothing had happened.
func (m *Mem) CrashClone(opts CrashOptions) *Mem {
	clone, nodes := m.clone()
	rng := rand.New(rand.NewPCG(opts.Seed, 0))
	// Most often some containers lose everything and others nothing.
	cut := func(n int) int {
		switch {
		case opts.Keep == KeepNone || n == 0:
			return 0
		case opts.Keep == KeepAll:
			return n
		}
		switch rng.IntN(4) {
		case 0:
			return 0
		case 1:
			return n
		}
		return rng.IntN(n + 1)
	}
	crashDirs(nodes, cut)
	for _, n := range nodes {
		data := n.durableData.snapshot()
		kept := cut(len(n.fileOps))
		for _, op := range n.fileOps[:kept] {
			op.apply(&data)
		}
		if opts.Torn && kept < len(n.fileOps) {
			n.fileOps[kept].tear(&data, rng.IntN)
		}
		n.data, n.durableData = data, data.snapshot()
		n.fileOps, n.syncLost = nil, false
	}
	clone.recount()
	return clone
}

// crashDirs reduces each directory to its durable entries and an initial part of
// the operations on them, whose length cut chooses. An operation on two
// directories is kept only if both keep it.
func crashDirs(nodes []*inode, cut func(int) int) {
	rest := make(map[*inode]int) // so many operations of a directory may still be kept
	var ops []*dirOp
	for _, n := range nodes {
		if len(n.dirOps) > 0 {
			rest[n] = cut(len(n.dirOps))
			ops = append(ops, n.dirOps...)
		}
	}
	slices.SortFunc(ops, func(a, b *dirOp) int { return cmp.Compare(a.seq, b.seq) })
	for _, op := range slices.Compact(ops) {
		dirs := op.dirs()
		if slices.ContainsFunc(dirs, func(d *inode) bool { return rest[d] == 0 }) {
			for _, d := range dirs {
				rest[d] = 0
			}
			continue
		}
		for _, d := range dirs {
			rest[d]--
		}
		for _, c := range op.changes {
			c.apply(c.dir.durableEntries)
		}
	}
	for _, n := range nodes {
		if n.mode.IsDir() {
			n.dirOps, n.lostOps = nil, 0
			clear(n.entries)
			for name, child := range n.durableEntries {
				n.entries[name] = child
			}
		}
	}
}

// KillClone returns what other processes find after all that used m were killed,
// while the machine goes on: everything that was written, no open file and no
// lock. What no fsync covered is still not covered.
func (m *Mem) KillClone() *Mem {
	clone, _ := m.clone()
	clone.recount()
	return clone
}

// clone copies m without handles and locks, and returns the copies of all inodes
// that are, were or may come to be in it, in order of creation.
func (m *Mem) clone() (*Mem, []*inode) {
	m.mu.Lock()
	defer m.mu.Unlock()
	copies := make(map[*inode]*inode)
	ops := make(map[*dirOp]*dirOp)
	var todo, nodes []*inode
	copyOf := func(n *inode) *inode {
		if n == nil {
			return nil
		}
		c := copies[n]
		if c == nil {
			c = &inode{
				id: n.id, mode: n.mode, mtime: n.mtime, target: n.target,
				data: n.data.snapshot(), durableData: n.durableData.snapshot(),
				fileOps: slices.Clone(n.fileOps), syncLost: n.syncLost, lostOps: n.lostOps,
			}
			copies[n] = c
			todo, nodes = append(todo, n), append(nodes, c)
		}
		return c
	}
	copyEntries := func(entries map[string]*inode) map[string]*inode {
		if entries == nil {
			return nil
		}
		c := make(map[string]*inode, len(entries))
		for name, n := range entries {
			c[name] = copyOf(n)
		}
		return c
	}
	copyDirOp := func(op *dirOp) *dirOp {
		c := ops[op]
		if c == nil {
			c = &dirOp{seq: op.seq}
			ops[op] = c
			for _, e := range op.changes {
				c.changes = append(c.changes, entryChange{copyOf(e.dir), e.name, copyOf(e.node)})
			}
		}
		return c
	}
	clone := &Mem{
		lastID: m.lastID, lastSeq: m.lastSeq,
		capacity: m.capacity, noAllocate: m.noAllocate,
		root: copyOf(m.root),
	}
	for len(todo) > 0 {
		n := todo[0]
		todo = todo[1:]
		c := copies[n]
		c.entries = copyEntries(n.entries)
		c.durableEntries = copyEntries(n.durableEntries)
		for _, op := range n.dirOps {
			c.dirOps = append(c.dirOps, copyDirOp(op))
		}
	}
	slices.SortFunc(nodes, func(a, b *inode) int { return cmp.Compare(a.id, b.id) })
	return clone, nodes
}

// recount finds the used space and what has an entry.
func (m *Mem) recount() {
	m.used = 0
	var count func(n *inode)
	count = func(n *inode) {
		n.links = 1
		m.used += n.data.used()
		for _, child := range n.entries {
			count(child)
		}
	}
	count(m.root)
}
