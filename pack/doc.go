// Package pack moves the owned cells of a brick between its padded storage and
// the bytes of a file, and computes the checksum of a file from pieces of it.
//
// A [Layout] says how many cells a brick owns and how many cells of padding are
// around them. Owned cells have numbers in packed order: x fastest, then y,
// then z. [Pack] and [Unpack] copy any range of them, so that a large brick can
// go through a small buffer:
//
//	l := pack.Layout{Size: [3]int{256, 256, 256}, Halo: [3]int{2, 2, 2}}
//	chunk := make([]byte, 1<<20)
//	sum := pack.NewChecksum(8 * l.Cells())
//	for first := int64(0); first < l.Cells(); first += int64(len(chunk) / 8) {
//		n := min(l.Cells()-first, int64(len(chunk)/8))
//		if err := pack.PackBytes(chunk[:8*n], storage, l, first); err != nil {
//			return err
//		}
//		sum.Add(8*first, chunk[:8*n])
//		// write chunk[:8*n] at offset 8*first
//	}
//	fmt.Printf("%016x\n", pack.Finish(sum.Part(), 8*l.Cells()))
//
// Moving cells does not allocate (on a big-endian host, reading from the bytes of
// a file does), and nothing here starts goroutines or does I/O. Source and
// destination must not overlap. Wrong lengths and ranges are errors ([*SizeError], [*RangeError], [*PartialCellError]) that say
// what was given and what was wanted; then nothing has been moved.
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
// # Concurrency
//
// The functions may run at the same time on storage that nobody writes to. A
// Checksum belongs to one goroutine at a time.
//
// # Speed
//
// One core (AMD EPYC of the Turin generation, 2 virtual cores), GB/s of packed
// float64 bytes, the best of 40 to 60 runs; a plain copy in the same chunks of 1 MiB
// (BenchmarkCopy) has 25.
//
//	halo, cells of a row        0, 256   1, 256   2, 256   2, 64   2, 16   4, 16
//	Pack                          27.9     23.6     24.2    15.3     9.4     7.6
//	Unpack                        33.8     23.8     27.0    15.3     9.2     7.7
//	Pack, then Checksum.Add       14.5     14.3     16.3    11.1     6.7     5.8
//
//	go test -run '^$' -bench 'Copy|Pack' -benchtime 1x -count 60 ./pack
//
// Widening runs at 5.0 and narrowing, with its check, at 2.7, with halos 0 and 2:
//
//	go test -run '^$' -bench 'Widen|Narrow' -benchtime 1x -count 40 ./pack
//
// The checksum alone, in nanoseconds a call, against crc64nvme, which is given
// whole aligned blocks only, and skipping a gap:
//
//	bytes             64   128   256   512   1024   4096   65536
//	Sum               23    50    94    90    130    149    1485
//	crc64nvme         33    87   120   112    157    201    1570
//
//	a gap: 5 if it was met before, 50 to 2800 by its length if not
//	rows of 128, 512, 2048 bytes with gaps of two lengths: 35, 67, 65 a row
//
//	go test -run '^$' -bench 'Sum|Operator|Shift|Rows' -benchtime 1ms -count 60 ./pack
package pack
