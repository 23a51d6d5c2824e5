package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
)

// Kind names an operation in the rules and the trace of an Inject.
type Kind string

// The kinds of operations. Opening counts as OpCreate if the flags allow it to
// create or to truncate the file, whether it does or not.
const (
	OpOpen            Kind = "open"
	OpCreate          Kind = "create"
	OpMkdir           Kind = "mkdir"
	OpLstat           Kind = "lstat"
	OpStat            Kind = "stat"
	OpReadDir         Kind = "readdir"
	OpRename          Kind = "rename"
	OpRenameNoReplace Kind = "rename_noreplace"
	OpRemove          Kind = "remove"
	OpSyncDir         Kind = "syncdir"
	OpLock            Kind = "lock"
	OpUnlock          Kind = "unlock"
	OpUsage           Kind = "usage"
	OpRead            Kind = "read"
	OpWrite           Kind = "write"
	OpReadAt          Kind = "readat"
	OpWriteAt         Kind = "writeat"
	OpFstat           Kind = "fstat"
	OpSync            Kind = "sync"
	OpTruncate        Kind = "truncate"
	OpAllocate        Kind = "allocate"
	OpClose           Kind = "close"
)

// Reads reports whether operations of this kind only look: a crash after one
// leaves what a crash before it leaves.
func (k Kind) Reads() bool {
	switch k {
	case OpOpen, OpLstat, OpStat, OpReadDir, OpUsage, OpRead, OpReadAt, OpFstat, OpClose:
		return true
	}
	return false
}

// Op is one operation on an Inject.
type Op struct {
	Index  int // in the order of all operations, from 1
	Kind   Kind
	Name   string // as given; for files and locks the name they were opened by
	To     string // of a rename
	Offset int64  // of ReadAt and WriteAt
	Size   int64  // bytes to read or write, or the new size
}

// String returns the line of the operation in the trace, as in "3 mkdir /a/b".
func (op Op) String() string {
	s := fmt.Sprintf("%d %s %s", op.Index, op.Kind, op.Name)
	switch op.Kind {
	case OpRename, OpRenameNoReplace:
		return s + " -> " + op.To
	case OpRead, OpWrite:
		return fmt.Sprintf("%s %d bytes", s, op.Size)
	case OpReadAt, OpWriteAt:
		return fmt.Sprintf("%s %d bytes at %d", s, op.Size, op.Offset)
	case OpTruncate, OpAllocate:
		return fmt.Sprintf("%s to %d", s, op.Size)
	}
	return s
}

// Rule makes operations fail. An operation must meet all the conditions that are
// set. A rule with none meets every operation.
type Rule struct {
	At      int           // the operation with this index
	From    int           // this index and all later ones
	Kinds   []Kind        // one of these
	Pattern string        // path.Match with the whole name, or with its last part if the pattern has no slash; either name of a rename
	Match   func(Op) bool // must not use the Inject
	Times   int           // so many operations, then the rule is used up

	// Err is the cause of the error, best an errno; nil stands for EIO. It is
	// wrapped like a real one.
	Err error

	// Short lets Write and WriteAt write that many bytes before they fail.
	Short int

	// Late reports the failure of an operation that took effect, as a network
	// filesystem does that lost the answer.
	Late bool
}

// Inject passes the calls to another filesystem on, one at a time. It numbers
// and records them, fails the ones that rules name, and calls hooks, in which a
// test can clone a crashed Mem.
//
// An operation that fails by a rule has no effect, with these exceptions: Short
// and Late; a file is closed and a lock given up even when Close or Release fail
// (but the lock file stays); and after a failed Sync or SyncDir a [Mem] below
// does as its crash model says.
type Inject struct {
	base FS

	mu            sync.Mutex
	rules         []*Rule
	ops           []Op
	errs          []error
	before, after func(Op, error)

	delay atomic.Pointer[func(Op)]
}

// NewInject returns an Inject with no rules.
func NewInject(base FS) *Inject { return &Inject{base: base} }

