//go:build mpi

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// The peers in C, over MPI: what they write and read is right, and a library that isn't
// there is missed by nobody else.
func TestPeers(t *testing.T) {
	mpitest.Run(t, []int{1, 2}, func(t *mpitest.T, c *comm.Comm) {
		job := plan.Job{Launch: plan.Launch{Ranks: c.Size()}, Libraries: t.TempDir(), Tmpfs: t.TempDir(), Disk: t.TempDir()}
		var err error
		if c.Rank() == 0 {
			err = compile(job.Libraries, "posix", "mpiio")
		}
		if err := c.Agree(t.Context(), err); err != nil {
			t.Fatalf("%v", err)
		}
		durable := small(plan.Save, c.Size(), "floor", "common", "fieldstone")
		durable.Name, durable.Place, durable.Sync = "durable", plan.Disk, true
		job.Launch.Cases = []plan.Case{
			small(plan.Bundle, c.Size()),
			small(plan.Save, c.Size(), "floor", "separate", "common", "rows", "hdf5", "fieldstone", "fieldstone-mpiio"),
			small(plan.Restart, c.Size(), "pread", "common-load", "rows-load", "inplace", "inplace-mpiio"),
			durable,
		}
		if c.Size() == 1 {
			chunks := small(plan.Kernel, 1, "pwrite-chunks", "chunks-sum-file")
			chunks.Name = "chunks"
			job.Launch.Cases = append(job.Launch.Cases, chunks,
				small(plan.Kernel, 1, "memcpy", "memcpy-stream", "pack-rows", "pack-naive", "pack"))
		}
		var out bytes.Buffer
		if err := measure(t.Context(), c, job, contestants, &out); err != nil {
			t.Fatalf("%v", err)
		}
		want := 0
		for _, k := range job.Launch.Cases {
			want += len(k.Contestants)
		}
		for d := json.NewDecoder(&out); c.Rank() == 0; want-- {
			var l plan.Line
			if err := d.Decode(&l); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v", err)
			}
			if missing := l.Contestant == "hdf5"; missing != (l.Missing != "") || l.Error != "" || !missing && (len(l.Seconds) != 3 || l.Checked != 4) {
				t.Errorf("%+v", l)
			}
		}
		if c.Rank() == 0 && want != 0 {
			t.Errorf("%d lines are missing", want)
		}
	})
}

func compile(folder string, names ...string) error {
	implementation, _, _ := strings.Cut(mpi.Implementation(), " ")
	for _, name := range names {
		source := filepath.Join("..", "peers", name+".c")
		cmd := exec.Command("mpicc."+implementation, "-std=gnu11", "-O1", "-march=native", "-shared", "-fPIC", "-o", filepath.Join(folder, name+".so"), source)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", cmd, err, out)
		}
	}
	return nil
}
