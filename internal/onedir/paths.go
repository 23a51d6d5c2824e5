package onedir

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// Abs makes a relative path absolute and changes nothing else of it: where ".." leads
// after a link, only the system knows. An empty path stays empty.
func Abs(path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return vfs.Under(dir, path), nil
}

// Paths are absolute paths that become those of rank 0 on all ranks. They cost nothing
// beside an agreement that a call makes anyway, unless they differ.
type Paths struct {
	own   []string
	words [digestWords]int64
}

// NewPaths takes what this rank makes of the paths that all ranks give.
func NewPaths(own ...string) *Paths {
	p := &Paths{own: own}
	d := DigestOf(p.encode())
	d.put(p.words[:])
	return p
}

func (p *Paths) encode() []byte {
	var b []byte
	for _, path := range p.own {
		b = binary.AppendUvarint(b, uint64(len(path)))
		b = append(b, path...)
	}
	return b
}

// Maxima are the numbers that the agreement has to take the maximum of.
func (p *Paths) Maxima() []*int64 {
	list := make([]*int64, len(p.words))
	for i := range p.words {
		list[i] = &p.words[i]
	}
	return list
}

// Settle makes the paths rank 0's, after the agreement. It is collective if they differ,
// which all ranks know, and does nothing otherwise.
func (p *Paths) Settle(ctx context.Context, c *comm.Comm) error {
	if equal(p.words[:]) {
		return nil
	}
	b, err := c.Broadcast(ctx, 0, p.encode())
	if err != nil {
		return err
	}
	for i := range p.own { // as many as rank 0 has
		n, w := binary.Uvarint(b)
		p.own[i] = string(b[w : w+int(n)])
		b = b[w+int(n):]
	}
	return nil
}

// At returns a path.
func (p *Paths) At(i int) string { return p.own[i] }
