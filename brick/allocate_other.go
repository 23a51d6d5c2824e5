//go:build !linux

package brick

import "github.com/fieldstone-io/fieldstone/internal/vfs"

// allocatePart reserves the space of a range of a file and of all that lies before
// it, and makes the file long enough. It never changes content and never shrinks the
// file.
func allocatePart(f vfs.File, offset, size int64) error {
	return f.Allocate(offset + size)
}
