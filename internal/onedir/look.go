package onedir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// A Look is how nodes look for what rank 0 has. The zero value is right everywhere but
// in tests. All ranks have the same.
type Look struct {
	// Node returns the rank's place among those of its node, as [comm.Comm.Node],
	// which nil stands for.
	Node func(c *comm.Comm, ctx context.Context) (rank, size int, err error)
	// Tries is how often a node looks, Pause the time after the first look, which doubles
	// each time; 0 stands for 7 and 100 ms: six seconds in all, since clients of network
	// filesystems keep what they know of a directory for one to three.
	Tries int
	Pause time.Duration
}

const (
	defaultTries = 7
	defaultPause = 100 * time.Millisecond
	longestPause = 4 * time.Second
)

type contextKey int

const (
	lookKey contextKey = iota
	checkedKey
)

// With returns a context in which calls look in another way.
func With(ctx context.Context, l Look) context.Context { return context.WithValue(ctx, lookKey, l) }

// From returns the way of a context.
func From(ctx context.Context) Look {
	l, _ := ctx.Value(lookKey).(Look)
	return l
}

// Checked returns a context for calls whose caller has made sure of their files: they
// are in a directory that all nodes see, and their paths are absolute.
func Checked(ctx context.Context) context.Context { return context.WithValue(ctx, checkedKey, true) }

// IsChecked reports whether the caller has made sure of the files.
func IsChecked(ctx context.Context) bool { return ctx.Value(checkedKey) != nil }

// Place is [comm.Comm.Node], or what stands for it.
func (l Look) Place(ctx context.Context, c *comm.Comm) (rank, size int, err error) {
	if l.Node != nil {
		return l.Node(c, ctx)
	}
	return c.Node(ctx)
}

// Nodes reports whether the ranks are on several nodes, which all ranks get alike, and
// whether this rank looks for its node: the lowest one of each node but rank 0's. It is
// collective at the first call for a communicator, as [comm.Comm.Node].
func (l Look) Nodes(ctx context.Context, c *comm.Comm) (several, looks bool, err error) {
	rank, size, err := l.Place(ctx, c)
	if err != nil {
		return false, false, err
	}
	several = size != c.Size()
	return several, several && rank == 0 && c.Rank() > 0, nil
}

// ErrNotSeen is in the chain of errors that say that a node doesn't see what rank 0 has.
// They say nothing about what rank 0 has.
var ErrNotSeen = errors.New("is the path local to a node?")

func init() { comm.Register("onedir.ErrNotSeen", ErrNotSeen) }

// Await calls find until it finds what rank 0 has, and returns an error that names the
// node and what it doesn't see, and matches [ErrNotSeen]. A cancelled context ends it
// early.
func (l Look) Await(ctx context.Context, what string, find func() error) error {
	defer waiting.Doing(ctx, "look for", what).End()
	var err error
	pause := cmp.Or(l.Pause, defaultPause)
	for try := range cmp.Or(l.Tries, defaultTries) {
		if try > 0 {
			waiting.Rest(ctx, pause)
			pause = min(2*pause, longestPause)
		}
		err = comm.Protect(find)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	host, herr := os.Hostname()
	if herr != nil {
		host = "(unnamed)"
	}
	return fmt.Errorf("node %s does not see %s (%w): %w", host, what, ErrNotSeen, err)
}

// EachNode makes one rank of each node but rank 0's find what rank 0 has, as Await does,
// and agrees on the outcome. On one node it does nothing.
func (l Look) EachNode(ctx context.Context, c *comm.Comm, what string, find func() error) (several bool, err error) {
	several, looks, err := l.Nodes(ctx, c)
	if err != nil || !several {
		return several, err
	}
	if looks {
		err = l.Await(ctx, what, find)
	}
	return true, c.Agree(ctx, err)
}

// markPrefix begins the names of the files that nodes look for. They are there for a
// moment only.
const markPrefix = ".fieldstone-"

// Directory makes sure that all nodes see the directory of rank 0, for ranks that are on
// several nodes. Rank 0 calls claim, which returns the directory and makes it if need be;
// the others need not know it. In it rank 0 makes a file for a moment, whose name nobody
// has seen before: no node can remember something else of it. It is collective, and an
// error of claim is that of all ranks.
func (l Look) Directory(ctx context.Context, c *comm.Comm, fsys vfs.FS, log *slog.Logger, claim func() (string, error)) error {
	_, looks, err := l.Nodes(ctx, c)
	if err != nil {
		return err
	}
	var path string
	if c.Rank() == 0 {
		err = comm.Protect(waiting.Step(ctx, "make", "a file for the nodes to find", func() (err error) {
			path, err = mark(fsys, claim)
			return err
		}))
	}
	if c.Rank() == 0 && path != "" {
		defer func() {
			if err := fsys.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				log.Warn("a file by which the nodes find the directory is left", "path", path, "error", err)
			}
		}()
	}
	text, lost := c.Broadcast(ctx, 0, []byte(path))
	if lost != nil {
		return lost
	}
	if looks && len(text) > 0 { // otherwise rank 0 has an error
		path := string(text)
		err = l.Await(ctx, "the directory "+filepath.Dir(path)+" that rank 0 has", func() error {
			_, err := fsys.Lstat(path)
			return err
		})
	}
	return c.Agree(ctx, err)
}

// mark makes the file by which nodes find the directory, and returns its path if it may
// be there.
func mark(fsys vfs.FS, claim func() (string, error)) (string, error) {
	dir, err := claim()
	if err != nil {
		return "", err
	}
	n, err := NewNonce()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, markPrefix+n.String())
	err = vfs.WriteFile(fsys, path, nil, 0o666, false)
	if e, ok := err.(*fs.PathError); ok { // the name of the file says nothing to anybody
		err = &fs.PathError{Op: "write to", Path: dir, Err: e.Err}
	}
	return path, err
}

// errOther says that a node sees something, and not what rank 0 sees.
var errOther = errors.New("it has other content there")

// Same is the agreement that no rank has an error, own, and that all nodes see the same
// content: seen returns what rank 0 and one rank of each other node find. It is for files
// that are only read, or that are written already. On one node it is [comm.Comm.Agree].
func (l Look) Same(ctx context.Context, c *comm.Comm, own error, what string, seen func() (Digest, error)) error {
	several, looks, err := l.Nodes(ctx, c)
	if err != nil {
		return err
	}
	if !several {
		return c.Agree(ctx, own)
	}
	v := make([]int64, digestWords)
	for i := range v {
		v[i] = math.MinInt64 // less than every word, and so of no account
	}
	look := func() (d Digest, err error) {
		err = comm.Protect(waiting.Step(ctx, "look at", what, func() (err error) {
			d, err = seen()
			return err
		}))
		return d, err
	}
	var first Digest
	if own == nil && (looks || c.Rank() == 0) {
		var err error
		if first, err = look(); c.Rank() == 0 {
			own = err
		}
		first.put(v) // of a node that has an error: it differs
	}
	if err := c.AgreeMax(ctx, own, v); err != nil {
		return err
	}
	if equal(v) {
		return nil
	}
	zero, err := c.Broadcast(ctx, 0, first[:])
	if err != nil {
		return err
	}
	if looks {
		err = l.Await(ctx, what+" as rank 0 does", func() error {
			d, err := look()
			if err == nil && string(d[:]) != string(zero) {
				err = errOther
			}
			return err
		})
	}
	return c.Agree(ctx, err)
}
