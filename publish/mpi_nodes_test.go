//go:build mpi

package publish

import (
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpi"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

// TestARankThatSeesAnotherDirectoryFailsAllRanks gives one rank a filesystem of
// its own at the path, as a path has that is local to a node.
func TestARankThatSeesAnotherDirectoryFailsAllRanks(t *testing.T) {
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		// MPICH can take the odd ranks for those of another node.
		opts = append(opts, mpitest.Env("MPIR_CVAR_ODD_EVEN_CLIQUES=1"))
		mounted := withMount(t, func(t *testing.T, dir string, mount func(kind, options string)) {
			mount("tmpfs", "size=1m")
			mpitest.Run(t, []int{2}, func(t *mpitest.T, c *comm.Comm) {
				runtime.LockOSThread() // for good: the namespace is the thread's
				must(t, c, saveSized(c, filepath.Join(dir, "b"), 0, 0, 2))
				node, err := c.SplitNode()
				must(t, c, err)
				nodes := c.Size() / node.Size()
				must(t, c, node.Free())
				if c.Rank() == 1 {
					err = errors.Join(unix.Unshare(unix.CLONE_NEWNS|unix.CLONE_FS),
						unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
						unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
				}
				must(t, c, err)
				err = sameOutcome(t, c, saveSized(c, filepath.Join(dir, "c"), 0, 0, 2))
				want := "rank 1"
				if nodes == 2 {
					want = "does not see the staging directory"
				}
				if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), want) {
					t.Errorf("publish: %v: want %v and %q", err, syscall.ENOENT, want)
				}
				err = sameOutcome(t, c, loadSized(c, filepath.Join(dir, "b"), 0, 0, 2))
				// On one node rank 0 may read so small a file for both.
				if (err != nil || nodes == 2) && (!errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), "rank 1")) {
					t.Errorf("load: %v", err)
				}
				if c.Rank() == 0 {
					err = wantEntries(dir, "b")
				} else {
					err = wantEntries(dir)
				}
				must(t, c, err)
				if mpich := strings.HasPrefix(mpi.Implementation(), "mpich"); mpich != (nodes == 2) {
					t.Errorf("%s has %d nodes", mpi.Implementation(), nodes)
				}
			}, opts...)
		})
		if !mounted {
			t.Log("without mounts all ranks see the same")
		}
	})
}