// Fail adds a rule. The first rule that meets an operation counts. The error is
// that of a malformed pattern.
func (in *Inject) Fail(r Rule) error {
	if _, err := path.Match(r.Pattern, ""); err != nil {
		return fmt.Errorf("add rule with pattern %q: %w", r.Pattern, err)
	}
	in.add(r)
	return nil
}

// FailAt fails the operation with the given index, counted from 1.
func (in *Inject) FailAt(index int, err error) { in.add(Rule{At: index, Err: err}) }

// FailFrom fails the operation with the given index and all later ones, like a
// process that does not get through any more.
func (in *Inject) FailFrom(index int, err error) { in.add(Rule{From: index, Err: err}) }

func (in *Inject) add(r Rule) {
	if r.Err == nil {
		r.Err = syscall.EIO
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rules = append(in.rules, &r)
}

// ClearRules removes all rules. Count and trace go on.
func (in *Inject) ClearRules() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.rules = nil
}

// Before sets a function to be called before each operation, failing ones
// included. No other operation runs meanwhile, so it must not use the Inject,
// but it may use the filesystem below.
func (in *Inject) Before(hook func(Op)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.before = func(op Op, _ error) { hook(op) }
}

// Delay sets a function to be called before each operation, which may take its time:
// other operations go on meanwhile. The operation has no number yet.
func (in *Inject) Delay(hook func(Op)) { in.delay.Store(&hook) }

// After sets a function to be called after each operation, like Before, with the
// operation's result.
func (in *Inject) After(hook func(Op, error)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.after = hook
}

// Count returns the number of operations so far.
func (in *Inject) Count() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.ops)
}

// Ops returns the operations so far.
func (in *Inject) Ops() []Op {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.ops)
}

// Trace returns one line for each operation so far, with its error if it had one:
// "3 mkdir /a/b" or "3 mkdir /a/b: file exists".
func (in *Inject) Trace() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	lines := make([]string, len(in.ops))
	for i, op := range in.ops {
		lines[i] = op.String()
		if err := in.errs[i]; err != nil && err != io.EOF {
			lines[i] += ": " + cause(err).Error()
		}
	}
	return lines
}

// cause strips what the trace line says already.
func cause(err error) error {
	var pe *fs.PathError
	var le *os.LinkError
	switch {
	case errors.As(err, &pe):
		return pe.Err
	case errors.As(err, &le):
		return le.Err
	}
	return err
}

// run counts op, and carries it out by call or lets it fail. A rule's Short is
// handed to call as the number of bytes to write; otherwise it gets -1. Where
// failing has an effect, fail brings it about.
func (in *Inject) run(op Op, call func(short int) error, fail func()) error {
	if delay := in.delay.Load(); delay != nil {
		(*delay)(op)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	op.Index = len(in.ops) + 1
	in.ops, in.errs = append(in.ops, op), append(in.errs, nil)
	if in.before != nil {
		in.before(op, nil)
	}
	var err error
	switch r := in.rule(op); {
	case r == nil:
		err = call(-1)
	case r.Late:
		// The result is what got lost.
		_ = call(-1)
		err = op.failure(r.Err)
	case r.Short > 0 && (op.Kind == OpWrite || op.Kind == OpWriteAt):
		if err = call(r.Short); err == nil {
			err = op.failure(r.Err)
		}
	default:
		if fail != nil {
			fail()
		}
		err = op.failure(r.Err)
	}
	in.errs[op.Index-1] = err
	if in.after != nil {
		in.after(op, err)
	}
	return err
}

// rule returns the rule that lets op fail, or nil.
func (in *Inject) rule(op Op) *Rule {
	for i, r := range in.rules {
		if !r.meets(op) {
			continue
		}
		if r.Times > 0 {
			if r.Times--; r.Times == 0 {
				in.rules = slices.Delete(in.rules, i, i+1)
			}
		}
		return r
	}
	return nil
}

func (r *Rule) meets(op Op) bool {
	return (r.At == 0 || op.Index == r.At) &&
		op.Index >= r.From &&
		(len(r.Kinds) == 0 || slices.Contains(r.Kinds, op.Kind)) &&
		(r.Pattern == "" || r.names(op.Name) || op.To != "" && r.names(op.To)) &&
		(r.Match == nil || r.Match(op))
}

func (r *Rule) names(name string) bool {
	if !strings.Contains(r.Pattern, "/") {
		name = path.Base(name)
	}
	// Fail has checked the pattern.
	ok, _ := path.Match(r.Pattern, name)
	return ok
}

func (op Op) failure(err error) error {
	if op.Kind == OpRename || op.Kind == OpRenameNoReplace {
		return linkError(op.Name, op.To, err)
	}
	return pathError(string(op.Kind), op.Name, err)
}

// OpenFile implements FS.
func (in *Inject) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	kind := OpOpen
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		kind = OpCreate
	}
	var f File
	err := in.run(Op{Kind: kind, Name: name}, func(int) (err error) {
		f, err = in.base.OpenFile(name, flag, perm)
		return err
	}, nil)
	if err != nil {
		if f != nil { // a late failure
			f.Close()
		}
		return nil, err
	}
	return &injectFile{in: in, base: f}, nil
}

