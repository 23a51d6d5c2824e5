package publish

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// Verify reads every file of the bundle in a stream and compares its checksum
// and size. It returns a [*DamageError] for the first file that isn't as it was
// published. Of a bundle without checksums only the sizes are compared; see
// [Bundle.HasChecksums].
//
// progress, if not nil, is called after each piece with the file that is being
// read and the number of bytes of all files that are done and to be done.
func (b *Bundle) Verify(ctx context.Context, progress func(file string, done, total int64)) error {
	files := []string{metadataFile}
	if b.info.Sidecar {
		files = append(files, sidecarFile)
	}
	sizes := make(map[string]int64)
	for _, id := range b.info.Metadata.Fields {
		path := fieldPath(id)
		files = append(files, path)
		sizes[path] = b.fieldBytes()
	}
	var done, total int64
	for _, file := range files {
		size, ok := sizes[file]
		if !ok {
			var err error
			if size, err = regularSize(b.fsys, cmp.Or(b.root, b.dir), file); err != nil {
				return err
			}
			sizes[file] = size
		}
		total += size
	}
	buffer := b.buffer()
	for _, file := range files {
		err := b.verifyFile(ctx, file, sizes[file], buffer, func(n int64) {
			done += n
			if progress != nil {
				progress(file, done, total)
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *Bundle) verifyFile(ctx context.Context, file string, size int64, buffer []byte, read func(n int64)) error {
	f, err := b.openFile(file, size)
	if err != nil {
		return err
	}
	err = b.verifyContent(ctx, f, file, size, buffer, read)
	return errors.Join(err, f.Close())
}

func (b *Bundle) verifyContent(ctx context.Context, f vfs.File, file string, size int64, buffer []byte, read func(n int64)) error {
	if b.sums == nil {
		read(size)
		return ctx.Err()
	}
	var crc uint64
	err := b.stream(ctx, f, file, size, buffer, func(piece []byte) {
		crc = pack.Update(crc, piece)
		read(int64(len(piece)))
	})
	if err != nil {
		return err
	}
	return checkSum(b.dir, file, crc, b.sums[file])
}

// buffer is for stream, and not larger than the files call for.
func (b *Bundle) buffer() []byte { return make([]byte, min(readBuffer, max(b.fieldBytes(), 4<<10))) }

// stream reads size bytes of a file in pieces.
func (b *Bundle) stream(ctx context.Context, f io.ReaderAt, file string, size int64, buffer []byte, use func(piece []byte)) error {
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		piece := buffer[:min(int64(len(buffer)), size-at)]
		if err := vfs.ReadFull(f, piece, at); err != nil {
			return b.readFault(file, err)
		}
		use(piece)
		at += int64(len(piece))
	}
	return nil
}
