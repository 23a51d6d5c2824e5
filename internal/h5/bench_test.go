//go:build hdf5 && linux

package h5_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// The array that is written and read has this many MB. testdata/bench.py does the same
// with h5py: new files are written, and buffers are new or used again. Compare medians of
//
//	FIELDSTONE_H5_BENCH_MB=512 go test -tags hdf5 -run '^$' -bench . -benchtime 1x -count 9 ./internal/h5
//	/usr/bin/python3 internal/h5/testdata/bench.py /tmp 512 9
//
// that take turns. The array is in huge pages if the system has them, as numpy's are:
// copies out of small ones are up to a fifth slower.
func benchArray(b *testing.B) []float64 {
	mb := 64
	if n, err := strconv.Atoi(os.Getenv("FIELDSTONE_H5_BENCH_MB")); err == nil {
		mb = n
	}
	memory, err := unix.Mmap(-1, 0, mb<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	must(b, err)
	b.Cleanup(func() { must(b, unix.Munmap(memory)) })
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // an old system has none
	data := unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(memory))), mb<<20/8)
	for i := range data {
		data[i] = float64(i)
	}
	b.SetBytes(int64(len(data)) * 8)
	return data
}

func BenchmarkWrite(b *testing.B) {
	data := benchArray(b)
	name := filepath.Join(b.TempDir(), "file.h5")
	for b.Loop() {
		b.StopTimer()
		os.Remove(name)
		b.StartTimer()
		f, err := h5.Create(name)
		must(b, err)
		must(b, h5.Write(f, "x", data, len(data)/1024, 1024))
		must(b, f.Close())
	}
}

func BenchmarkRead(b *testing.B) {
	data := benchArray(b)
	f, name := create(b)
	must(b, h5.Write(f, "x", data, len(data)/1024, 1024))
	must(b, f.Close())
	for b.Loop() {
		f, err := h5.Open(name)
		must(b, err)
		if _, _, err := h5.Read[float64](f, "x"); err != nil {
			b.Fatal(err)
		}
		must(b, f.Close())
	}
}

func BenchmarkReadSlab(b *testing.B) {
	data := benchArray(b)
	f, name := create(b)
	shape := []int{len(data) / 1024, 1024}
	must(b, h5.Write(f, "x", data, shape...))
	must(b, f.Close())
	for b.Loop() {
		f, err := h5.Open(name)
		must(b, err)
		must(b, h5.ReadSlab(f, "x", data, []int{0, 0}, shape))
		must(b, f.Close())
	}
}
