//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package vfs_test

import (
	"fmt"
	"os"
	"syscall"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// An entry that no SyncDir covered is lost in a crash.
func ExampleMem_CrashClone() {
	m := vfs.NewMem()
	for _, name := range []string{"/kept", "/lost"} {
		if err := vfs.WriteFile(m, name, []byte("data"), 0o666, true); err != nil {
			fmt.Println(err)
		}
		if name == "/kept" {
			if err := m.SyncDir("/"); err != nil {
				fmt.Println(err)
			}
		}
	}
	fmt.Println(m.Dump())
	fmt.Println(m.CrashClone(vfs.CrashOptions{Keep: vfs.KeepNone}).Dump())
	// Output:
	// [/kept 4 /lost 4]
	// [/kept 4]
}

// Fail each call once, until none is left to fail.
func ExampleInject() {
	save := func(fsys vfs.FS) error {
		if err := fsys.Mkdir("/new", 0o777); err != nil {
			return err
		}
		return fsys.RenameNoReplace("/new", "/final")
	}
	for i := 1; ; i++ {
		in := vfs.NewInject(vfs.NewMem())
		in.FailAt(i, syscall.ENOSPC)
		if err := save(in); err == nil {
			break
		}
		fmt.Println(in.Trace()[i-1])
	}
	// Output:
	// 1 mkdir /new: no space left on device
	// 2 rename_noreplace /new -> /final: no space left on device
}

func Example() {
	dir, err := os.MkdirTemp("", "vfs")
	if err != nil {
		fmt.Println(err)
		return
	}
	fsys := vfs.OS
	lock, err := fsys.Lock(dir + "/lock")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(vfs.WriteFile(fsys, dir+"/a", []byte("data"), 0o666, true))
	fmt.Println(fsys.SyncDir(dir))
	fmt.Println(lock.Release())
	fmt.Println(vfs.RemoveAll(fsys, dir))
	// Output:
	// <nil>
	// <nil>
	// <nil>
	// <nil>
}
