package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fieldstone-io/fieldstone/publish"
)

// kind is what an entry of a directory of bundles is, as its name says.
type kind string

const (
	kindBundle     kind = "bundle"
	kindSuperseded kind = "superseded" // set aside by a restart below it
	kindDamaged    kind = "damaged"    // set aside as damaged
	kindPublishing kind = "publishing" // a staging directory
	kindRemoving   kind = "removing"   // a bundle that retention removes
	kindLock       kind = "lock"       // the lock of a publication or removal
)

// kinds in the order in which entries of one increment are listed.
var kinds = []kind{kindBundle, kindSuperseded, kindDamaged, kindPublishing, kindRemoving, kindLock}

const lockSuffix = ".publishing.lock"

// state is the outcome of looking at a bundle, or at the lock of a leftover.
type state string

const (
	stateGood       state = "good"
	stateBad        state = "bad"
	stateUnreadable state = "unreadable"
	stateInUse      state = "in use"   // its lock is held
	stateLeftover   state = "leftover" // its lock is free: the owner is dead
	stateUnknown    state = "unknown"  // the lock can't be asked
)

// status is the exit status of a command that reads something of a state.
func (s state) status() int {
	switch s {
	case stateGood:
		return statusGood
	case stateBad:
		return statusBad
	}
	return statusFailed
}

// entry is a part of a directory of bundles.
type entry struct {
	name, path string
	kind       kind
	base       string // name of the bundle that it belongs to
	step       int64  // increment in the name; -1: none

	info  publish.Info
	whole bool // info is complete: nothing is wrong with the structure
	state state
	// cause is why the state isn't good, or can't be told.
	cause error
}

// classify tells by its name what an entry is, and the name of its bundle.
func classify(name string) (base string, k kind) {
	// What a publication works on under a name of its own ends with a nonce.
	if i := strings.LastIndexByte(name, '.'); i > 0 && isNonce(name[i+1:]) {
		if base, k := classify(name[:i]); k == kindPublishing || k == kindRemoving {
			return base, k
		}
	}
	for _, s := range []struct {
		suffix string
		kind   kind
	}{{lockSuffix, kindLock}, {".publishing", kindPublishing}, {".removing", kindRemoving}} {
		if base, ok := strings.CutSuffix(name, s.suffix); ok && base != "" {
			return base, s.kind
		}
	}
	// What is set aside twice gets a number: step_40.damaged.2.
	plain := name
	if i := strings.LastIndexByte(name, '.'); i > 0 && isDigits(name[i+1:]) {
		plain = name[:i]
	}
	for _, k := range []kind{kindDamaged, kindSuperseded} {
		if base, ok := strings.CutSuffix(plain, "."+string(k)); ok && base != "" {
			return base, k
		}
	}
	return name, kindBundle
}

