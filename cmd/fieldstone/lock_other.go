//go:build !linux

package main

import (
	"errors"
	"io/fs"
	"os"
)

// lockHeld can only tell that a lock that doesn't exist isn't held.
func lockHeld(path string) (bool, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return false, errors.ErrUnsupported
}
