package runfile

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/record"
)

// plainRecord is a record without its order.
func plainRecord(t *testing.T, r record.Record) map[string]any {
	t.Helper()
	all := map[string]any{}
	for key, v := range r.All() {
		all[key] = v.Any()
	}
	return all
}

// The record of a segment says what happened, entry for entry, and no more: in its file
// and in the checkpoint, at each point of the run.
func TestTheRecordOfASegment(t *testing.T) {
	type entries = map[string]any
	for _, deterministic := range []bool{false, true} {
		for _, off := range []bool{false, true} {
			m := newMemory()
			cfg := decayConfig()
			cfg.Resume, cfg.Setup.Deterministic = !off, deterministic
			cfg.Checkpoint = CheckpointConfig{Off: off}
			if !off {
				cfg.Checkpoint.Steps = 2
			}
			// in compares the record in a file of the segment of a number.
			in := func(what string, settings record.Record, want entries) {
				t.Helper()
				segment, err := settings.Record(segmentSection)
				if err != nil {
					t.Fatal(err)
				}
				want = maps.Clone(want)
				want["deterministic"] = deterministic
				if diff := cmp.Diff(want, plainRecord(t, segment)); diff != "" {
					t.Errorf("deterministic %v, checkpoints off %v: %s (-want +got)\n%s", deterministic, off, what, diff)
				}
			}
			with := func(e entries, keysAndValues ...any) entries {
				e = maps.Clone(e)
				for i := 0; i < len(keysAndValues); i += 2 {
					e[keysAndValues[i].(string)] = keysAndValues[i+1]
				}
				return e
			}
			steps := func(s *Session, d *decay, n int) {
				t.Helper()
				for range n {
					for a := d.attempt(s.NextTime()); ; a = d.attempt(s.NextTime()) {
						s.Attempt(a)
						if a.Accepted {
							break
						}
					}
					if err := s.SaveState(t.Context(), d.state); err != nil {
						t.Fatal(err)
					}
					if _, err := s.Checkpoint(t.Context(), d.state, d.record); err != nil {
						t.Fatal(err)
					}
				}
			}
			begin := func() (*Session, *decay) {
				t.Helper()
				s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
				if err != nil {
					t.Fatal(err)
				}
				d, err := newDecay(s)
				if err != nil {
					t.Fatal(err)
				}
				s.SetUpdate("mean", []float64{0, 0})
				if err := s.SaveState(t.Context(), d.state); err != nil {
					t.Fatal(err)
				}
				return s, d
			}
			s, d := begin()
			first := entries{
				"index": int64(1), "start_time": 0.0, "saved_before": int64(0), "attempts_before": int64(0), "resumed": false,
			}
			written := func() bool { return !off }
			if !off {
				steps(s, d, 2)
				now := with(first, "status", "running", "end_time", d.time, "steps", int64(2), "checkpoint_written", false)
				in("the segment at its first checkpoint", m.files[1].Settings, now)
				in("the first checkpoint, which is not written yet", m.last.Settings, now)
				steps(s, d, 2)
				now = with(first, "status", "running", "end_time", d.time, "steps", int64(4), "checkpoint_written", true)
				in("the segment at its second checkpoint", m.files[1].Settings, now)
				in("the second checkpoint", m.last.Settings, now)
			} else {
				steps(s, d, 4)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			in("closed before the end", m.files[1].Settings, with(first, "status", "interrupted", "end_time", d.time, "steps", int64(4), "checkpoint_written", written()))
			if off {
				m = newMemory()
				s, _ := begin()
				if _, err := advance(t.Context(), s); err != nil {
					t.Fatal(err)
				}
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				in("without checkpoints", m.files[1].Settings, with(first, "status", "completed", "end_time", 1.0, "steps", s.accepted, "checkpoint_written", false))
				continue
			}
			// It is resumed, with the same setup and with another one, and stopped.
			for n, changed := range []bool{false, true} {
				from := m.last
				hash, err := from.Settings.Text("setup_hash")
				if err != nil {
					t.Fatal(err)
				}
				commit, err := from.Settings.Text("code/commit")
				if err != nil {
					t.Fatal(err)
				}
				if changed {
					cfg.Setup.Solver = mustOf(t, "type", "newton")
				}
				cfg.Stop.Steps = 3
				s, d := begin()
				before := from.Summary.Attempted
				steps(s, d, 3)
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				want := entries{
					"index": int64(n + 2), "start_time": from.Time, "saved_before": int64(from.SavedCount), "attempts_before": before, "resumed": true,
					"status": "stopped", "stop_reason": "limit of 3 steps", "end_time": d.time, "steps": int64(3), "checkpoint_written": true,
					"resumed_from": "last", "resumed_from_segment": int64(n + 1), "previous_commit": commit, "previous_setup_hash": hash, "settings_changed": changed,
				}
				if commit != unknownCommit {
					want["commit_changed"] = false
				}
				if changed {
					want["changed_sections"] = []string{"solver"}
				}
				in("stopped", m.files[n+2].Settings, want)
				in("the checkpoint of the stop", m.last.Settings, want)
			}
			cfg.Stop.Steps = 0
			from := m.last
			s, err := open(t.Context(), comm.Self(), cfg, m, newClock().now)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := advance(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			hash, err := from.Settings.Text("setup_hash")
			if err != nil {
				t.Fatal(err)
			}
			segment, err := m.files[4].Settings.Record(segmentSection)
			if err != nil {
				t.Fatal(err)
			}
			got := plainRecord(t, segment)
			if got["status"] != "completed" || got["settings_changed"] != false || got["previous_setup_hash"] != hash || got["end_time"] != 1.0 || got["stop_reason"] != nil {
				t.Errorf("the last segment has %v", got)
			}
			if keys := slices.Sorted(maps.Keys(got)); slices.Contains(keys, "changed_sections") {
				t.Errorf("the last segment has %q", keys)
			}
		}
	}
}
