//go:build !linux || !(amd64 || arm64)

package main

import (
	"errors"
	"fmt"
)

// libraries can't be loaded here.
type libraries struct{}

func (*libraries) release() error { return nil }

func (*worker) call(_ *state, library, _ string, _ []string) (fn func() error, offsets []int64, err error) {
	return nil, nil, fmt.Errorf("library %s: %w: %w", library, errMissing, errors.ErrUnsupported)
}
