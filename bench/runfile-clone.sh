#!/usr/bin/env bash
# runfile-clone.sh [FILESYSTEM...]: the time of a checkpoint after 10, 100 and 1000 saved states, on
# filesystems that clone files (XFS, Btrfs) and on one that copies them (ext4), each in an
# image that is mounted by a loop device. It needs root, and says what it can't do.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d "${TMPDIR:-/tmp}/runfile-clone.XXXXXX")
mounted=
cleanup() {
	[ -z "$mounted" ] || umount "$mounted" || umount -l "$mounted"
	rm -rf "$work"
}
trap cleanup EXIT

if ! pkg-config --exists hdf5-serial && ! pkg-config --exists hdf5; then
	echo "no HDF5: nothing to measure"
	exit 0
fi
go test -c -tags hdf5 -o "$work/runfile.test" ./runfile

printf '%-10s %-20s %8s %10s %15s %15s\n' filesystem way states "file, MB" "checkpoint, ms" "anew, ms"
[ $# -gt 0 ] || set -- xfs btrfs ext4
for fs; do
	if [ "$(id -u)" != 0 ]; then
		echo "$fs: not measured: only root mounts filesystems"
		continue
	fi
	if ! command -v "mkfs.$fs" >/dev/null; then
		echo "$fs: not measured: there is no mkfs.$fs (packages xfsprogs, btrfs-progs, e2fsprogs)"
		continue
	fi
	rm -f "$work/image"
	truncate -s 4G "$work/image"
	mkdir -p "$work/$fs"
	if ! "mkfs.$fs" "$work/image" >"$work/log" 2>&1 || ! mount -o loop "$work/image" "$work/$fs" 2>>"$work/log"; then
		echo "$fs: not measured: $(tail -n 1 "$work/log")"
		continue
	fi
	mounted=$work/$fs
	TMPDIR=$mounted "$work/runfile.test" -test.run '^$' -test.bench '^BenchmarkCheckpoint$' -test.benchtime "${TIMES:-10}x" >"$work/log"
	umount "$mounted"
	mounted=
	awk -v fs="$fs" '
		/^BenchmarkCheckpoint\// {
			split($1, name, /[=-]/)
			for (i = 3; i < NF; i += 2) value[$(i + 1)] = $i
			if ($1 ~ /saved=/) {
				file = value["MB-file"]; saved = value["ns/op"] / 1e6
				way = ("reflink" in value) ? "reflink" : ("copy-in-the-kernel" in value) ? "copy in the kernel" : "copy"
			} else
				printf "%-10s %-20s %8s %10.1f %15.1f %15.1f\n", fs, way, name[2], file, saved, value["ns/op"] / 1e6
			delete value
		}' "$work/log"
done
