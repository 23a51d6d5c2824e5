package runfile

import (
	"context"
	"fmt"
	"slices"

	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// shape of a field in C order, without the time.
func fieldShape(d grid.Domain) []int { return []int{d.Size[2], d.Size[1], d.Size[0]} }

// planes is how many z planes of a field a chunk has: as many as fit, in chunks of
// about the same size.
func planes(d grid.Domain, chunkBytes int) (int, error) {
	plane := int64(d.Size[0]) * int64(d.Size[1]) * 8
	if plane > int64(chunkBytes) {
		if plane >= largestChunk {
			return 0, fmt.Errorf("%w: a plane of %d x %d cells is as large as %d bytes, which a chunk of HDF5 must not be", ErrInput, d.Size[0], d.Size[1], int64(largestChunk))
		}
		return 1, nil
	}
	most := chunkBytes / int(plane)
	chunks := (d.Size[2] + most - 1) / most
	return (d.Size[2] + chunks - 1) / chunks, nil
}

// fieldLayout is how a field is stored: the chunks have their places in the file from
// the start, so that others than HDF5 can write them.
func fieldLayout(d grid.Domain, states int, o *options) (h5.Layout, error) {
	n, err := planes(d, o.chunkBytes)
	if err != nil {
		return h5.Layout{}, err
	}
	return h5.Layout{
		Shape:      slices.Concat([]int{states}, fieldShape(d)),
		Chunk:      []int{1, n, d.Size[1], d.Size[0]},
		Extendible: true,
		Early:      true,
	}, nil
}

// createField makes the dataset of a field with room for some states.
func createField(f *h5.File, u *Unknown, states int, o *options) (h5.Layout, error) {
	path := h5.Join("unknowns", u.Name)
	layout, err := fieldLayout(u.Domain, states, o)
	if err != nil {
		return layout, fmt.Errorf("field %q: %w", u.Name, err)
	}
	if err := h5.CreateDataset[float64](f, path, layout); err != nil {
		return layout, err
	}
	return layout, f.SetAttributeString(path, unitAttribute, u.Unit)
}

func writeField(ctx context.Context, f *h5.File, u *Unknown, states int, o *options) error {
	path := h5.Join("unknowns", u.Name)
	if o.fields == nil {
		return in(f.Name(), path, ErrInput, "the field has no source of values")
	}
	layout, err := createField(f, u, states, o)
	if err != nil {
		return err
	}
	size := u.Domain.Size
	plane := size[0] * size[1]
	// No transfer crosses the end of a chunk.
	step := max(1, min(layout.Chunk[1], transferBytes/8/plane))
	buffer := make([]float64, step*plane)
	sums := make([][]uint64, states)
	for i := range states {
		sum := chunkSum{planes: layout.Chunk[1], depth: size[2]}
		for z := 0; z < size[2]; {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(step, size[2]-z, layout.Chunk[1]-z%layout.Chunk[1])
			part := buffer[:n*plane]
			box := grid.Box{Low: [3]int{0, 0, z}, Size: [3]int{size[0], size[1], n}}
			if err := o.fields(ctx, u.Name, i, box, part); err != nil {
				return fmt.Errorf("field %q, saved state %d: %w", u.Name, i, err)
			}
			if err := h5.WriteSlab(f, path, part, []int{i, z, 0, 0}, []int{1, n, size[1], size[0]}); err != nil {
				return err
			}
			_ = sum.add(part, n, func(_ int, crc uint64) error {
				sums[i] = append(sums[i], crc)
				return nil
			})
			z += n
		}
	}
	return writeFieldSums(f, u.Name, sums, 0, o)
}

// ReadField reads the values of a field in a box of its domain at saved state number
// state, from 0: the cells in C order, x fastest. They are in the file, which must
// still be there; a file that doesn't have the state any more is an error that matches
// [ErrMismatch].
//
// Where the file has checksums, chunks of the field of which a call, or several calls that
// read whole planes in the order of z, read everything are compared with them: others
// than were written are an error that matches [ErrChecksum], and dst has them. A part of a
// chunk can't be compared.
func (s *Solution) ReadField(ctx context.Context, name string, state int, box grid.Box, dst []float64) error {
	if state < 0 || state >= len(s.origins) {
		return fmt.Errorf("read field %q: %w: number %d of %d", name, ErrNoState, state, len(s.origins))
	}
	return readField(ctx, &s.Layout, s.origins[state], s.reading, s.Times[state], name, box, dst)
}

func readField(ctx context.Context, l *Layout, at origin, reading *fieldReading, time float64, name string, box grid.Box, dst []float64) error {
	u := l.Unknown(name)
	if u == nil || u.Kind != Field {
		return fmt.Errorf("read field %q: %w: no field of that name", name, ErrInput)
	}
	if !u.Domain.Box().Contains(box) {
		return fmt.Errorf("read field %q: %w: the box %v is not within %v", name, ErrInput, box, u.Domain.Box())
	}
	if int64(len(dst)) != box.Cells() {
		return fmt.Errorf("read field %q: %w: room for %d values of %d", name, ErrInput, len(dst), box.Cells())
	}
	if !h5.Enabled {
		return fmt.Errorf("read field %q: %w", name, ErrNoHDF5)
	}
	err := withFile(ctx, at.path, func(f *h5.File, r root) error {
		if err := checkTime(f, at.index, time); err != nil {
			return err
		}
		err := h5.ReadSlab(f, h5.Join("unknowns", name), dst,
			[]int{at.index, box.Low[2], box.Low[1], box.Low[0]}, []int{1, box.Size[2], box.Size[1], box.Size[0]})
		if err != nil {
			return err
		}
		return reading.check(r.sums, u, at.index, box, dst)
	})
	if err != nil {
		return fmt.Errorf("read field: %w", err)
	}
	return nil
}

// checkTime makes sure that a file has the state that it had.
func checkTime(f *h5.File, index int, time float64) error {
	there := make([]float64, 1)
	if err := h5.ReadSlab(f, "time", there, []int{index}, []int{1}); err != nil {
		return err
	}
	if there[0] != time {
		return in(f.Name(), "time", ErrMismatch, "state %d was of %v s and is of %v s: the file has changed", index, time, there[0])
	}
	return nil
}

// ReadField is [Solution.ReadField] for the state of a checkpoint. A field that is in a
// bundle is an error that matches [ErrNoState] and names the bundle.
func (k *Checkpoint) ReadField(ctx context.Context, name string, box grid.Box, dst []float64) error {
	if bundle, ok := k.Bundles[name]; ok {
		return fmt.Errorf("read field %q: %w: it is in the bundle %s", name, ErrNoState, bundle)
	}
	if k.origin.file == "" {
		return fmt.Errorf("read field %q: %w: the checkpoint was not read from a file", name, ErrNoState)
	}
	return readField(ctx, &k.Layout, k.origin, k.reading, k.Time, name, box, dst)
}
