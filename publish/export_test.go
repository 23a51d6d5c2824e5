package publish

import "github.com/fieldstone-io/fieldstone/internal/vfs"

// Filesystem replaces the operating system's files.
func Filesystem(fs vfs.FS) Option { return func(o *options) { o.fs = fs } }

// impatient doesn't wait for a slow network filesystem.
func impatient(o *options) { o.look.Tries = 1 }
