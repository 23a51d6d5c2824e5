package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/fieldstone-io/fieldstone/publish"
	"github.com/spf13/cobra"
)

func newVersion(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:               "version",
		Short:             "Say what this tool was built from",
		Args:              arguments(0, 0, "no arguments"),
		ValidArgsFunction: completeBundles(0),
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			return a.version(buildOf(info), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// build is what the tool was built from.
type build struct {
	Version  string   `json:"version"`
	Revision string   `json:"revision"` // of the version control; empty: not known
	Time     string   `json:"time"`     // of the revision
	Modified bool     `json:"modified"` // whether the sources differ from the revision
	Tags     []string `json:"tags"`
	Go       string   `json:"go"`
	Platform string   `json:"platform"`
}

// buildOf makes do with a nil info.
func buildOf(info *debug.BuildInfo) build {
	b := build{
		Version:  publish.Version,
		Tags:     []string{},
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "-tags":
			b.Tags = strings.FieldsFunc(s.Value, func(r rune) bool { return r == ',' || r == ' ' })
		}
	}
	return b
}

func (a *app) version(b build, asJSON bool) error {
	if asJSON {
		return writeJSON(a.out, b)
	}
	t := newTable()
	t.row("fieldstone", b.Version)
	if b.Revision != "" {
		revision := b.Revision
		if b.Time != "" {
			revision += ", " + b.Time
		}
		if b.Modified {
			revision += ", modified"
		}
		t.row("revision", revision)
	}
	if len(b.Tags) > 0 {
		t.row("tags", strings.Join(b.Tags, " "))
	}
	t.row("go", fmt.Sprintf("%s %s", strings.TrimPrefix(b.Go, "go"), b.Platform))
	t.write(a.out, "")
	return nil
}
