package pack

import (
	"fmt"
	"testing"

	"github.com/minio/crc64nvme"
)

// benchmarkChunk is what a writer asks for at once.
const benchmarkChunk = 1 << 20

// benchmarkLayout has about 16 MiB of owned float64 cells, more than the
// second-level cache of a core.
func benchmarkLayout(halo, row int) Layout {
	return Layout{Size: [3]int{row, 64, 2 << 20 / 64 / row}, Halo: [3]int{halo, halo, halo}}
}

// touched returns a storage whose pages are really there.
func touched[T float32 | float64](l Layout) []T {
	s := make([]T, l.PaddedCells())
	for i := range s {
		s[i] = T(i)
	}
	return s
}

func forEachLayout(b *testing.B, fn func(b *testing.B, l Layout)) {
	for _, halo := range []int{0, 1, 2, 4} {
		for _, row := range []int{16, 64, 256} {
			b.Run(fmt.Sprintf("halo=%d/row=%d", halo, row), func(b *testing.B) {
				fn(b, benchmarkLayout(halo, row))
			})
		}
	}
}

// inChunks packs the whole brick chunk by chunk.
func inChunks(b *testing.B, l Layout, fn func(chunk []byte, first int64)) {
	chunk := Bytes(make([]float64, benchmarkChunk/8))
	total := 8 * l.Cells()
	b.SetBytes(total)
	b.ReportAllocs()
	for b.Loop() {
		for at := int64(0); at < total; at += benchmarkChunk {
			fn(chunk[:min(benchmarkChunk, total-at)], at/8)
		}
	}
}

func BenchmarkPack(b *testing.B) {
	forEachLayout(b, func(b *testing.B, l Layout) {
		storage := touched[float64](l)
		inChunks(b, l, func(chunk []byte, first int64) {
			if err := PackBytes(chunk, storage, l, first); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkUnpack(b *testing.B) {
	forEachLayout(b, func(b *testing.B, l Layout) {
		storage := touched[float64](l)
		inChunks(b, l, func(chunk []byte, first int64) {
			if err := UnpackBytes(storage, chunk, l, first); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkPackAndChecksum(b *testing.B) {
	forEachLayout(b, func(b *testing.B, l Layout) {
		storage := touched[float64](l)
		sum := NewChecksum(8 * l.Cells())
		inChunks(b, l, func(chunk []byte, first int64) {
			if err := PackBytes(chunk, storage, l, first); err != nil {
				b.Fatal(err)
			}
			sum.Add(8*first, chunk)
		})
	})
}

func BenchmarkWiden(b *testing.B) {
	forEachLayout(b, func(b *testing.B, l Layout) {
		storage := touched[float32](l)
		inChunks(b, l, func(chunk []byte, first int64) {
			if err := WidenBytes(chunk, storage, l, first); err != nil {
				b.Fatal(err)
			}
		})
	})
}

func BenchmarkNarrow(b *testing.B) {
	forEachLayout(b, func(b *testing.B, l Layout) {
		storage := touched[float32](l)
		values := make([]float64, benchmarkChunk/8)
		for i := range values {
			values[i] = float64(float32(i) / 3)
		}
		inChunks(b, l, func(chunk []byte, first int64) {
			if err := NarrowBytes(storage, Bytes(values)[:len(chunk)], l, first); err != nil {
				b.Fatal(err)
			}
		})
	})
}

// BenchmarkCopy is the floor of the others: one large copy in chunks.
func BenchmarkCopy(b *testing.B) {
	l := benchmarkLayout(0, 256)
	storage := Bytes(touched[float64](l))
	inChunks(b, l, func(chunk []byte, first int64) {
		copy(chunk, storage[8*first:])
	})
}

var sink uint64

func BenchmarkSum(b *testing.B) {
	buffer := Bytes(make([]float64, 1<<20))
	for i := range buffer {
		buffer[i] = byte(i * i)
	}
	for _, n := range []int{8, 64, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 65536, 1 << 20} {
		p := buffer[8 : 8+n]
		for _, c := range []struct {
			name string
			fn   func([]byte) uint64
		}{
			{"tables", func(p []byte) uint64 { return ^remainderTables(^uint64(0), p) }},
			{"crc64nvme", crc64nvme.Checksum},
			{"pack", Sum},
		} {
			b.Run(fmt.Sprintf("bytes=%d/%s", n, c.name), func(b *testing.B) {
				b.SetBytes(int64(n))
				for b.Loop() {
					sink ^= c.fn(p)
				}
			})
		}
	}
}

func BenchmarkShift(b *testing.B) {
	for _, n := range []int64{1, 1 << 20, 1<<20 - 1, 1<<62 - 1} {
		b.Run(fmt.Sprintf("bytes=%d", n), func(b *testing.B) {
			for b.Loop() {
				sink = shift(sink|1, n)
			}
		})
	}
}

func BenchmarkOperator(b *testing.B) {
	var o operator
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			o.fill(123456789)
		}
	})
	b.Run("apply", func(b *testing.B) {
		for b.Loop() {
			sink = o.apply(sink | 1)
		}
	})
}

// BenchmarkChecksumOfRows adds a brick row by row, as a writer without a
// window does where x is split: two gaps, one at the end of a row, one at the
// end of a plane.
func BenchmarkChecksumOfRows(b *testing.B) {
	for _, row := range []int{128, 512, 2048} {
		b.Run(fmt.Sprintf("bytes=%d", row), func(b *testing.B) {
			const rows, planes = 64, 16
			piece := make([]byte, row)
			size := int64(2*row) * 2 * rows * planes
			sum := NewChecksum(size)
			b.SetBytes(int64(row * rows * planes))
			b.ReportAllocs()
			for b.Loop() {
				sum.Reset(size)
				for k := range planes {
					for j := range rows {
						sum.Add(int64(2*row)*int64(2*rows*k+j), piece)
					}
				}
				sink ^= sum.Part()
			}
		})
	}
}
