package runfile

import (
	"context"
	"maps"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// sums are the checksums that what is read is compared with: none where values aren't
// read.
func (i *inspector) sums() *storedSums {
	if !i.values {
		return nil
	}
	return i.r.sums
}

// rows compares rows of a dataset, from that of saved state first on.
func (i *inspector) rows(d dataset, first, row int, values []float64) error {
	for k := first; k < len(i.Times) && len(values) >= row; k++ {
		if err := i.sums().state(d.path, k, values[:row]); err != nil {
			return err
		}
		values = values[row:]
	}
	return nil
}

// withoutCells leaves the cells of fields out, which all ranks of a session read.
func withoutCells(o *options) error { o.noCells = true; return nil }

// cells reads and compares all cells of a field that has checksums.
func (i *inspector) cells(ctx context.Context, u *Unknown, d dataset) error {
	if i.o.noCells {
		return nil
	}
	size := u.Domain.Size
	plane := size[0] * size[1]
	var buffer []float64
	for k := range i.Times {
		sums, planes, err := i.sums().chunksOf(u, k)
		if err != nil {
			return err
		}
		if sums == nil {
			i.sums().lacks(d.path)
			return nil
		}
		step := max(1, min(size[2], transferBytes/8/plane))
		if buffer == nil {
			buffer = make([]float64, step*plane)
		}
		sum := chunkSum{planes: planes, depth: size[2]}
		for z := 0; z < size[2]; z += step {
			if err := ctx.Err(); err != nil {
				return err
			}
			n := min(step, size[2]-z)
			part := buffer[:n*plane]
			if err := h5.ReadSlab(i.f, d.path, part, []int{k, z, 0, 0}, []int{1, n, size[1], size[0]}); err != nil {
				return err
			}
			err := sum.add(part, n, func(chunk int, crc uint64) error { return i.sums().chunk(u, k, chunk, len(sums), sums[chunk], crc) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rest compares the records that no part of a file's reading has looked at, and notes
// what was found out about checksums.
func (i *inspector) rest() error {
	s := i.sums()
	if s == nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(s.records)) {
		err := s.wrong[path]
		switch {
		case s.verified[path] > 0, path == "settings" && err == nil, path == "checkpoint" && err == nil:
			continue // they are not what is in them; what keeps them from being read is said
		case err == nil:
			err = s.recordAt(path)
		case slices.ContainsFunc(i.faults, func(f error) bool { return f.Error() == err.Error() }):
			continue
		}
		if err := i.keep(err); err != nil {
			return err
		}
	}
	paths := slices.Collect(maps.Keys(s.columns))
	for name := range s.statisticColumns {
		if !slices.ContainsFunc(statistics, func(field statistic) bool { return field.name == name }) {
			paths = append(paths, h5.Join(statisticsGroup, name))
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		has, err := i.f.Exists(path)
		if err == nil && !has {
			err = in(i.f.Name(), path, ErrChecksum, "there are checksums of it, and it is missing")
		}
		isField := func(u Unknown) bool { return u.Kind == Field && path == h5.Join("unknowns", u.Name) }
		if err == nil && slices.ContainsFunc(i.Layout.Unknowns, isField) {
			err = s.bad(stateNamesPath, "%q is a field, which has checksums of chunks", path)
		}
		if err := i.keep(err); err != nil {
			return err
		}
	}
	i.ChecksumAlgorithm, i.Checksums, i.Unsummed = s.algorithm, s.count(), s.lacking
	return nil
}