// Mkdir implements FS.
func (in *Inject) Mkdir(name string, perm fs.FileMode) error {
	return in.run(Op{Kind: OpMkdir, Name: name}, func(int) error { return in.base.Mkdir(name, perm) }, nil)
}

// Lstat implements FS.
func (in *Inject) Lstat(name string) (fs.FileInfo, error) {
	return get(in, Op{Kind: OpLstat, Name: name}, func() (fs.FileInfo, error) { return in.base.Lstat(name) })
}

// Stat implements FS.
func (in *Inject) Stat(name string) (fs.FileInfo, error) {
	return get(in, Op{Kind: OpStat, Name: name}, func() (fs.FileInfo, error) { return in.base.Stat(name) })
}

// ReadDir implements FS.
func (in *Inject) ReadDir(name string) ([]fs.DirEntry, error) {
	return get(in, Op{Kind: OpReadDir, Name: name}, func() ([]fs.DirEntry, error) { return in.base.ReadDir(name) })
}

// Usage implements FS.
func (in *Inject) Usage(name string) (Usage, error) {
	return get(in, Op{Kind: OpUsage, Name: name}, func() (Usage, error) { return in.base.Usage(name) })
}

// get runs an operation that returns something.
func get[T any](in *Inject, op Op, call func() (T, error)) (T, error) {
	var v, none T
	if err := in.run(op, func(int) (err error) {
		v, err = call()
		return err
	}, nil); err != nil {
		return none, err
	}
	return v, nil
}

// Rename implements FS.
func (in *Inject) Rename(oldname, newname string) error {
	op := Op{Kind: OpRename, Name: oldname, To: newname}
	return in.run(op, func(int) error { return in.base.Rename(oldname, newname) }, nil)
}

// RenameNoReplace implements FS.
func (in *Inject) RenameNoReplace(oldname, newname string) error {
	op := Op{Kind: OpRenameNoReplace, Name: oldname, To: newname}
	return in.run(op, func(int) error { return in.base.RenameNoReplace(oldname, newname) }, nil)
}

// Remove implements FS.
func (in *Inject) Remove(name string) error {
	return in.run(Op{Kind: OpRemove, Name: name}, func(int) error { return in.base.Remove(name) }, nil)
}

// SyncDir implements FS.
func (in *Inject) SyncDir(name string) error {
	return in.run(Op{Kind: OpSyncDir, Name: name}, func(int) error { return in.base.SyncDir(name) }, func() {
		if m, ok := in.base.(*Mem); ok {
			m.failSyncDir(name)
		}
	})
}

