package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// nothingAt is the text of an error about a path at which there is nothing: it names a
// directory above it that is missing, or the place to which a link leads.
func nothingAt(path string, err error) string {
	text := err.Error()
	if !errors.Is(err, fs.ErrNotExist) {
		return text
	}
	if to, err := os.Readlink(path); err == nil {
		return fmt.Sprintf("%s (it is a symbolic link to %s)", text, to)
	}
	if dir := vfs.MissingDir(vfs.OS, path); dir != "" {
		return fmt.Sprintf("%s (there is no directory %s)", text, dir)
	}
	return text
}
