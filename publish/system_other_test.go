//go:build !linux

package publish

import (
	"errors"
	"testing"
)

// withMount returns false: tests mount nothing here.
func withMount(*testing.T, func(t *testing.T, dir string, mount func(kind, options string))) bool {
	return false
}

func remountReadOnly(string) error { return errors.ErrUnsupported }

func mkfifo(string) error { return errors.ErrUnsupported }
