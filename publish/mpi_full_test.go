package publish

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A disk of memory, as small as its bundles: it is full after any number of its
// pages.
type smallDisk interface {
	vfs.FS
	// leave fills the disk up to some pages; nothing is left of an earlier call.
	leave(pages int64) error
	empty() error
}

const pageBytes = 4096

type mountedDisk struct {
	vfs.FS
	dir string
}

func (d mountedDisk) ballast() string { return filepath.Join(d.dir, "ballast") }

func (d mountedDisk) leave(pages int64) error {
	u, err := d.Usage(d.dir)
	if err != nil {
		return err
	}
	f, err := d.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Allocate(u.Free-pages*pageBytes), f.Close()); err != nil {
		return err
	}
	if u, err = d.Usage(d.dir); err == nil && u.Free != pages*pageBytes {
		err = fmt.Errorf("%d bytes are free: want %d pages", u.Free, pages)
	}
	return err
}

func (d mountedDisk) empty() error { return os.Remove(d.ballast()) }

// memoryDisk stands in where nothing can be mounted.
type memoryDisk struct{ *vfs.Mem }

func (d memoryDisk) leave(pages int64) error {
	u, err := d.Usage("/")
	if err != nil {
		return err
	}
	return vfs.WriteFile(d.Mem, "/ballast", make([]byte, u.Free-pages*pageBytes), 0o666, true)
}

func (d memoryDisk) empty() error { return d.Remove("/ballast") }

// TestAFullDiskIsOneErrnoOnAllRanksWhateverPageIsMissing publishes on a disk that
// has no page left, then one, two, and so on, until there are enough. Each time
// all ranks get ENOSPC, nothing of the publication is left, the bundles from
// before are whole, and when there is space again the next publication succeeds.
func TestAFullDiskIsOneErrnoOnAllRanksWhateverPageIsMissing(t *testing.T) {
	domain := testDomain
	domain.Size = [3]int{16, 8, 8} // two pages per field
	onComponents(t, func(t *testing.T, opts ...mpitest.Option) {
		mounted := withMount(t, func(t *testing.T, dir string, mount func(kind, options string)) {
			mount("tmpfs", "size=256k")
			mpitest.Run(t, []int{2, 3}, func(t *mpitest.T, c *comm.Comm) {
				fillUp(t, c, mountedDisk{vfs.OS, dir}, dir, domain)
				onRankZero(t, c, func() error { return os.RemoveAll(filepath.Join(dir, StepName(1))) })
			}, opts...)
		})
		if !mounted {
			t.Log("the disk in memory has to do")
		}
	})
	t.Run("in memory", func(t *testing.T) {
		disk := memoryDisk{vfs.NewMem(vfs.Capacity(256 << 10))}
		err := comm.Run(3, func(c *comm.Comm) error {
			fillUp(&mpitest.T{TB: t}, c, disk, "/", domain)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func fillUp(t *mpitest.T, c *comm.Comm, disk smallDisk, dir string, domain grid.Domain) {
	spaces := []space{host64, host32}
	save := func(increment int64) (Step, error) {
		box, err := cuts[0].box(domain, c)
		must(t, c, err)
		p, err := newPart(domain, box, [3]int{1, 1, 1}, spaces...)
		must(t, c, err)
		must(t, c, p.set(increment))
		state := p.state(increment)
		state.Sidecar = map[string]int{"answer": 42}
		var last Step
		opts := []Option{OnStep(func(step Step, _ string) { last = step })}
		if _, ok := disk.(memoryDisk); ok {
			opts = append(opts, Filesystem(disk))
		}
		err = sameOutcome(t, c, SaveBundle(context.Background(), c, filepath.Join(dir, StepName(increment)), state, opts...))
		must(t, c, p.close())
		return last, err
	}
	whole := func(increment int64) error {
		return checkBundle(disk, filepath.Join(dir, StepName(increment)), domain, increment, spaces...)
	}
	names := func(want string) error {
		entries, err := disk.ReadDir(dir)
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if err == nil && strings.Join(got, " ") != want {
			err = fmt.Errorf("the directory has %q: want %s", got, want)
		}
		return err
	}

	if _, err := save(1); err != nil {
		t.Fatal(err)
	}
	failed := map[string]int{}
	var pages int64
	for ; ; pages++ {
		onRankZero(t, c, func() error { return disk.leave(pages) })
		last, err := save(2)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), syscall.ENOSPC.Error()) {
			t.Errorf("with %d pages: %v: want %v", pages, err, syscall.ENOSPC)
		}
		for _, thing := range []string{ownerName, `field "`, metadataFile, sidecarFile, checksumsFile} {
			if strings.Contains(err.Error(), thing) {
				failed[thing]++
			}
		}
		onRankZero(t, c, func() error { return errors.Join(names("ballast step_1"), whole(1), disk.empty()) })
		if _, err := save(2); err != nil {
			t.Errorf("after step %q failed with %d pages, and space was freed: %v", last, pages, err)
		}
		onRankZero(t, c, func() error {
			return errors.Join(names("step_1 step_2"), whole(1), whole(2), vfs.RemoveAll(disk, filepath.Join(dir, StepName(2))))
		})
	}
	onRankZero(t, c, func() error { return errors.Join(names("ballast step_1 step_2"), whole(1), whole(2)) })
	// Each thing that takes space was the one that had none.
	want := map[string]int{ownerName: 1, `field "`: 4, metadataFile: 1, sidecarFile: 1, checksumsFile: 1}
	if c.Rank() == 0 && (fmt.Sprint(failed) != fmt.Sprint(want) || pages != 8) {
		t.Errorf("%d pages were enough, and these failed for want of space: %v; want 8, %v", pages, failed, want)
	}
	onRankZero(t, c, func() error {
		return errors.Join(disk.empty(), vfs.RemoveAll(disk, filepath.Join(dir, StepName(2))))
	})
}