func isNonce(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// newEntry returns nil for what has nothing to do with bundles.
func newEntry(dir, name string) *entry {
	e := &entry{name: name, path: filepath.Join(dir, name), step: -1}
	e.base, e.kind = classify(name)
	n, ok := publish.ParseStepName(e.base)
	if ok {
		e.step = n
		return e
	}
	// Other names may belong to anything.
	switch e.kind {
	case kindLock:
		return e
	case kindPublishing:
		if !isDir(filepath.Join(e.path, "fields")) {
			return nil
		}
	default:
		if !exists(filepath.Join(e.path, "metadata.json")) && !exists(filepath.Join(e.path, "checksums.txt")) {
			return nil
		}
	}
	return e
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// looksLikeBundle tells a bundle, good or bad, from a directory of bundles.
func looksLikeBundle(path string) bool {
	for _, name := range []string{"metadata.json", "checksums.txt"} {
		if exists(filepath.Join(path, name)) {
			return true
		}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return false
	}
	base, _ := classify(filepath.Base(abs))
	_, ok := publish.ParseStepName(base)
	return ok
}

// list looks at the entries of a directory of bundles, newest first: by
// structure and size at the bundles, and at the locks of the leftovers.
func list(dir string) ([]*entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var entries []*entry
	for _, f := range files {
		e := newEntry(dir, f.Name())
		if e == nil {
			continue
		}
		e.inspect()
		if e.state != stateGood && e.gone() {
			continue
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, newestFirst)
	return entries, nil
}

// inspect sets the state of an entry.
func (e *entry) inspect() {
	switch e.kind {
	case kindPublishing, kindRemoving, kindLock:
		held, err := lockHeld(filepath.Join(filepath.Dir(e.path), e.base+lockSuffix))
		switch {
		case err != nil:
			e.state, e.cause = stateUnknown, err
		case held:
			e.state = stateInUse
		default:
			e.state = stateLeftover
		}
	default:
		var err error
		e.info, err = publish.Inspect(e.path)
		e.whole = err == nil
		e.judge(err)
	}
}

// gone reports whether an entry of a directory is no longer there. A run that keeps
// few bundles renames the oldest before it removes them, and one that has ended
// removes its leftovers: what was seen of them then means nothing.
func (e *entry) gone() bool {
	_, err := os.Lstat(e.path)
	return errors.Is(err, fs.ErrNotExist)
}

func (e *entry) judge(err error) {
	e.state, e.cause = stateGood, err
	switch {
	case err == nil:
	case isDamage(err):
		e.state = stateBad
	default:
		e.state = stateUnreadable
	}
}

// isDamage tells a bundle that is no good from one that can't be judged.
func isDamage(err error) bool {
	return errors.Is(err, publish.ErrDamaged) || errors.Is(err, publish.ErrNotABundle)
}

// increment is the number that entries are sorted by; -1 if there is none.
func (e *entry) increment() int64 {
	if e.step < 0 && e.info.Metadata.FormatVersion != 0 {
		return e.info.Metadata.AcceptedIncrement
	}
	return e.step
}

func newestFirst(a, b *entry) int {
	return cmp.Or(
		cmp.Compare(b.increment(), a.increment()),
		cmp.Compare(slices.Index(kinds, a.kind), slices.Index(kinds, b.kind)),
		compareNames(a.name, b.name),
	)
}

// compareNames orders names by their parts, digits by their number: step_9 is
// before step_10.
func compareNames(a, b string) int {
	for x, y := a, b; ; {
		if x == "" || y == "" {
			return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
		}
		p, q := leadingDigits(x), leadingDigits(y)
		if p != "" && q != "" {
			m, n := strings.TrimLeft(p, "0"), strings.TrimLeft(q, "0")
			if c := cmp.Or(cmp.Compare(len(m), len(n)), cmp.Compare(m, n)); c != 0 {
				return c
			}
			x, y = x[len(p):], y[len(q):]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
}

func leadingDigits(s string) string {
	return s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
}

// bundlesIn returns the bundles of a directory, newest first, without those that are set
// aside. These may be none; a directory without anything of a bundle is an error.
func bundlesIn(dir string) ([]*entry, error) {
	entries, err := list(dir)
	if err == nil && len(entries) == 0 {
		err = errNoBundles
	}
	return slices.DeleteFunc(entries, func(e *entry) bool { return e.kind != kindBundle }), err
}

// openBundle opens a bundle. Of an error the reason is returned: the command says what it
// was doing.
func openBundle(path string) (*publish.Bundle, error) {
	b, err := publish.OpenBundle(path)
	if err != nil {
		return nil, cmp.Or(errors.Unwrap(err), err)
	}
	return b, nil
}

func bundleEntry(path string) *entry {
	e := &entry{name: path, path: path, kind: kindBundle, step: -1}
	e.inspect()
	return e
}

// errNoBundles says that a directory has nothing to work on.
var errNoBundles = fmt.Errorf("%w, nor a directory of them", errNeither)

// restart is what a service with "restart_from": "latest" would do, as far as
// the states of the entries tell.
type restart struct {
	from   string   // name of the bundle; empty: none
	passed []string // bundles above it that are damaged or not finite
	cause  error    // why the restart would fail
	fresh  bool     // there are no bundles: a fresh start

	notFinite bool // no good bundle is finite
}

func latest(entries []*entry) restart {
	var r restart
	var notFinites []*entry
	for _, e := range entries {
		if e.kind != kindBundle || e.step < 0 {
			continue
		}
		switch e.state {
		case stateGood:
			if notFinite(e.info.Metadata) != "" {
				notFinites = append(notFinites, e)
				r.passed = append(r.passed, e.name)
				continue
			}
			r.from = e.name
			return r
		case stateBad:
			r.passed = append(r.passed, e.name)
		default:
			r.cause = fmt.Errorf("%s: %s", e.name, reason(e.path, e.cause))
			return r
		}
	}
	if len(notFinites) > 0 {
		r.from, r.notFinite = notFinites[0].name, true
		r.passed = r.passed[:slices.Index(r.passed, r.from)]
		return r
	}
	if len(r.passed) > 0 {
		r.cause = fmt.Errorf("none of the %s is good", count(int64(len(r.passed)), "bundle"))
		if len(r.passed) == 1 {
			r.cause = errors.New("the only bundle is not good")
		}
		return r
	}
	r.fresh = true
	return r
}
