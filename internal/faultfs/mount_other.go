//go:build !linux

package faultfs

import "testing"

// Mount skips the test: the filesystem takes Linux.
func Mount(tb testing.TB, base, at string, options ...Option) {
	tb.Helper()
	tb.Skip("the filesystem takes Linux")
}
