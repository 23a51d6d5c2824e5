package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"unicode/utf8"
)

// ErrOneFile is in the chain of errors that say that two names lead to one file: they differ in
// what the filesystem doesn't tell apart, such as case or Unicode normal form.
var ErrOneFile = errors.New("the filesystem takes them for one name")

// MayBeOne reports whether some filesystem might take two of the paths for one: they differ
// in the case of ASCII letters only, or have others beyond their common directory.
func MayBeOne(paths []string) bool {
	if len(paths) < 2 {
		return false
	}
	common := paths[0]
	for _, p := range paths[1:] {
		for !strings.HasPrefix(p, common) {
			common = common[:len(common)-1]
		}
	}
	common = common[:strings.LastIndexAny(common, `/\`)+1]
	seen := make(map[string]bool, len(paths))
	for _, p := range paths {
		rest := p[len(common):]
		for _, b := range []byte(rest) {
			if b >= utf8.RuneSelf {
				return true
			}
		}
		key := strings.ToLower(rest)
		if seen[key] {
			return true
		}
		seen[key] = true
	}
	return false
}

// Distinct looks whether the paths, which exist, lead to as many files. The error wraps
// ErrOneFile and names the first two that don't.
func Distinct(fsys FS, paths []string) error {
	looks := make([]fs.FileInfo, len(paths))
	for i, p := range paths {
		info, err := fsys.Stat(p)
		if err != nil {
			return err
		}
		looks[i] = info
		for k := range i {
			if paths[k] != p && SameFile(looks[k], info) {
				return fmt.Errorf("%q and %q: %w", paths[k], p, ErrOneFile)
			}
		}
	}
	return nil
}
