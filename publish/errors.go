package publish

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/comm"
)

// Errors of publishing and loading that a caller may want to tell apart. They
// hold, with errors.Is, on every rank of the call.
var (
	// ErrExists: something is at the final path already. Nothing is ever
	// overwritten.
	ErrExists = errors.New("the path exists already")
	// ErrBeingPublished: another job holds the lock of the final path.
	ErrBeingPublished = errors.New("being published by another job")
	// ErrTakenOver: the staging directory isn't ours any more.
	ErrTakenOver = errors.New("the staging directory was taken over by another job")
	// ErrDurabilityUnknown: the bundle is published and complete, but whether its
	// name survives a crash of the machine isn't known.
	ErrDurabilityUnknown = errors.New("published, durability unknown")
	// ErrInput: what the caller gave can't be published, or the ranks gave
	// different things. Nothing was created.
	ErrInput = errors.New("invalid input")
	// ErrMismatch: the bundle isn't of the wanted grid, periodicity, method or
	// boundary conditions. Nothing was changed.
	ErrMismatch = errors.New("the bundle does not match")
	// ErrFieldsUndefined: a load failed after cells had changed. Of the default
	// load only the upload to a device, the solver's clock, or setting aside other
	// bundles can fail so late; an in-place load at any time.
	ErrFieldsUndefined = errors.New("the fields are now undefined")
)

func init() {
	for name, err := range map[string]error{
		"exists":             ErrExists,
		"being-published":    ErrBeingPublished,
		"taken-over":         ErrTakenOver,
		"durability-unknown": ErrDurabilityUnknown,
		"input":              ErrInput,
		"mismatch":           ErrMismatch,
		"fields-undefined":   ErrFieldsUndefined,
	} {
		comm.Register("publish."+name, err)
	}
}
