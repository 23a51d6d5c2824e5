package main

import (
	"bufio"
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A kind that can't do anything answers each command with one line, which says what it is.
func TestSubjectsThatCannot(t *testing.T) {
	defer func(kinds []subjectKind) { subjectKinds = kinds }(subjectKinds)
	subjectKinds = append(subjectKinds, subjectKind{func(at unable, info fs.FileInfo) (subject, error) {
		if filepath.Ext(at.path) != ".planted" {
			return nil, nil
		}
		at.kind = "a planted file"
		return at, nil
	}, ""})
	path := filepath.Join(t.TempDir(), "x.planted")
	if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"show":   "is a planted file, not something that can be shown",
		"verify": "is a planted file, not something that can be verified",
		"ls":     "is a planted file, not a directory of bundles (see 'fieldstone show')",
		"diff":   "is a planted file, not something that can be compared",
	} {
		args := []string{command, path}
		if command == "diff" {
			args = append(args, path)
		}
		var stderr strings.Builder
		status := execute(context.Background(), args, io.Discard, &stderr)
		if got := stderr.String(); status != statusFailed || got != "fieldstone: "+command+" "+path+": "+want+"\n" {
			t.Errorf("%s: status %d, %q", command, status, got)
		}
	}
	a := &app{out: bufio.NewWriter(io.Discard), err: io.Discard}
	s, err := a.identify(path)
	if err != nil {
		t.Fatal(err)
	}
	const want = "is a planted file, not a run file"
	if _, err := s.settings(context.Background(), "settings"); err == nil || err.Error() != want {
		t.Errorf("settings: %v", err)
	}
	if err := a.wantRunFile(path); err == nil || err.Error() != want {
		t.Errorf("a run file is wanted: %v", err)
	}
}
