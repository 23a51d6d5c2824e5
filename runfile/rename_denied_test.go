//go:build hdf5

package runfile

import (
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A run on a filesystem that carries each rename out and then denies it is any other run.
func TestARunWhoseRenamesAreCarriedOutAndDenied(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOENT, syscall.EEXIST} {
		dir := filepath.Join(t.TempDir(), "results")
		in := vfs.NewInject(vfs.OS)
		if err := in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpRename, vfs.OpRenameNoReplace}, Err: errno, Late: true}); err != nil {
			t.Fatal(err)
		}
		cfg := diskConfig(dir)
		for _, steps := range []int64{5, 0} {
			cfg.Stop.Steps = steps
			files := newDisk(dir, "run", slog.New(slog.DiscardHandler))
			files.fsys = in
			if _, err := runSegment(t.Context(), comm.Self(), cfg, files); err != nil {
				t.Fatalf("%v: %v", errno, err)
			}
		}
		sameOutput(t, joinedOnDisk(t, dir), uninterrupted(t))
	}
}
