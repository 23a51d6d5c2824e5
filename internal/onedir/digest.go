package onedir

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// A Digest is what a rank sees, in brief.
type Digest [sha256.Size]byte

// digestWords is how many numbers tell whether digests are equal: each word and its
// complement, of which the ranks take the maximum.
const digestWords = 2 * sha256.Size / 8

// put makes the numbers those of a digest.
func (d *Digest) put(v []int64) {
	for i := range len(v) / 2 {
		w := int64(binary.LittleEndian.Uint64(d[8*i:]))
		v[2*i], v[2*i+1] = w, ^w // the maximum of ^w is ^ of the minimum
	}
}

// equal reports whether the maxima are those of equal digests.
func equal(v []int64) bool {
	for i := 0; i < len(v); i += 2 {
		if v[i] != ^v[i+1] {
			return false
		}
	}
	return true
}

// DigestOf returns the digest of texts.
func DigestOf(texts ...[]byte) Digest {
	h := sha256.New()
	for _, t := range texts {
		add(h, int64(len(t)), t)
	}
	return Digest(h.Sum(nil))
}

func add(h hash.Hash, n int64, b []byte) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(n))
	h.Write(size[:])
	h.Write(b)
}

// A Part is a part of a file. With a negative Length it is the whole file.
type Part struct {
	Path           string
	Offset, Length int64
}

// sampleBytes is what is read of a part at once: at its beginning, in its middle and at
// its end.
const sampleBytes = 4096

// Sample returns the digest of the sizes of files and of some of their content: enough
// to tell files of one layout and of different states from each other, at a cost that
// doesn't grow with the files.
func Sample(fsys vfs.FS, parts []Part) (Digest, error) {
	h := sha256.New()
	for _, p := range parts {
		if err := sample(h, fsys, p); err != nil {
			return Digest{}, err
		}
	}
	return Digest(h.Sum(nil)), nil
}

func sample(h hash.Hash, fsys vfs.FS, p Part) (err error) {
	// A FIFO would wait for its writer without NoWait.
	f, err := fsys.OpenFile(p.Path, os.O_RDONLY|vfs.NoWait, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w", p.Path, vfs.ErrNotRegular)
	}
	if p.Length < 0 {
		p.Offset, p.Length = 0, info.Size()
	}
	n := min(sampleBytes, p.Length)
	for _, at := range []int64{0, (p.Length - n) / 2, p.Length - n} {
		b := make([]byte, n)
		got, err := f.ReadAt(b, p.Offset+at)
		if err != nil && err != io.EOF {
			return err
		}
		add(h, info.Size(), b[:got])
	}
	return nil
}
