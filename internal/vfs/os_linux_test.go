package vfs_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// mount mounts a fresh filesystem, and reports whether that is allowed here.
func mount(t *testing.T, kind, options string) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount(kind, dir, kind, 0, options); err != nil {
		t.Logf("cannot mount %s, so only Mem is tested: %v", kind, err)
		return "", false
	}
	t.Cleanup(func() { must(t, syscall.Unmount(dir, 0)) })
	return dir, true
}

// full runs a test on filesystems of one mebibyte.
func full(t *testing.T, test func(t *testing.T, b backend)) {
	t.Helper()
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem(vfs.Capacity(1 << 20))
		test(t, backend{m, "/", m.Symlink})
	})
	t.Run("tmpfs", func(t *testing.T) {
		if dir, ok := mount(t, "tmpfs", "size=1m"); ok {
			test(t, backend{vfs.OS, dir, os.Symlink})
		}
	})
}

func create(t *testing.T, b backend, name string) vfs.File {
	t.Helper()
	f, err := b.OpenFile(b.path(name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	must(t, err)
	t.Cleanup(func() { must(t, f.Close()) })
	return f
}

func TestFullFilesystem(t *testing.T) {
	const mib = 1 << 20
	t.Run("usage counts", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			before, err := b.Usage(b.dir)
			must(t, err)
			if before.Total != mib || before.Free > mib || before.Free < mib/2 || !before.Allocates {
				t.Errorf("empty: %+v", before)
			}
			must(t, create(t, b, "f").Allocate(mib/2))
			after, err := b.Usage(b.dir)
			must(t, err)
			if after.Total != before.Total || before.Free-after.Free != mib/2 {
				t.Errorf("with half a mebibyte: %+v, before %+v", after, before)
			}
		})
	})
	t.Run("a write says what it wrote", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			f := create(t, b, "f")
			n, err := f.Write(make([]byte, 2*mib))
			if !errors.Is(err, syscall.ENOSPC) || n <= mib/2 || n > mib {
				t.Errorf("write: %d, %v, want ENOSPC", n, err)
			}
			info, err := f.Stat()
			must(t, err)
			if info.Size() != int64(n) {
				t.Errorf("size %d after a write of %d", info.Size(), n)
			}
			if n, err := f.WriteAt([]byte("x"), mib+1); n != 0 || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("another write: %d, %v, want 0, ENOSPC", n, err)
			}
		})
	})
	t.Run("an allocation that does not fit takes nothing", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			if err := create(t, b, "f").Allocate(mib + 1); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("allocate: %v, want ENOSPC", err)
			}
			if n, err := create(t, b, "g").Write(make([]byte, mib/2)); err != nil {
				t.Errorf("write after it: %d, %v", n, err)
			}
		})
	})
	t.Run("an allocation is a promise", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			f := create(t, b, "f")
			must(t, f.Allocate(mib/2))
			if _, err := create(t, b, "g").Write(make([]byte, mib)); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("write of another file: %v, want ENOSPC", err)
			}
			if n, err := f.WriteAt(make([]byte, mib/2), 0); n != mib/2 || err != nil {
				t.Errorf("write of the allocated file: %d, %v", n, err)
			}
			must(t, f.Sync())
		})
	})
	t.Run("a file without space has its size", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			f := create(t, b, "f")
			must(t, f.Truncate(2*mib))
			if n, err := f.WriteAt(make([]byte, 2*mib), 0); !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("write: %d, %v, want ENOSPC", n, err)
			}
		})
	})
	t.Run("WriteFile reports it", func(t *testing.T) {
		full(t, func(t *testing.T, b backend) {
			err := vfs.WriteFile(b, b.path("f"), make([]byte, 2*mib), 0o666, true)
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("error %v, want ENOSPC", err)
			}
		})
	})
}

