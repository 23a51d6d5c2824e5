//go:build mpi

package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func init() { mpitest.Register("save and load often", saveAndLoadOften) }

// figures are the medians of one kind of call, in microseconds.
type figures struct {
	Steps map[string]float64 // since the step before, or the call's begin, on rank 0
	Total float64
}

// saveAndLoadOften prints a line of JSON for each kind of call.
func saveAndLoadOften(c *comm.Comm, args []string) error {
	ctx := context.Background()
	dir := args[0]
	numbers := make([]int, 3)
	for i := range numbers {
		n, err := strconv.Atoi(args[1+i])
		if err != nil {
			return err
		}
		numbers[i] = n
	}
	fields, cells, repeats := numbers[0], numbers[1], numbers[2]
	domain := grid.Domain{Size: [3]int{cells, cells, cells}, Spacing: [3]float64{1, 1, 1}}
	dec, err := grid.Decompose(domain, c.Size(), grid.ProcessGrid(1, 1, c.Size()))
	if err != nil {
		return err
	}
	list := make([]field.Named, fields)
	for i := range list {
		f, err := field.New[float64](domain, dec.Box(c.Rank()), field.Halo(2))
		if err != nil {
			return err
		}
		list[i] = field.Named{ID: fmt.Sprintf("f%03d", i), Field: f}
	}
	var last time.Time
	steps := make(map[string][]float64)
	note := func(s Step, _ string) {
		if s != StepField {
			now := time.Now()
			steps[string(s)] = append(steps[string(s)], float64(now.Sub(last).Microseconds()))
			last = now
		}
	}
	plans := NewPlans()
	defer plans.Close()
	save := func(path string) error {
		return SaveBundle(ctx, c, path, State{Fields: list}, WithDurability(None), OnStep(note), Reuse(plans))
	}
	load := func(opts ...Option) func(string) error {
		return func(path string) error {
			_, err := LoadBundle(ctx, c, path, Request{Fields: list}, append(opts, WithDurability(None), Reuse(plans))...)
			return err
		}
	}
	for _, kind := range []struct {
		name string
		call func(path string) error
	}{{"save", save}, {"load", load()}, {"load in place", load(InPlace())}} {
		clear(steps)
		var totals []float64
		for i := range repeats {
			path := filepath.Join(dir, "bundle")
			if c.Rank() == 0 && kind.name == "save" {
				err = os.RemoveAll(path)
			}
			if err := c.Agree(ctx, err); err != nil {
				return err
			}
			begin := time.Now()
			last = begin
			if err := kind.call(path); err != nil {
				return err
			}
			if i > 0 { // the first call warms up
				totals = append(totals, float64(time.Since(begin).Microseconds()))
			}
		}
		if c.Rank() != 0 {
			continue
		}
		f := figures{Steps: make(map[string]float64), Total: median(totals)}
		for name, list := range steps {
			f.Steps[name] = median(list[1:])
		}
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %s\n", kind.name, text)
	}
	return nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)/2]
}

// BenchmarkBundles reports what a save and a load take, and of a save what lies
// outside of writing the fields.
func BenchmarkBundles(b *testing.B) {
	for _, size := range [][3]int{{2, 1, 32}, {2, 100, 32}, {4, 100, 32}} {
		b.Run(fmt.Sprintf("ranks=%d/fields=%d/cells=%d", size[0], size[1], size[2]), func(b *testing.B) {
			dir, err := os.MkdirTemp("/dev/shm", "fieldstone-bench-")
			if err != nil {
				b.Fatal(err)
			}
			defer os.RemoveAll(dir)
			output, exit := mpitest.Command(b, size[0], "save and load often", dir,
				strconv.Itoa(size[1]), strconv.Itoa(size[2]), strconv.Itoa(b.N+1))
			if exit != 0 {
				b.Fatalf("exit status %d:\n%s", exit, output)
			}
			for _, kind := range []string{"save", "load", "load in place"} {
				var f figures
				_, rest, _ := strings.Cut(output, "rank 0: "+kind+": ")
				line, _, _ := strings.Cut(rest, "\n")
				if err := json.Unmarshal([]byte(line), &f); err != nil {
					b.Fatalf("%s: %v:\n%s", kind, err, output)
				}
				b.ReportMetric(f.Total, "us/"+strings.ReplaceAll(kind, " ", "-"))
				if kind == "save" {
					b.ReportMetric(f.Total-f.Steps[string(StepWritten)], "us/beside-fields")
				}
				b.Logf("%s: %+v", kind, f)
			}
		})
	}
}
