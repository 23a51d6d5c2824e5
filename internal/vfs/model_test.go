//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"os"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"pgregory.net/rapid"
)

// Mem does what the operating system does, errors included.
func TestMemAgreesWithOS(t *testing.T) {
	names := []string{"a", "b", "c", "a/b", "a/c", "b/a", "b/c", "a/b/c", "b/a/c", "c/../a", "c/./b", "a/", "b/c/", "c/."}
	targets := []string{"a", "b", "c/", "./gone/", "../a", "../b/c", ".", "gone", "c"}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "vfs")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		m := vfs.NewMem()
		// Links may lead to the parent of the directory, so it has one to compare.
		mem, real := backend{m, "/p", m.Symlink}, backend{vfs.OS, dir + "/p", os.Symlink}
		mem.plant(t, "/", "t/")
		real.plant(t, "/", "t/")
		name := rapid.SampledFrom(names)
		both := func(op string, do func(b backend) error) {
			onReal, onMem := errno(do(real)), errno(do(mem))
			if onReal != onMem {
				rt.Fatalf("%s: %v, Mem says %v", op, onReal, onMem)
			}
		}
		steps := map[string]func(*rapid.T){
			"mkdir": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				both("mkdir", func(b backend) error { return b.Mkdir(b.path("t/"+n), 0o777) })
			},
			"write": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				flag := os.O_RDWR | rapid.SampledFrom([]int{0, os.O_CREATE, os.O_CREATE | os.O_EXCL, os.O_CREATE | os.O_TRUNC}).Draw(rt, "flag")
				off := rapid.Int64Range(0, 9000).Draw(rt, "offset")
				data := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(rt, "data")
				size := rapid.Int64Range(-1, 9000).Draw(rt, "size")
				both("write", func(b backend) error {
					f, err := b.OpenFile(b.path("t/"+n), flag, 0o666)
					if err != nil {
						return err
					}
					defer f.Close()
					if _, err := f.WriteAt(data, off); err != nil || size < 0 {
						return err
					}
					return f.Truncate(size)
				})
			},
			"link": func(rt *rapid.T) {
				n, target := name.Draw(rt, "name"), rapid.SampledFrom(targets).Draw(rt, "target")
				both("link", func(b backend) error { return b.symlink(target, b.path("t/"+n)) })
			},
			"rename": func(rt *rapid.T) {
				from, to := name.Draw(rt, "from"), name.Draw(rt, "to")
				both("rename", func(b backend) error { return b.Rename(b.path("t/"+from), b.path("t/"+to)) })
			},
			"rename_noreplace": func(rt *rapid.T) {
				from, to := name.Draw(rt, "from"), name.Draw(rt, "to")
				both("rename_noreplace", func(b backend) error { return b.RenameNoReplace(b.path("t/"+from), b.path("t/"+to)) })
			},
			"remove": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				both("remove", func(b backend) error { return b.Remove(b.path("t/" + n)) })
			},
			"remove all": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				both("remove all", func(b backend) error { return vfs.RemoveAll(b, b.path("t/"+n)) })
			},
			"stat": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				both("stat", func(b backend) error { _, err := b.Stat(b.path("t/" + n)); return err })
				both("lstat", func(b backend) error { _, err := b.Lstat(b.path("t/" + n)); return err })
				both("readdir", func(b backend) error { _, err := b.ReadDir(b.path("t/" + n)); return err })
			},
			"lock": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				both("lock", func(b backend) error {
					l, err := b.Lock(b.path("t/" + n))
					if err != nil {
						return err
					}
					return l.Release()
				})
			},
			"": func(rt *rapid.T) {
				if a, b := real.list(t), mem.list(t); !slices.Equal(a, b) {
					rt.Fatalf("tree %q, in Mem %q", a, b)
				}
			},
		}
		rt.Repeat(steps)
	})
}
