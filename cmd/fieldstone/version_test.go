package main

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/google/go-cmp/cmp"
)

func TestVersion(t *testing.T) {
	o := mustRun(t, 0, "version")
	for _, want := range []string{"fieldstone", publish.Version, strings.TrimPrefix(runtime.Version(), "go")} {
		if !strings.Contains(o.out, want) {
			t.Errorf("no %q in %q", want, o.out)
		}
	}
	b := decodeJSON[build](t, mustRun(t, 0, "version", "--json"))
	if b.Version != publish.Version || b.Go != runtime.Version() || b.Platform != runtime.GOOS+"/"+runtime.GOARCH || b.Tags == nil {
		t.Errorf("%+v", b)
	}
}

func TestBuild(t *testing.T) {
	plain := build{Version: publish.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Tags: []string{}}
	full := plain
	full.Revision, full.Time, full.Modified, full.Tags = "0123abcd", "2026-01-02T03:04:05Z", true, []string{"mpi", "hdf5"}
	for _, c := range []struct {
		name string
		info *debug.BuildInfo
		want build
	}{
		{"nothing is known", nil, plain},
		{"no version control", &debug.BuildInfo{}, plain},
		{"all is known", &debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "-tags", Value: "mpi,hdf5"}, {Key: "vcs.revision", Value: "0123abcd"},
			{Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}, {Key: "GOOS", Value: "linux"},
		}}, full},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, buildOf(c.info)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
