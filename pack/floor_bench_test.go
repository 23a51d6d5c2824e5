package pack

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"
)

// The benchmarks of this file compare rates that were measured in turns, so
// that whatever else the machine does hits both. They report medians: "ratio"
// is the rate of the first contestant over that of the yardstick, more of them
// have their names in front.

// floorBytes is much more than caches hold.
const floorBytes = 128 << 20

type contestant struct {
	name string
	run  func() error
}

// inTurns lets everybody move the same bytes in each turn.
func inTurns(b *testing.B, bytes int64, yardstick func() error, contestants ...contestant) {
	took := make([][]float64, len(contestants))
	clock := func(run func() error) float64 {
		start := time.Now()
		if err := run(); err != nil {
			b.Fatal(err)
		}
		return time.Since(start).Seconds()
	}
	var floor []float64
	for b.Loop() {
		f := clock(yardstick)
		floor = append(floor, f)
		for i, c := range contestants {
			took[i] = append(took[i], f/clock(c.run))
		}
	}
	median := func(v []float64) float64 {
		slices.Sort(v)
		return v[len(v)/2]
	}
	b.ReportMetric(0, "ns/op")
	for i, c := range contestants {
		name := "ratio"
		if i > 0 {
			name = c.name + "-ratio"
		}
		b.ReportMetric(median(took[i]), name)
	}
	b.ReportMetric(float64(bytes)/median(floor)/1e9, "floor-GB/s")
}

func floorLayout(halo, row int) Layout {
	side := 256
	if row < 64 {
		side = 64
	}
	return Layout{Size: [3]int{row, side, floorBytes / 8 / row / side}, Halo: [3]int{halo, halo, halo}}
}

var floorCases = []struct{ halo, row int }{{0, 256}, {1, 256}, {2, 256}, {2, 64}, {4, 256}, {4, 64}, {2, 16}, {4, 16}}

func forEachFloor(b *testing.B, fn func(b *testing.B, l Layout, storage []float64)) {
	for _, c := range floorCases {
		b.Run(fmt.Sprintf("halo=%d/row=%d", c.halo, c.row), func(b *testing.B) {
			l := floorLayout(c.halo, c.row)
			fn(b, l, touched[float64](l))
		})
	}
}

