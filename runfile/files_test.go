package runfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestNamesOfFiles(t *testing.T) {
	for got, want := range map[string]string{
		SegmentFile("out", "burn", 1):     "out/burn.segment0001.h5",
		SegmentFile("out", "burn", 12345): "out/burn.segment12345.h5",
		SegmentFile("", "burn", 1):        "burn.segment0001.h5",
		CheckpointFile("out", "burn"):     "out/burn.checkpoint.h5",
		PreviousFile("out", "burn"):       "out/burn.checkpoint.prev.h5",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func TestNamesOfRuns(t *testing.T) {
	for name, ok := range map[string]bool{
		"burn": true, "burn 7.b": true, "größe": true, strings.Repeat("n", 200): true,
		"": false, ".": false, "..": false, ".hidden": false, "a/b": false, "a\nb": false, "a\x00b": false, strings.Repeat("n", 201): false,
	} {
		if err := CheckName(name); (err == nil) != ok || err != nil && !errors.Is(err, ErrInput) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestSegmentsAreInTheOrderOfTheirNumbers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"burn.segment0010.h5", "burn.segment0002.h5", "burn.segment10000.h5", "burn.segment9999.h5",
		// None of these is a segment of the run.
		"burn.segment0000.h5", "burn.segment3.h5", "burn.segment00003.h5", "burn.segment+003.h5", "burn.segment-001.h5", "burn.segment0003.h5.tmp",
		"burn.segmentabcd.h5", "burn.checkpoint.h5", "burner.segment0003.h5", "a.burn.segment0003.h5", "burn.segment0003.segment0004.h5",
		"burn.segment99999999999999999999.h5",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := SegmentFiles(dir, "burn")
	if err != nil {
		t.Fatal(err)
	}
	var want []Segment
	for _, n := range []int{2, 10, 9999, 10000} {
		want = append(want, Segment{n, SegmentFile(dir, "burn", n)})
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, err := SegmentFiles(filepath.Join(dir, "missing"), "burn"); got != nil || err != nil {
		t.Errorf("where no directory is: %v, %v", got, err)
	}
	if _, err := SegmentFiles(dir, "a/b"); !errors.Is(err, ErrInput) {
		t.Errorf("a run named a/b: %v", err)
	}
	in := vfs.NewInject(vfs.OS)
	in.FailAt(1, syscall.EACCES)
	if _, err := segmentFiles(in, dir, "burn"); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), dir) {
		t.Errorf("a directory that can't be read: %v", err)
	}
}

func TestOptionsWithoutAFunctionAreRefused(t *testing.T) {
	for name, o := range map[string]Option{"Fields": Fields(nil), "Warn": Warn(nil)} {
		if _, err := newOptions([]Option{o}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVersions(t *testing.T) {
	for text, want := range map[string][3]int{"0.0.5": {0, 0, 5}, "1.22.333": {1, 22, 333}, "00.0.01": {0, 0, 1}} {
		if got, ok := parseVersion(text); !ok || got != want {
			t.Errorf("%s is %v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "1", "1.2", "1.2.3.4", "a.b.c", "1.2.", "-1.2.3", "1.2.3 ", "1.2.99999999999"} {
		if got, ok := parseVersion(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
	order := [][3]int{{0, 0, 0}, {0, 0, 1}, {0, 0, 5}, {0, 1, 0}, {1, 0, 0}}
	for i, a := range order {
		for k, b := range order {
			if before(a, b) != (i < k) {
				t.Errorf("%v before %v: %v", a, b, before(a, b))
			}
		}
	}
	if v, ok := parseVersion(FormatVersion); !ok || v != newestVersion {
		t.Errorf("the newest version that is read is %v", newestVersion)
	}
}
