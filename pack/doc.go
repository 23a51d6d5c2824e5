// Package pack moves the owned cells of a brick between its padded storage and
// the bytes of a file, and computes the checksum of a file from pieces of it.
//
// A [Layout] says how many cells a brick owns and how many cells of padding are
// around them. Owned cells have numbers in packed order: x fastest, then y,
// then z. [Pack] and [Unpack] copy any range of them, so that a large brick can
// go through a small buffer:
//
//	l := pack.Layout{Size: [3]int{256, 256, 256}, Halo: [3]int{2, 2, 2}}
//	chunk := make([]byte, 256<<10)
//	sum := pack.NewChecksum(8 * l.Cells())
//	for first := int64(0); first < l.Cells(); first += int64(len(chunk) / 8) {
//		n := min(l.Cells()-first, int64(len(chunk)/8))
//		if err := pack.PackSum(chunk[:8*n], storage, l, first, sum, 8*first); err != nil {
//			return err
//		}
//		// write chunk[:8*n] at offset 8*first
//	}
//	fmt.Printf("%016x\n", pack.Finish(sum.Part(), 8*l.Cells()))
//
// Moving cells does not allocate (on a big-endian host, reading from the bytes of
// a file does), and nothing here starts goroutines or does I/O. Source and
// destination must not overlap. Wrong lengths and ranges are errors ([*SizeError],
// [*RangeError], [*PartialCellError]) that say what was given and what was wanted;
// then nothing has been moved.
//
// # Ways to move
//
//	PackBytes, UnpackBytes      cells without gaps
//	PackRows, UnpackRows        rows that lie apart, such as a brick's in a window of the file
//	PackSum, UnpackSum          with the checksum in the same loop: for what is written at once
//	PackStream, UnpackStream    past the caches: for what is not read soon
//
// The stores of the last two lines differ in what they leave behind. A chunk that
// goes straight to a file, or into a checksum, must be in the cache; a snapshot
// that a background writer takes up much later must not, and is 1.1 to 1.3 times
// as fast if it goes past the caches. Streaming needs no care of the caller's: other
// goroutines see the bytes as they see those of any other function.
//
// # Element types
//
// Files hold float64 or complex128, little-endian. float32 storage is widened
// on the way out and narrowed on the way in ([Widen], [Narrow]). Both are exact:
// zeros keep their sign, subnormal numbers and infinities are values like any
// other, and NaNs keep their bits, signalling ones too, whatever floating-point
// mode the solver has put its threads into. A float64 that no float32 widens to,
// a NaN with a longer payload among them, is a [*NotFloat32Error]. [CheckNarrow]
// finds it before anything changes.
//
// The functions on typed slices move elements in the byte order of the host.
// Those whose names end in Bytes work on the bytes of a file, at any address.
//
// # Checksums
//
// A [Checksum] takes the pieces of a file that one rank has. The parts of all
// ranks, combined with XOR, give the CRC-64/NVME of the file ([Finish]): the same
// number that any standard implementation computes over the whole file. A CRC
// without its inversions is linear, and n zero bytes are a multiplication by
// x^(8n) modulo the polynomial, so gaps between pieces cost a multiplication and
// not their length. [Combine] joins the checksums of two files in the same way.
//
// Where it is asked to ([Checksum.CountNonFinite]), a Checksum also counts the numbers
// that are NaN or infinite, in the same loop or while they are in the first-level cache.
//
// # Concurrency
//
// The functions may run at the same time on storage that nobody writes to. A
// Checksum belongs to one goroutine at a time.
//
// # Kernels
//
// The loops are assembly on amd64, for AVX2 and for AVX-512, chosen once by what
// the processor can do; elsewhere and with the build tag purego
// they are Go, and so they are on arm64, except the one that counts. All of them are run against the same tests. They prefetch a page
// ahead. Rows that adjoin in the destination are streamed from 64 bytes on with
// AVX-512, which puts the lines that two rows share together in registers;
// others, and all unaligned ones with AVX2, from 768 bytes on, as measured with
// AVX-512: below that, reading the shared lines costs more than streaming saves.
// Rows for a window that other ranks read (PackRows) are streamed likewise.
//
// # Speed
//
// One core of an AMD EPYC of the Turin generation, 128 MiB, pages of 4 KiB, on a
// virtual machine whose memory had between 12 and 25 GB/s for a copy, as the
// neighbours left it. Hence ratios of rates measured in turns, medians: to Go's
// copy of as many bytes, which is 1.0 to 1.3 times as fast as the memcpy of the C
// library there. It moves the whole array in one string instruction, which does
// not read the destination either, and has no halo to skip.
//
//	halo, cells of a row    0, 256  1, 256  2, 256  2, 64  4, 256  4, 64  2, 16  4, 16
//	PackStream                1.07    0.91    0.91   0.91    0.93   0.91   0.66   0.58
//	PackBytes                 0.85    0.83    0.83   0.81    0.84   0.83   0.62   0.54
//	UnpackStream              1.12    0.97    0.96   0.83    0.95   0.83   0.54   0.48
//	UnpackBytes               0.87    0.86    0.83   0.85    0.85   0.84   0.54   0.47
//
//	go test -run '^$' -bench StreamAgainstCopy -benchtime 15x ./pack
//
// In chunks of 1 MiB, against PackBytes alone:
//
//	PackSum                   0.95    0.91    0.93   0.93    0.90   0.89   0.93   0.87
//	PackBytes, then Add       0.73    0.75    0.74   0.77    0.73   0.76   0.82   0.84
//
//	go test -run '^$' -bench SumAgainstPack -benchtime 15x ./pack
//
// PackSum, then a write to pages of a tmpfs that exist, against the write alone
// out of a large buffer: 0.77 to 0.85 (rows of 16 cells: 0.6 to 0.7) with chunks of
// 128 and 256 KiB, 0.72 to 0.79 with larger ones. The system's copy into the pages
// is what takes the time, and is hardly faster out of the cache:
//
//	go test -run '^$' -bench FileAgainstWrite -benchtime 9x ./pack
//
// Counting what isn't finite, against the same without: PackSum through a chunk of 2 MiB,
// and that with a write of each chunk to such a file, which is a save without a disk. Medians
// over halos of 0, 2 and 4 cells, rows of 64 and 256:
//
//	kernels     AVX-512 with VPCLMULQDQ  AVX-512  AVX2    Go
//	packed                         1.00     0.92  0.93  0.65
//	saved                          1.00     0.96  0.99  0.81
//
//	go test -run '^$' -bench CountAgainstNone -benchtime 15x ./pack
//
// With VPCLMULQDQ and rows that are no multiples of 128 bytes, such as 100 and 50 cells, it is
// 0.95 to 1.0 packed, and 1.0 saved.
//
// Chunks of float32 cells, at best, in GB/s of float64 bytes: widening 23 to 41,
// narrowing with its check 11 to 26; a plain copy had 21 then.
//
//	go test -run '^$' -bench '^Benchmark(Widen|Narrow|Copy)$' -benchtime 1x -count 30 ./pack
//
// The checksum alone, in nanoseconds a call, against crc64nvme, and skipping a
// gap:
//
//	bytes             64   128   256   1024   2048   4096   65536
//	Sum               24    52    73     29     48     86    1274
//	crc64nvme         34    88   103    152    147    187    1388
//
//	a gap: 5 if it was met before, 50 to 2800 by its length if not
//
//	go test -run '^$' -bench 'Sum$|Operator|Shift' -benchtime 1ms -count 20 ./pack
package pack
