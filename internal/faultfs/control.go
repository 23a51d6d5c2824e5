package faultfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// An Action is what happens to a call.
type Action string

// The actions.
const (
	Err   Action = "err"   // it fails with an errno, and nothing is done
	After Action = "after" // it is carried out, and then fails with an errno
	Short Action = "short" // a read or a write moves half of the bytes
	Delay Action = "delay" // it is carried out later
)

// An Option of [Mount] changes what the filesystem is like.
type Option string

// The options.
const (
	Cached Option = "cached" // the kernel keeps pages of files, as of a network filesystem's
	Folds  Option = "folds"  // the case of ASCII letters in names isn't told apart
)

// A Rule says which calls fail, and how. Only one rule is in force.
type Rule struct {
	// Op is the operation of FUSE: getattr (what looks up a name asks for it too), open,
	// create, read, write, flush (a close), fsync, truncate, fallocate, statfs, mkdir,
	// unlink, rmdir, rename, rename2 (one with flags), link, symlink, readlink, chmod,
	// chown, utimens, opendir, readdir, fsyncdir, lock, flock.
	Op     string
	Action Action
	// Argument is the errno of Err and After, and the milliseconds of Delay.
	Argument int
	// Skip calls are left alone, then Times are acted on.
	Skip, Times int
	// Process is the one whose calls are meant; 0 stands for all.
	Process int
	// Part is a part of the path, without spaces; empty stands for all paths.
	Part string
}

// A Count is the number of calls of each operation of each process.
type Count map[int]map[string]int

// Control is the mount point of a filesystem of this package, as what tells it which calls
// fail. Every process may use one.
type Control string

func (c Control) file() string { return filepath.Join(string(c), ".faultfs") }

func (c Control) tell(line string) error {
	f, err := os.OpenFile(c.file(), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// Off ends the rule and the count.
func (c Control) Off() error { return c.tell("off") }

// Fail puts a rule in force, from its beginning.
func (c Control) Fail(r Rule) error {
	return c.tell(fmt.Sprint(r.Op, " ", r.Action, " ", r.Argument, " ", r.Skip, " ", r.Times, " ", r.Process, " ", r.Part))
}

// Count ends the rule and begins to count the calls of some processes.
func (c Control) Count(processes ...int) error {
	return c.tell("count " + strings.Trim(fmt.Sprint(processes), "[]"))
}

// Seen returns how often the rule in force was acted on, or what was counted.
func (c Control) Seen() (fired int, n Count, err error) {
	text, err := os.ReadFile(c.file())
	if err != nil {
		return 0, nil, err
	}
	n = make(Count)
	for line := range bytes.Lines(text) {
		var process, calls int
		var op string
		if _, err := fmt.Sscanf(string(line), "fired %d", &fired); err == nil {
			continue
		}
		if _, err := fmt.Sscan(string(line), &process, &op, &calls); err != nil {
			return 0, nil, fmt.Errorf("%s: line %q: %w", c.file(), line, err)
		}
		if n[process] == nil {
			n[process] = make(map[string]int)
		}
		n[process][op] = calls
	}
	return fired, n, nil
}
