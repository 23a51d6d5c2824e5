package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/pack"
)

// chunkBytes is the piece in which a stream packs and writes.
const chunkBytes = 1 << 20

func (s *state) packLayout() pack.Layout {
	return pack.Layout{Size: s.box.Size, Halo: [3]int{s.Halo, s.Halo, s.Halo}}
}

// copying is a plain copy of as many bytes as there are owned cells.
func copying(symbol string) contestant {
	return func(w *worker, s *state) (turn, error) {
		run, _, err := w.call(s, "posix", symbol, s.paths(s.dir, ".bin"))
		return turn{run: run, check: func() error {
			for i, v := range s.packed[0] {
				if want := s.padded[0][i]; v != want && (v == v || want == want) {
					return fmt.Errorf("copied cell %d is %v, not %v", i, v, want)
				}
			}
			return nil
		}, spoil: s.spoilPacked}, err
	}
}

func (s *state) spoilPacked() error {
	setAll(s.packed[0], ghost)
	return nil
}

// packing is a kernel in C.
func packing(symbol string) contestant {
	return func(w *worker, s *state) (turn, error) {
		run, _, err := w.call(s, "posix", symbol, s.paths(s.dir, ".bin"))
		return turn{run: run, check: s.checkPacked, spoil: s.spoilPacked}, err
	}
}

// packOurs packs the whole brick in one call.
func packOurs(w *worker, s *state) (turn, error) {
	l := s.packLayout()
	return turn{
		run:   func() error { return pack.Pack(s.packed[0], s.padded[0], l, 0) },
		check: s.checkPacked,
		spoil: s.spoilPacked,
	}, nil
}

// packStream is the same with streaming stores, as for a copy that isn't read soon.
func packStream(w *worker, s *state) (turn, error) {
	l := s.packLayout()
	dst := pack.Bytes(s.packed[0])
	return turn{
		run:   func() error { return pack.PackStream(dst, s.padded[0], l, 0) },
		check: s.checkPacked,
		spoil: s.spoilPacked,
	}, nil
}

// inChunks calls use for one chunk after the other, with the offset of its bytes.
func (s *state) inChunks(chunk []byte, use func(piece []byte, offset int64) error) error {
	total := 8 * s.share
	for at := int64(0); at < total; at += int64(len(chunk)) {
		if err := use(chunk[:min(total-at, int64(len(chunk)))], at); err != nil {
			return err
		}
	}
	return nil
}

func newChunk() []byte { return pack.Bytes(make([]float64, chunkBytes/8)) }

func chunksOnly(w *worker, s *state) (turn, error) {
	chunk, l := newChunk(), s.packLayout()
	packed := func(piece []byte, offset int64) error { return pack.PackBytes(piece, s.padded[0], l, offset/8) }
	return turn{
		run: func() error { return s.inChunks(chunk, packed) },
		check: func() error {
			return s.inChunks(chunk, func(piece []byte, offset int64) error {
				if err := packed(piece, offset); err != nil {
					return err
				}
				cells, err := pack.View[float64](piece)
				if err != nil {
					return err
				}
				if i := firstWrong(cells, 0, offset/8); i >= 0 {
					return fmt.Errorf("cell %d is %v", offset/8+int64(i), cells[i])
				}
				return nil
			})
		},
	}, nil
}

func chunksSummed(w *worker, s *state) (turn, error) {
	chunk, l := newChunk(), s.packLayout()
	sum := pack.NewChecksum(8 * s.share)
	want := pack.Sum(pack.Bytes(s.packed[0]))
	return turn{
		run: func() error {
			sum.Reset(8 * s.share)
			return s.inChunks(chunk, func(piece []byte, offset int64) error {
				return pack.PackSum(piece, s.padded[0], l, offset/8, sum, offset)
			})
		},
		check: func() error { return checkSum(sum, s.share, want) },
	}, nil
}

func checkSum(sum *pack.Checksum, cells int64, want uint64) error {
	if got := pack.Finish(sum.Part(), 8*cells); got != want {
		return fmt.Errorf("the checksum is %016x, not %016x", got, want)
	}
	return nil
}

// chunksToFile packs, sums and writes into a file whose pages exist already.
func chunksToFile(w *worker, s *state) (turn, error) {
	chunk, l := newChunk(), s.packLayout()
	sum := pack.NewChecksum(8 * s.share)
	want := pack.Sum(pack.Bytes(s.packed[0]))
	path := s.path("chunks-ours.bin")
	return turn{
		run: func() error {
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			sum.Reset(8 * s.share)
			return s.inChunks(chunk, func(piece []byte, offset int64) error {
				if err := pack.PackSum(piece, s.padded[0], l, offset/8, sum, offset); err != nil {
					return err
				}
				_, err := f.WriteAt(piece, offset)
				return err
			})
		},
		check: func() error {
			if err := checkSum(sum, s.share, want); err != nil {
				return err
			}
			return check(output{path: path, cells: s.share, size: 8 * s.share})
		},
		spoil: func() error { return s.zeros(path) },
	}, nil
}

// zeros writes zeros into a file, all of whose pages are there then.
func (s *state) zeros(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	err = s.inChunks(make([]byte, chunkBytes), func(piece []byte, offset int64) error {
		_, err := f.WriteAt(piece, offset)
		return err
	})
	return errors.Join(err, f.Close())
}

// chunksFloor writes chunks of a large packed buffer into existing pages.
func chunksFloor(w *worker, s *state) (turn, error) {
	path := s.path("chunks-floor.bin")
	paths := make([]string, s.Fields)
	for f := range paths {
		paths[f] = path
	}
	run, _, err := w.call(s, "posix", "chunks_write", paths)
	return turn{run: run, check: func() error {
		return check(output{path: path, cells: s.share, size: 8 * s.share})
	}, spoil: func() error { return s.zeros(path) }}, err
}
