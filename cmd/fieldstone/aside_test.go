package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/publish"
)

// reasons lists a directory, and has the reason of each entry that has one.
func reasons(t *testing.T, args ...string) map[string]string {
	t.Helper()
	m := make(map[string]string)
	for _, e := range decodeJSON[listing](t, mustRun(t, 0, append([]string{"ls", "--json"}, args...)...)).Entries {
		if e.Reason != nil {
			m[e.Name] = *e.Reason
		}
	}
	text := mustRun(t, 0, append([]string{"ls"}, args...)...).out
	for _, reason := range m {
		says(t, text, reason)
	}
	return m
}

func TestLsTellsWhySomethingWasSetAside(t *testing.T) {
	const earlier = "set aside by a restart from an earlier state"
	// at makes a bundle that was written in some minute.
	at := func(t *testing.T, name string, step int64, minute int) {
		t.Helper()
		sample{increment: step}.save(t, name)
		editMetadata(t, name, func(m *publish.Metadata) { m.Writer.Created = created.Add(time.Duration(minute) * time.Minute) })
	}
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		want    map[string]string
	}{
		{"nothing was", func(t *testing.T) { at(t, "step_10", 10, 1) }, map[string]string{}},
		{"the restart point is the highest below that was there before", func(t *testing.T) {
			at(t, "step_10", 10, 1)
			at(t, "step_20", 20, 2)
			at(t, "step_30.superseded", 30, 3)
			at(t, "step_40.superseded", 40, 4)
			at(t, "step_25", 25, 5) // written by the run that restarted
			at(t, "step_35", 35, 6)
		}, map[string]string{"step_30.superseded": "set aside by a restart from step_20", "step_40.superseded": "set aside by a restart from step_20"}},
		{"it is gone", func(t *testing.T) {
			at(t, "step_30.superseded", 30, 3)
			at(t, "step_25", 25, 5)
		}, map[string]string{"step_30.superseded": earlier}},
		{"after two restarts", func(t *testing.T) {
			at(t, "step_10", 10, 1)
			at(t, "step_20.superseded", 20, 2)
			at(t, "step_15", 15, 3)
			at(t, "step_20.superseded.2", 20, 4)
		}, map[string]string{"step_20.superseded": "set aside by a restart from step_10", "step_20.superseded.2": "set aside by a restart from step_15"}},
		{"another writer has no times", func(t *testing.T) {
			at(t, "step_10", 10, 1)
			at(t, "step_20.superseded", 20, 2)
			editMetadata(t, "step_20.superseded", func(m *publish.Metadata) { m.Writer = nil })
		}, map[string]string{"step_20.superseded": earlier}},
		{"what was damaged", func(t *testing.T) {
			at(t, "step_10.damaged", 10, 1)
			at(t, "step_20.damaged", 20, 1)
			remove(t, "step_20.damaged/fields/T.bin")
			write(t, "step_30.damaged", nil)
		}, map[string]string{
			"step_10.damaged": "set aside as damaged, but good by sizes (--verify reads it)",
			"step_20.damaged": "fields/T.bin: the file is missing",
			"step_30.damaged": "not a bundle: not a directory",
		}},
		{"leftovers", func(t *testing.T) {
			write(t, "step_5.removing/fields/phi.bin", nil)
			write(t, "step_6.publishing/fields/phi.bin", nil)
			write(t, "step_6.publishing.lock", nil)
		}, map[string]string{"step_5.removing": "its job is gone", "step_6.publishing": "its job is gone", "step_6.publishing.lock": "its job is gone"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			c.prepare(t)
			got := reasons(t)
			if len(got) != len(c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			for name, want := range c.want {
				if got[name] != want {
					t.Errorf("%s: %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

// Damage that only the checksums show is the reason once they are compared.
func TestLsVerifyTellsTheDamageOfWhatWasSetAside(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"step_10.damaged", "step_20.damaged"} {
		sample{increment: 10}.save(t, name)
	}
	flip(t, "step_10.damaged", "fields/phi.bin")
	got := reasons(t, "--verify")
	says(t, got["step_10.damaged"], "fields/phi.bin: checksum differs")
	if got["step_20.damaged"] != "set aside as damaged, but good by checksums" {
		t.Errorf("%q", got)
	}
}

// A bundle that is both superseded and damaged has the reason and the damage.
func TestLsOfADamagedSupersededBundle(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{increment: 10}.save(t, "step_10")
	sample{increment: 20}.save(t, "step_20.superseded")
	remove(t, filepath.Join("step_20.superseded", "fields/T.bin"))
	says(t, mustRun(t, 0, "ls").out, "set aside by a restart from step_10; fields/T.bin: the file is missing")
}
