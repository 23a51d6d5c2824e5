//go:build hdf5

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/record"
	"github.com/fieldstone-io/fieldstone/runfile"
)

func TestSettings(t *testing.T) {
	runs(t)
	for _, c := range []struct {
		args []string
		want string // what the output begins with
	}{
		{[]string{segment1, "system"}, "tolerance: 1e-06\n"},
		{[]string{segment1, "system/tolerance"}, "tolerance: 1e-06\n"},
		{[]string{segment1, "time/points"}, "points: float64[5] 0.0 0.25 0.5 0.75 1.0\n"},
		{[]string{"--json", segment1, "system"}, "{\n  \"tolerance\": 1e-06\n}\n"},
		{[]string{"--json", segment1, "segment/status"}, "\"stopped\"\n"},
		{[]string{segment1}, "system:\n"},
		{[]string{lastCheckpoint, "run"}, "description: \"a decay\"\n"},
		{[]string{"theirs.h5", "system/terms/drift"}, "name: \"drift\"\n"},
	} {
		if o := mustRun(t, 0, append([]string{"settings"}, c.args...)...); !strings.HasPrefix(o.out, c.want) {
			t.Errorf("%q: %s, want %s", c.args, o.out, c.want)
		}
	}
	// The JSON is the record, type for type.
	want, err := runfile.ReadSettings(t.Context(), segment1)
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.ParseJSON([]byte(mustRun(t, 0, "settings", "--json", segment1).out))
	if err != nil || got.Hash() != want.Hash() {
		t.Errorf("%v, %v", got, err)
	}
	o := mustRun(t, 2, "settings", segment1, "solver")
	says(t, o.errors, "fieldstone: settings "+segment1+": ", "solver", "(the sections are ", "system")
}

func TestSettingsShowsAllElementsOnDemand(t *testing.T) {
	nothingOpen(t)
	t.Chdir(t.TempDir())
	long := make([]float64, 100)
	long[99] = 7.5
	s, fields := output(runSettings(func(b *record.Builder) { b.Floats("table", long) }, record.Record{}), 0)
	save(t, "run.h5", s, fields)
	for _, args := range [][]string{{"settings", "run.h5", "system"}, {"settings", "run.h5", "system/table"}} {
		if o := mustRun(t, 0, args...); strings.Contains(o.out, "7.5") {
			t.Errorf("%s", o.out)
		}
		says(t, mustRun(t, 0, append(args, "--all")...).out, "7.5")
	}
}

func TestSettingsDiff(t *testing.T) {
	change := func(b *record.Builder) {
		b.Float("tolerance", 1e-8).Text("added", "x").Floats("list", []float64{1, 2, 3})
	}
	base := func(b *record.Builder) {
		b.Float("tolerance", 1e-6).Int("gone", 3).Floats("list", []float64{1, 2, 4})
	}
	segment := must(record.Of("index", 1))
	for name, c := range map[string]struct {
		edit    func(b *record.Builder)
		segment record.Record
		args    []string
		status  int
		hash    sideState
		hashed  []string
		others  []string
	}{
		"equal":                    {base, segment, nil, 0, sideEqual, nil, nil},
		"another segment":          {base, must(record.Of("index", 2)), nil, 1, sideEqual, nil, []string{"segment/index"}},
		"another segment, skipped": {base, must(record.Of("index", 2)), []string{"--setup"}, 0, sideEqual, nil, nil},
		"another setup":            {change, segment, nil, 1, sideDifferent, []string{"system/tolerance", "system/gone", "system/list", "system/added"}, nil},
		"another setup alone":      {change, segment, []string{"--setup"}, 1, sideDifferent, []string{"system/tolerance", "system/gone", "system/list", "system/added"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			nothingOpen(t)
			t.Chdir(t.TempDir())
			s, fields := output(runSettings(base, segment), 0)
			save(t, "a.h5", s, fields)
			s, fields = output(runSettings(c.edit, c.segment), 0)
			save(t, "b.h5", s, fields)
			args := append([]string{"settings", "diff", "a.h5", "b.h5"}, c.args...)
			d := decodeJSON[settingsDifference](t, mustRun(t, c.status, append(args, "--json")...))
			if d.Equal != (c.status == 0) || d.SetupHash.State != c.hash || (d.Others == nil) != (c.args != nil) {
				t.Errorf("%+v", d)
			}
			keys := func(s sectionsDiff) (list []string) {
				for _, k := range s.Keys {
					list = append(list, k.Key)
				}
				return list
			}
			slices.Sort(c.hashed)
			if got := keys(d.Hashed); !slices.Equal(slices.Sorted(slices.Values(got)), c.hashed) {
				t.Errorf("hashed: %v, want %v", got, c.hashed)
			}
			if d.Others != nil && !slices.Equal(keys(*d.Others), c.others) {
				t.Errorf("others: %v, want %v", keys(*d.Others), c.others)
			}
			o := mustRun(t, c.status, args...)
			for _, key := range slices.Concat(c.hashed, c.others) {
				says(t, o.out, key)
			}
			if q := mustRun(t, c.status, append(args, "-q")...); q.out+q.errors != "" {
				t.Errorf("%q", q.out+q.errors)
			}
		})
	}
}

func TestSettingsDiffShowsBothValues(t *testing.T) {
	runs(t)
	s, fields := output(runSettings(func(b *record.Builder) { b.Text("tolerance", "tight\x1b") }, record.Record{}), 0)
	save(t, "b.h5", s, fields)
	o := mustRun(t, 1, "settings", "diff", segment1, "b.h5")
	says(t, o.out, "setup hash: different", "system/tolerance  type", "1e-06", `"tight\x1b"`, "sections in the setup hash: different in system", "other sections: different in segment", "stop_reason")
	// What another program hashed is compared as it stands.
	edit(t, segment1, replace("settings/setup_hash", func(f *h5.File) error { return f.WriteString("settings/setup_hash", "theirs") }))
	d := decodeJSON[settingsDifference](t, mustRun(t, 1, "settings", "diff", "--setup", "--json", segment1, segment2))
	if d.SetupHash.State != sideDifferent || *d.SetupHash.A != "theirs" || len(d.Hashed.Keys) != 0 {
		t.Errorf("%+v", d)
	}
	edit(t, segment1, func(f *h5.File) error { return f.Unlink("settings/setup_hash") })
	says(t, mustRun(t, 1, "settings", "diff", "--setup", segment1, segment2).out, "setup hash: only in B")
	edit(t, segment2, func(f *h5.File) error { return f.Unlink("settings/setup_hash") })
	says(t, mustRun(t, 0, "settings", "diff", "--setup", segment1, segment2).out, "setup hash: neither has one")
}