// chunks calls fn for the whole brick, chunk by chunk.
func chunks(l Layout, chunk []byte, fn func(part []byte, first int64) error) error {
	total := 8 * l.Cells()
	for at := int64(0); at < total; at += int64(len(chunk)) {
		if err := fn(chunk[:min(int64(len(chunk)), total-at)], at/8); err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkStreamAgainstCopy packs a brick in one go and compares with one
// large copy of as many bytes.
func BenchmarkStreamAgainstCopy(b *testing.B) {
	to, from := make([]float64, floorBytes/8), touched[float64](Layout{Size: [3]int{floorBytes / 8, 1, 1}})
	dst := Bytes(to)
	copy(to, from)
	forEachFloor(b, func(b *testing.B, l Layout, storage []float64) {
		inTurns(b, floorBytes,
			func() error { copy(to, from); return nil },
			contestant{"stream", func() error { return PackStream(dst, storage, l, 0) }},
			contestant{"plain", func() error { return PackBytes(dst, storage, l, 0) }},
			contestant{"unpack", func() error { return UnpackStream(storage, dst, l, 0) }},
			contestant{"unpack-plain", func() error { return UnpackBytes(storage, dst, l, 0) }},
		)
	})
}

// BenchmarkSumAgainstPack packs through chunks of 1 MiB, with and without
// checksum.
func BenchmarkSumAgainstPack(b *testing.B) {
	chunk := Bytes(make([]float64, 1<<17))
	sum := NewChecksum(floorBytes)
	forEachFloor(b, func(b *testing.B, l Layout, storage []float64) {
		inTurns(b, floorBytes,
			func() error {
				return chunks(l, chunk, func(p []byte, first int64) error { return PackBytes(p, storage, l, first) })
			},
			contestant{"PackSum", func() error {
				sum.Reset(floorBytes)
				return chunks(l, chunk, func(p []byte, first int64) error { return PackSum(p, storage, l, first, sum, 8*first) })
			}},
			contestant{"PackBytes+Add", func() error {
				sum.Reset(floorBytes)
				return chunks(l, chunk, func(p []byte, first int64) error {
					if err := PackBytes(p, storage, l, first); err != nil {
						return err
					}
					sum.Add(8*first, p)
					return nil
				})
			}},
		)
	})
}

// BenchmarkCountAgainstNone packs and sums up through a chunk of 2 MiB, as a save does,
// counting what isn't finite and not, by each set of kernels: packed, and saved, which is
// that with a write of each chunk to a file in memory whose pages exist.
func BenchmarkCountAgainstNone(b *testing.B) {
	file, err := os.CreateTemp("/dev/shm", "pack-bench-")
	if err != nil {
		b.Skip(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	chunk := Bytes(onesOf(2 << 20 / 8))
	sum, count := NewChecksum(floorBytes), NewChecksum(floorBytes)
	count.CountNonFinite()
	before := kernels
	defer func() { kernels = before }()
	for _, k := range available() {
		b.Run(k.name, func(b *testing.B) {
			kernels = k
			forEachFloor(b, func(b *testing.B, l Layout, storage []float64) {
				move := func(sum *Checksum, write bool) func() error {
					return func() error {
						sum.Reset(floorBytes)
						return chunks(l, chunk, func(p []byte, first int64) error {
							err := PackSum(p, storage, l, first, sum, 8*first)
							if err == nil && write {
								_, err = file.WriteAt(p, 8*first)
							}
							return err
						})
					}
				}
				for _, way := range []string{"packed", "saved"} {
					b.Run(way, func(b *testing.B) {
						none, some := move(sum, way == "saved"), move(count, way == "saved")
						if err := none(); err != nil { // so that the pages exist
							b.Fatal(err)
						}
						inTurns(b, floorBytes, none, contestant{"count", some})
					})
				}
			})
		})
	}
}

// BenchmarkFileAgainstWrite packs, sums up and writes chunk by chunk into a file
// in memory whose pages exist, and compares with writes of the same size out of
// one large buffer.
func BenchmarkFileAgainstWrite(b *testing.B) {
	file, err := os.CreateTemp("/dev/shm", "pack-bench-")
	if err != nil {
		b.Skip(err)
	}
	defer os.Remove(file.Name())
	defer file.Close()
	from := Bytes(touched[float64](Layout{Size: [3]int{floorBytes / 8, 1, 1}}))
	if _, err := file.WriteAt(from, 0); err != nil {
		b.Fatal(err)
	}
	sum := NewChecksum(floorBytes)
	for _, size := range []int{128 << 10, 256 << 10, 512 << 10, 1 << 20, 2 << 20} {
		b.Run(fmt.Sprintf("chunk=%dK", size>>10), func(b *testing.B) {
			chunk := Bytes(onesOf(size / 8))
			forEachFloor(b, func(b *testing.B, l Layout, storage []float64) {
				inTurns(b, floorBytes,
					func() error {
						for at := 0; at < floorBytes; at += size {
							if _, err := file.WriteAt(from[at:at+size], int64(at)); err != nil {
								return err
							}
						}
						return nil
					},
					contestant{"PackSum", func() error {
						sum.Reset(floorBytes)
						return chunks(l, chunk, func(p []byte, first int64) error {
							if err := PackSum(p, storage, l, first, sum, 8*first); err != nil {
								return err
							}
							_, err := file.WriteAt(p, 8*first)
							return err
						})
					}},
				)
			})
		})
	}
}

// BenchmarkStreamAgainstPlain gives the thresholds: rows from which on streaming
// pays, adjoining or apart, and bytes from which on a snapshot is better
// streamed, packed over and over between sweeps through another 8 MiB, as those
// of a solver.
func BenchmarkStreamAgainstPlain(b *testing.B) {
	for _, row := range []int{8, 9, 12, 16, 24, 32, 64, 100, 128, 192, 256} {
		l := Layout{Size: [3]int{row, 64, floorBytes / 4 / 8 / row / 64}, Halo: [3]int{2, 2, 2}}
		storage, dst := touched[float64](l), Bytes(onesOf(int(l.Cells())))
		b.Run(fmt.Sprintf("pack/row=%d", row), func(b *testing.B) {
			inTurns(b, int64(len(dst)),
				func() error { return PackBytes(dst, storage, l, 0) },
				contestant{"stream", func() error { return PackStream(dst, storage, l, 0) }})
		})
		b.Run(fmt.Sprintf("unpack/row=%d", row), func(b *testing.B) {
			inTurns(b, int64(len(dst)),
				func() error { return UnpackBytes(storage, dst, l, 0) },
				contestant{"stream", func() error { return UnpackStream(storage, dst, l, 0) }})
		})
	}
	solver := onesOf(1 << 20)
	for _, size := range []int{64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20} {
		l := Layout{Size: [3]int{64, 64, size / 8 / 64 / 64}, Halo: [3]int{2, 2, 2}}
		storage, dst := touched[float64](l), Bytes(onesOf(int(l.Cells())))
		sweeps := func(pack func([]byte, []float64, Layout, int64) error) func() error {
			return func() error {
				for range 4 {
					if err := pack(dst, storage, l, 0); err != nil {
						return err
					}
					for i := range solver {
						solver[i] += 1
					}
				}
				return nil
			}
		}
		b.Run(fmt.Sprintf("bytes=%dK", size>>10), func(b *testing.B) {
			inTurns(b, int64(len(dst)), sweeps(PackBytes[float64]), contestant{"stream", sweeps(PackStream[float64])})
		})
	}
}
