package publish

import (
	"errors"

	"github.com/fieldstone-io/fieldstone/comm"
)

var (
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

	// ErrNoField says that a bundle has no field of the given id.
	ErrNoField = errors.New("no such field")
)

func init() {
	comm.Register("publish.ErrNotABundle", ErrNotABundle)
	comm.Register("publish.ErrVersion", ErrVersion)
	comm.Register("publish.ErrMetadata", ErrMetadata)
	comm.Register("publish.ErrDamaged", ErrDamaged)
	comm.Register("publish.ErrChecksum", ErrChecksum)
	comm.Register("publish.ErrBoundary", ErrBoundary)
	comm.Register("publish.ErrNoField", ErrNoField)
}
