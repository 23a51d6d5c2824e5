package pack_test

import (
	"fmt"

	"github.com/fieldstone-io/fieldstone/pack"
)

// A brick of 3x2 owned cells with one cell of padding around it, packed in two
// chunks.
func ExamplePack() {
	l := pack.Layout{Size: [3]int{3, 2, 1}, Halo: [3]int{1, 1, 0}}
	storage := make([]float64, l.PaddedCells())
	for j := range 2 {
		for i := range 3 {
			storage[l.Index(i, j, 0)] = float64(10*j + i)
		}
	}

	chunk := make([]float64, 4)
	for first := int64(0); first < l.Cells(); first += int64(len(chunk)) {
		n := min(int64(len(chunk)), l.Cells()-first)
		if err := pack.Pack(chunk[:n], storage, l, first); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(chunk[:n])
	}
	// Output:
	// [0 1 2 10]
	// [11 12]
}

// A state that was saved as float64 goes back into a float32 field only if
// nothing is lost.
func ExampleNarrow() {
	l := pack.Layout{Size: [3]int{2, 1, 1}}
	storage := make([]float32, 2)
	fmt.Println(pack.Narrow(storage, []float64{0.5, -3}, l, 0), storage)
	fmt.Println(pack.Narrow(storage, []float64{0.25, 0.1}, l, 0), storage)
	// Output:
	// <nil> [0.5 -3]
	// cell 1: 0.1 is not exactly a float32 [0.5 -3]
}

// Two ranks hold parts of a file. Neither sees the whole of it, and both get
// to its checksum.
func ExampleChecksum() {
	file := []byte("123456789")

	first := pack.NewChecksum(int64(len(file)))
	first.Add(0, file[0:2])
	first.Add(5, file[5:7])

	second := pack.NewChecksum(int64(len(file)))
	second.Add(2, file[2:5])
	second.Add(7, file[7:9])

	parts := first.Part() ^ second.Part() // a reduction over the ranks
	fmt.Printf("%016x\n", pack.Finish(parts, int64(len(file))))
	fmt.Printf("%016x\n", pack.Sum(file))
	// Output:
	// ae8b14860a799888
	// ae8b14860a799888
}
