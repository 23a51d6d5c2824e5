//go:build mpi

package publish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/onedir"
)

// noLocal makes each rank of MPICH a node. Open MPI knows no such thing: there the ranks
// stay on one node, and the tests in one process stand alone.
var noLocal = mpitest.Env("MPIR_CVAR_NOLOCAL=1")

// TestEveryCallFindsOutUnderMPIThatANodeSeesAnotherDirectory is the test of that name in
// one process, with a directory that is mounted on one node.
func TestEveryCallFindsOutUnderMPIThatANodeSeesAnotherDirectory(t *testing.T) {
	mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
		dir := filepath.Join(t.TempDir(), "data")
		_, size, err := c.Node(t.Context())
		must(t, c, err)
		apart := []int64{0}
		if t.IsApart() {
			apart[0] = 1
		}
		must(t, c, c.AllReduceInt64(t.Context(), comm.Max, apart))
		if size == c.Size() || apart[0] == 0 {
			t.Logf("ranks on the node: %d, with a directory of its own: %d; nothing to find out", size, apart[0])
			return
		}
		// Both nodes have a bundle, of two increments, and a field.
		own := comm.Self()
		s, err := newTestSolver(own, 0, "phi", "T")
		if err == nil && c.Rank() == 0 {
			err = os.MkdirAll(dir, 0o777)
		}
		if err == nil {
			err = s.advance(int64(10 - c.Rank()))
		}
		if err == nil {
			err = SaveBundle(t.Context(), own, filepath.Join(dir, "step_10"), s.state())
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "a.bin"), make([]byte, 2*c.Size()*8), 0o666)
		}
		must(t, c, err)
		entries, err := os.ReadDir(dir)
		must(t, c, err)
		var before []string
		for _, e := range entries {
			before = append(before, e.Name())
		}
		refused := func(name, text string, call func() error) {
			t.Helper()
			err := sameOutcome(t, c, call())
			for _, want := range []string{"rank 1: ", "does not see " + strings.ReplaceAll(text, "DIR", dir), "local to a node"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: error is %v, want one with %q", name, err, want)
				}
			}
			if err := wantEntries(dir, before...); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, tc := range nodeCalls {
			s, err := newTestSolver(c, 1, "phi", "T")
			if err == nil {
				err = s.advance(1)
			}
			must(t, c, err)
			refused(tc.name, tc.text, func() error { return tc.call(c, s, dir, impatient) })
			must(t, c, s.check(1))
		}
		plan := bricksOf(t, c)
		defer plan.Close()
		ctx := onedir.With(t.Context(), onedir.Look{Tries: 1})
		refused("Plan.Write", "what rank 0 made", func() error {
			_, err := plan.Write(ctx, []brick.WriteJob{{Path: dir + "/a.bin", Source: onesSource{}, Within: true}})
			return err
		})
		refused("Plan.Read", "DIR/a.bin as rank 0 does", func() error {
			_, err := plan.Read(ctx, []brick.ReadJob{{Path: dir + "/a.bin", Sink: brick.SinkFunc(func([]byte, int64) error { return nil })}})
			return err
		})
		// What rank 0 was about to write is its nonce; node 1 has what it had.
		if c.Rank() == 1 {
			text, err := os.ReadFile(dir + "/a.bin")
			if err != nil || strings.Trim(string(text), "\x00") != "" {
				t.Errorf("node 1 has %q, %v", text, err)
			}
		}
		must(t, c, nil)
	}, noLocal, mpitest.Apart(1, "data"))
}

// TestNodesThatShareADirectoryUnderMPI write and read through MPI-IO, and leave no trace
// of having looked for each other.
func TestNodesThatShareADirectoryUnderMPI(t *testing.T) {
	mpitest.Run(t, []int{3}, func(t *mpitest.T, c *comm.Comm) {
		dir := t.TempDir()
		s, err := newTestSolver(c, 1, "phi", "T")
		if err == nil {
			err = s.advance(10)
		}
		must(t, c, err)
		for _, tc := range []nodeCall{nodeCalls[2], nodeCalls[3], { // the service and the dumps
			name: "save", call: func(c *comm.Comm, s *testSolver, dir string, opts ...Option) error {
				return SaveBundle(t.Context(), c, dir+"/step_10", s.state(), opts...)
			},
		}} {
			if err := sameOutcome(t, c, tc.call(c, s, dir)); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
		for _, tc := range nodeCalls {
			if tc.reads {
				if err := sameOutcome(t, c, tc.call(c, s, dir)); err != nil {
					t.Errorf("%s: %v", tc.name, err)
				}
			}
		}
		plan := bricksOf(t, c)
		defer plan.Close()
		for range 2 { // it makes the file, and then truncates it
			wrote, err := plan.Write(t.Context(), []brick.WriteJob{{Path: dir + "/a.bin", Source: onesSource{}}})
			must(t, c, sameOutcome(t, c, err))
			read, err := plan.Read(t.Context(), []brick.ReadJob{{Path: dir + "/a.bin", Sink: brick.SinkFunc(func([]byte, int64) error { return nil })}})
			must(t, c, sameOutcome(t, c, err))
			if read[0] != wrote[0].CRC {
				t.Errorf("read %x, wrote %x", read, wrote)
			}
		}
		onRankZero(t, c, func() error { return wantEntries(dir, "step_10", "a.bin") })
	}, noLocal)
}

// bricksOf is a plan of an array of two cells for each rank.
func bricksOf(t *mpitest.T, c *comm.Comm) *brick.Plan {
	t.Helper()
	plan, err := brick.NewPlan(t.Context(), c, [3]int{1, 1, 2 * c.Size()}, grid.Box{Low: [3]int{0, 0, 2 * c.Rank()}, Size: [3]int{1, 1, 2}}, brick.Float64)
	must(t, c, err)
	return plan
}

// onesSource is a source that is no hole.
type onesSource struct{}

func (onesSource) ReadCells(dst []byte, first int64) error {
	for i := range dst {
		dst[i] = 1
	}
	return nil
}
