package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"

	"github.com/fieldstone-io/fieldstone/bench/plan"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/publish"
)

// What a save may take beside the fields: two chunks per rank, and one window per node.
const (
	stagingPerRank = 2 * (2 << 20)
	windowPerNode  = 64 << 20
)

// measureMemory reports what a save takes beside the fields, compared with the time
// before the first save of the launch, since some of it is kept for the next one. At
// the end of the writing, when everything that a save uses has been used and nothing is
// freed yet, each page counts once, however many ranks share it. What a rank had at its
// peak and has no more comes on top.
func (w *worker) measureMemory(ctx context.Context, s *state) error {
	s.dir = filepath.Join(w.job.Tmpfs, "files")
	line := plan.Line{Case: s.Name, Contestant: "fieldstone", Limit: int64(s.c.Size())*stagingPerRank + windowPerNode}
	if err := w.emptied(ctx, s); err != nil {
		return err
	}
	debug.FreeOSMemory()
	var err error
	if w.before == nil {
		w.before, err = residentPages()
	}
	if err == nil {
		err = resetPeak()
	}
	if err := w.c.Agree(ctx, err); err != nil {
		line.Missing = err.Error()
		return w.report(line)
	}
	var during *resident
	plans := publish.NewPlans()
	defer plans.Close()
	err = saveBundle(s, s.path("bundle"), publish.Reuse(plans), publish.OnStep(func(step publish.Step, _ string) {
		if step == publish.StepWritten {
			during, err = residentPages()
		}
	}))
	if err == nil && during == nil {
		err = errors.New("the step was not reported")
	}
	if err := w.c.Agree(ctx, err); err != nil {
		return err
	}
	extra := []int64{during.shares - w.before.shares + during.peak - during.pages}
	if err := w.c.AllReduceInt64(ctx, comm.Sum, extra); err != nil {
		return err
	}
	line.Bytes = max(extra[0], 1)
	if err := w.emptied(ctx, s); err != nil {
		return err
	}
	return w.report(line)
}

// resident is what of a process is in memory, in bytes.
type resident struct {
	shares int64 // without files; each page divided by the number of processes that have it
	pages  int64
	peak   int64 // of pages, since resetPeak
}

func residentPages() (*resident, error) {
	anonymous, err := procValue("/proc/self/smaps_rollup", "Pss_Anon:")
	if err != nil {
		return nil, err
	}
	shared, err := procValue("/proc/self/smaps_rollup", "Pss_Shmem:")
	if err != nil {
		return nil, err
	}
	pages, err := procValue("/proc/self/status", "VmRSS:")
	if err != nil {
		return nil, err
	}
	peak, err := procValue("/proc/self/status", "VmHWM:")
	return &resident{shares: anonymous + shared, pages: pages, peak: peak}, err
}

func resetPeak() error { return os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// procValue reads a line like "VmRSS:  12 kB".
func procValue(path, key string) (int64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		fields := bytes.Fields(lines.Bytes())
		if len(fields) == 3 && string(fields[0]) == key && string(fields[2]) == "kB" {
			kb, err := strconv.ParseInt(string(fields[1]), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, key)
}
