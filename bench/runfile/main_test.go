//go:build hdf5

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/fieldstone-io/fieldstone/bench/plan"
)

// Whoever takes part writes and reads what it should.
func TestCases(t *testing.T) {
	dir := t.TempDir()
	job := plan.Job{Tmpfs: dir, Disk: dir, Launch: plan.Launch{Component: plan.RunFiles, Ranks: 1}}
	for kind, fields := range map[plan.Kind]int{plan.WriteRun: 6, plan.ReadRun: 4, plan.ReadRunField: 2} {
		job.Launch.Cases = append(job.Launch.Cases, plan.Case{
			Name: string(kind), Kind: kind, Cells: [3]int{5, 4, 3}, Processes: [3]int{1, 1, 1}, Fields: fields,
			Place: plan.Tmpfs, Contestants: []string{"h5py", "fieldstone"}, Repeats: 3, Seconds: 1,
		})
	}
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "job.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(path, &out); err != nil {
		t.Fatal(err)
	}
	lines := json.NewDecoder(&out)
	for range 2 * len(job.Launch.Cases) {
		var l plan.Line
		if err := lines.Decode(&l); err != nil {
			t.Fatal(err)
		}
		if l.Contestant == "h5py" && l.Missing != "" && os.Getenv("FIELDSTONE_REQUIRE_H5PY") == "" {
			t.Log(l.Missing)
			continue
		}
		if l.Missing+l.Error != "" || l.Checked != 4 || len(l.Seconds) != 3 {
			t.Errorf("%+v", l)
		}
	}
}

// The cost of a checkpoint is measured, and no objects are made in the middle of a run.
func TestCheckpoints(t *testing.T) {
	var list []reading
	missing, err := measureCheckpoints(t.Context(), t.TempDir(), []int{3}, []int{2, 30}, func(r reading) { list = append(list, r) })
	if err != nil {
		t.Fatal(err)
	}
	if missing != nil && os.Getenv("FIELDSTONE_REQUIRE_H5PY") != "" {
		t.Error(missing)
	}
	if len(list) != 2 || list[1].After != 30 || list[1].Scalars != 3 {
		t.Fatalf("got %+v", list)
	}
	for _, r := range list {
		if r.Made != 0 || r.Written < 3 || r.Milliseconds <= 0 && processorTime() > 0 || r.Segment == 0 || r.Checkpoint == 0 || (r.Peer > 0) != (missing == nil) {
			t.Errorf("%+v", r)
		}
	}
}
