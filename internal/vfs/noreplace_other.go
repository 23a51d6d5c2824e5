//go:build !(linux || darwin || windows)

package vfs

func renameNoReplace(_, _ string) error { return ErrUnsupported }
