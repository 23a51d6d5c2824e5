package publish

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/comm"
)

// Errors that a caller may want to tell apart. They hold, with errors.Is, on every
// rank of a collective call.
var (
	// ErrExists: something is at the final path already. Nothing is ever
	// overwritten.
	ErrExists = errors.New("the path exists already")
	// ErrBeingPublished: another job holds the lock of the final path.
	ErrBeingPublished = errors.New("being published by another job")
	// ErrInUse: another service that saves holds the checkpoint directory.
	ErrInUse = errors.New("in use by another job")
	// ErrTakenOver: the staging directory isn't ours any more.
	ErrTakenOver = errors.New("the staging directory was taken over by another job")
	// ErrDurabilityUnknown: the bundle is published and complete, but whether its
	// name survives a crash of the machine isn't known.
	ErrDurabilityUnknown = errors.New("published, durability unknown")
	// ErrMaybePublished: the rename of the bundle to its path failed, and it can't be seen
	// whether the filesystem has carried it out. Either the bundle is at its path, whole,
	// or nothing is; the staging directory may be left beside it.
	ErrMaybePublished = errors.New("it isn't known whether the bundle is published")
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

	// ErrNotABundle says that a path is not a bundle: it isn't a directory, or
	// it holds no metadata.json.
	ErrNotABundle = errors.New("not a bundle")

	// ErrVersion says that a bundle is of a format version that this package
	// doesn't know. The bundle may be perfectly good.
	ErrVersion = errors.New("format version not supported")

	// ErrMetadata says that metadata are not what the format demands: not JSON,
	// a required key missing, a value of a wrong type or out of range. The error
	// is a [*MetadataError] that names the key.
	ErrMetadata = errors.New("invalid metadata")

	// ErrDamaged says that a bundle's files don't agree with its metadata and
	// checksums. The error is a [*DamageError] that names the file.
	ErrDamaged = errors.New("bundle is damaged")

	// ErrChecksum says that a file isn't the one whose checksum was recorded.
	// An error of this kind matches ErrDamaged too.
	ErrChecksum = errors.New("checksum differs")

	// ErrBoundary says that boundary conditions can't be saved, or can't be
	// restored from a bundle: their number or configuration differs, a state is
	// missing or malformed, or the ranks don't have the same state.
	ErrBoundary = errors.New("boundary conditions don't fit")

	// ErrNonFinite: fields have cells that are NaN or infinite, and the policy is to
	// refuse them ([RefuseNonFinite]). Nothing is published.
	ErrNonFinite = errors.New("NaN or infinite cells are refused")

	// ErrNoField says that a bundle has no field of the given id.
	ErrNoField = errors.New("no such field")
)

func init() {
	for name, err := range map[string]error{
		"ErrExists":            ErrExists,
		"ErrBeingPublished":    ErrBeingPublished,
		"ErrInUse":             ErrInUse,
		"ErrTakenOver":         ErrTakenOver,
		"ErrDurabilityUnknown": ErrDurabilityUnknown,
		"ErrMaybePublished":    ErrMaybePublished,
		"ErrInput":             ErrInput,
		"ErrMismatch":          ErrMismatch,
		"ErrFieldsUndefined":   ErrFieldsUndefined,
		"ErrNotABundle":        ErrNotABundle,
		"ErrVersion":           ErrVersion,
		"ErrMetadata":          ErrMetadata,
		"ErrDamaged":           ErrDamaged,
		"ErrChecksum":          ErrChecksum,
		"ErrBoundary":          ErrBoundary,
		"ErrNoField":           ErrNoField,
		"ErrNonFinite":         ErrNonFinite,
	} {
		comm.Register("publish."+name, err)
	}
}