// Lock implements FS.
func (in *Inject) Lock(name string) (Lock, error) {
	var l Lock
	err := in.run(Op{Kind: OpLock, Name: name}, func(int) (err error) {
		l, err = in.base.Lock(name)
		return err
	}, nil)
	if err != nil {
		if l != nil { // a late failure
			giveUp(l)
		}
		return nil, err
	}
	return &injectLock{in: in, base: l, name: name}, nil
}

type injectLock struct {
	in   *Inject
	base Lock
	name string
}

func (l *injectLock) Release() error {
	return l.in.run(Op{Kind: OpUnlock, Name: l.name}, func(int) error { return l.base.Release() }, func() { giveUp(l.base) })
}

func (l *injectLock) Describe(text string) error {
	return l.in.run(Op{Kind: OpWrite, Name: l.name, Size: int64(len(text))}, func(int) error { return l.base.Describe(text) }, nil)
}

func (l *injectLock) Current() (bool, error) {
	return get(l.in, Op{Kind: OpLstat, Name: l.name}, l.base.Current)
}

// giveUp unlocks, and leaves the lock file behind where it can. The failure that
// is reported is the injected one.
func giveUp(l Lock) {
	if own, ok := l.(interface{ release(remove bool) error }); ok {
		_ = own.release(false)
		return
	}
	_ = l.Release()
}

type injectFile struct {
	in   *Inject
	base File
}

func (f *injectFile) Name() string { return f.base.Name() }

func (f *injectFile) run(op Op, call func() error) error {
	op.Name = f.base.Name()
	return f.in.run(op, func(int) error { return call() }, nil)
}

func (f *injectFile) Read(dst []byte) (n int, err error) {
	err = f.run(Op{Kind: OpRead, Size: int64(len(dst))}, func() (err error) {
		n, err = f.base.Read(dst)
		return err
	})
	return n, err
}

func (f *injectFile) ReadAt(dst []byte, off int64) (n int, err error) {
	err = f.run(Op{Kind: OpReadAt, Offset: off, Size: int64(len(dst))}, func() (err error) {
		n, err = f.base.ReadAt(dst, off)
		return err
	})
	return n, err
}

func (f *injectFile) Write(src []byte) (int, error) {
	return f.write(Op{Kind: OpWrite}, src, f.base.Write)
}

func (f *injectFile) WriteAt(src []byte, off int64) (int, error) {
	return f.write(Op{Kind: OpWriteAt, Offset: off}, src, func(src []byte) (int, error) {
		return f.base.WriteAt(src, off)
	})
}

func (f *injectFile) write(op Op, src []byte, call func([]byte) (int, error)) (n int, err error) {
	op.Name, op.Size = f.base.Name(), int64(len(src))
	err = f.in.run(op, func(short int) (err error) {
		if short >= 0 {
			src = src[:min(short, len(src))]
		}
		n, err = call(src)
		return err
	}, nil)
	return n, err
}

func (f *injectFile) Stat() (fs.FileInfo, error) {
	return get(f.in, Op{Kind: OpFstat, Name: f.base.Name()}, f.base.Stat)
}

func (f *injectFile) Sync() error {
	return f.in.run(Op{Kind: OpSync, Name: f.base.Name()}, func(int) error { return f.base.Sync() }, func() {
		if m, ok := f.base.(*memFile); ok {
			m.failSync()
		}
	})
}

func (f *injectFile) Truncate(size int64) error {
	return f.run(Op{Kind: OpTruncate, Size: size}, func() error { return f.base.Truncate(size) })
}

func (f *injectFile) Allocate(size int64) error {
	return f.run(Op{Kind: OpAllocate, Size: size}, func() error { return f.base.Allocate(size) })
}

// Forget passes the hint on.
func (f *injectFile) Forget() { Forget(f.base) }

func (f *injectFile) Close() error {
	call := func() error { return f.base.Close() }
	return f.in.run(Op{Kind: OpClose, Name: f.base.Name()}, func(int) error { return call() }, func() { _ = call() })
}
