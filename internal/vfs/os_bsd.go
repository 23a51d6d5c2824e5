//go:build darwin || freebsd

package vfs

import "golang.org/x/sys/unix"

func rename(oldname, newname string) error {
	return retry(func() error { return unix.Rename(oldname, newname) })
}

// usage knows of no filesystem that promises the space of a file to later writes.
func usage(name string) (Usage, error) {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Statfs(name, &st) }); err != nil {
		return Usage{}, err
	}
	unit, free := uint64(st.Bsize), uint64(max(0, int64(st.Bavail))) // less than none is kept for root
	return Usage{
		Free:  bytesOf(free, unit),
		Total: bytesOf(st.Blocks-min(st.Blocks, st.Bfree-min(st.Bfree, free)), unit),
		Type:  unix.ByteSliceToString(st.Fstypename[:]),
	}, nil
}