// Where nothing can be reserved, Allocate still gives the size.
func TestAllocateWithoutPromise(t *testing.T) {
	test := func(t *testing.T, b backend) {
		f := create(t, b, "f")
		for _, step := range []struct{ allocate, size int64 }{{5000, 5000}, {100, 5000}, {0, 5000}, {9000, 9000}} {
			must(t, f.Allocate(step.allocate))
			info, err := f.Stat()
			must(t, err)
			if info.Size() != step.size {
				t.Errorf("size %d after Allocate(%d), want %d", info.Size(), step.allocate, step.size)
			}
		}
		u, err := b.Usage(b.dir)
		must(t, err)
		if u.Allocates {
			t.Errorf("usage %+v promises space", u)
		}
	}
	t.Run("mem", func(t *testing.T) {
		m := vfs.NewMem(vfs.NoAllocate())
		test(t, backend{m, "/", m.Symlink})
	})
	t.Run("ramfs", func(t *testing.T) {
		if dir, ok := mount(t, "ramfs", ""); ok {
			test(t, backend{vfs.OS, dir, os.Symlink})
		}
	})
}

func TestUsageOfRealFilesystems(t *testing.T) {
	t.Run("here", func(t *testing.T) {
		u, err := vfs.OS.Usage(t.TempDir())
		must(t, err)
		if u.Type == "" || u.Free <= 0 || u.Free > u.Total {
			t.Errorf("usage %+v", u)
		}
		t.Logf("%+v", u)
	})
	t.Run("tmpfs", func(t *testing.T) {
		if dir, ok := mount(t, "tmpfs", "size=1m"); ok {
			u, err := vfs.OS.Usage(dir)
			must(t, err)
			if u.Type != "tmpfs" || u.Total != 1<<20 || !u.Allocates {
				t.Errorf("usage %+v", u)
			}
		}
	})
	t.Run("proc is not known", func(t *testing.T) {
		u, err := vfs.OS.Usage("/proc")
		must(t, err)
		if u.Type != "unknown (0x9fa0)" || u.Allocates {
			t.Errorf("usage %+v", u)
		}
	})
}

func TestErrorsOfAReadOnlyFilesystem(t *testing.T) {
	dir, ok := mount(t, "tmpfs", "size=1m")
	if !ok {
		in := vfs.NewInject(vfs.NewMem())
		in.FailFrom(1, syscall.EROFS)
		if err := in.Mkdir("/d", 0o777); !errors.Is(err, syscall.EROFS) {
			t.Errorf("mkdir: %v, want EROFS", err)
		}
		return
	}
	b := backend{vfs.OS, dir, os.Symlink}
	b.plant(t, "d/", "f")
	must(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	_, lockErr := b.Lock(b.path("lock"))
	for call, err := range map[string]error{
		"mkdir":     b.Mkdir(b.path("e"), 0o777),
		"rename":    b.Rename(b.path("d"), b.path("e")),
		"noreplace": b.RenameNoReplace(b.path("d"), b.path("e")),
		"remove":    b.Remove(b.path("f")),
		"write":     vfs.WriteFile(b, b.path("g"), nil, 0o666, false),
		"lock":      lockErr,
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v, want EROFS", call, err)
		}
	}
}

// A child process between fork and exec holds copies of all descriptors. It must
// not keep a released lock whose file is still there.
func TestReleaseWhileProcessesStart(t *testing.T) {
	in := vfs.NewInject(vfs.OS)
	// So that the release leaves the file behind.
	must(t, in.Fail(vfs.Rule{Kinds: []vfs.Kind{vfs.OpUnlock}, Err: syscall.EIO}))
	name := t.TempDir() + "/lock"
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				if err := exec.Command("/bin/true").Run(); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	for range 3000 {
		l, err := in.Lock(name)
		if err != nil {
			t.Error(err)
			break
		}
		if err := l.Release(); !errors.Is(err, syscall.EIO) {
			t.Errorf("release: %v, want EIO", err)
		}
	}
	close(stop)
	<-done
}
