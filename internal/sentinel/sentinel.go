// Package sentinel knows the sentinel errors that keep their identity when they travel
// from one rank to the others.
//
// Each package of this module registers its own in an init function, also those that know
// nothing of ranks: whichever package carries an error to an agreement, errors.Is then
// has the same answer on every rank. The package imports nothing of this module, so
// that all may import it. A program registers its own errors with comm.Register.
package sentinel

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

// known holds the registered errors. Those of the standard library are there from the
// start.
var known = struct {
	sync.RWMutex
	byName map[string]error
}{byName: map[string]error{
	"context.Canceled":         context.Canceled,
	"context.DeadlineExceeded": context.DeadlineExceeded,
	"errors.ErrUnsupported":    errors.ErrUnsupported,
	"fs.ErrClosed":             fs.ErrClosed,
	"fs.ErrExist":              fs.ErrExist,
	"fs.ErrInvalid":            fs.ErrInvalid,
	"fs.ErrNotExist":           fs.ErrNotExist,
	"fs.ErrPermission":         fs.ErrPermission,
	"io.EOF":                   io.EOF,
	"io.ErrShortWrite":         io.ErrShortWrite,
	"io.ErrUnexpectedEOF":      io.ErrUnexpectedEOF,
	"os.ErrDeadlineExceeded":   os.ErrDeadlineExceeded,
}}

// Register makes an error known under a name that is the same in every process of the
// program, by custom that of the package and the variable: "brick.ErrSize". It panics on
// a nil error and on a name that stands for another error already, which are mistakes in
// the program.
func Register(name string, err error) {
	known.Lock()
	defer known.Unlock()
	if err == nil {
		panic("sentinel: register " + name + ": nil error")
	}
	if old, ok := known.byName[name]; ok && old != err {
		panic("sentinel: register " + name + ": the name is taken")
	}
	known.byName[name] = err
}

// RegisterAll registers the errors of a package, by the names of their variables.
func RegisterAll(pkg string, errs map[string]error) {
	for name, err := range errs {
		Register(pkg+"."+name, err)
	}
}

// Names returns the names of the registered errors that err wraps, in no order.
func Names(err error) []string {
	known.RLock()
	defer known.RUnlock()
	var names []string
	for name, sentinel := range known.byName {
		if errors.Is(err, sentinel) {
			names = append(names, name)
		}
	}
	return names
}

// Errors returns the errors of the given names. Names that no package of this program
// has registered are left out.
func Errors(names []string) []error {
	known.RLock()
	defer known.RUnlock()
	var list []error
	for _, name := range names {
		if err, ok := known.byName[name]; ok {
			list = append(list, err)
		}
	}
	return list
}
