package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/fieldstone-io/fieldstone/brick"
	"github.com/fieldstone-io/fieldstone/publish"
)

// A turn is a contestant in a case: what is timed, and what must be right then.
type turn struct {
	run func() error
	// check compares the output. It isn't collective and each rank takes a part.
	check func() error
	// spoil, if there is one, makes an output wrong that stays between the turns.
	spoil func() error
	// close, if there is one, ends the case for the contestant.
	close func()
}

// errMissing says that the library of a peer isn't there.
var errMissing = errors.New("not built")

// A contestant prepares its turns in a case; w and s live as long as the case. An
// error with errMissing in its chain keeps it out of the case.
type contestant func(w *worker, s *state) (turn, error)

// contestants are all that cases can name.
var contestants = map[string]contestant{
	// Saving.
	"fieldstone":       ours(),
	"fieldstone-fresh": fresh(),
	"fieldstone-posix": ours(publish.Bricks(brick.Using(brick.POSIX))),
	"fieldstone-node":  ours(publish.Bricks(brick.Using(brick.Node))),
	"fieldstone-mpiio": ours(publish.Bricks(brick.Using(brick.MPIIO))),
	"floor":            raw("posix", "floor_save"),
	"separate":         separate,
	"common":           raw("mpiio", "common_save"),
	"rows":             raw("mpiio", "rows_save"),
	"hdf5":             inOneFile("hdf5", "hdf5_save", ".h5", false),
	"pnetcdf":          inOneFile("pnetcdf", "pnetcdf_save", ".nc", true),

	// Restarting.
	"inplace":         oursLoading(publish.InPlace()),
	"inplace-posix":   oursLoading(publish.InPlace(), publish.Bricks(brick.Using(brick.POSIX))),
	"inplace-node":    oursLoading(publish.InPlace(), publish.Bricks(brick.Using(brick.Node))),
	"inplace-mpiio":   oursLoading(publish.InPlace(), publish.Bricks(brick.Using(brick.MPIIO))),
	"inplace-fresh":   freshLoading(publish.InPlace()),
	"all-or-nothing":  oursLoading(),
	"pread":           loading("posix", "floor_load", true),
	"common-load":     loading("mpiio", "common_load", false),
	"rows-load":       loading("mpiio", "rows_load", false),
	"hdf5-load":       loadingOwn("hdf5", "hdf5", ".h5"),
	"pnetcdf-load":    loadingOwn("pnetcdf", "pnetcdf", ".nc"),
	"memcpy":          copying("copy_large"),
	"memcpy-stream":   copying("copy_stream"),
	"pack-naive":      packing("pack_naive"),
	"pack-rows":       packing("pack_rows"),
	"pack":            packOurs,
	"pack-stream":     packStream,
	"chunks":          chunksOnly,
	"chunks-sum":      chunksSummed,
	"chunks-sum-file": chunksToFile,
	"pwrite-chunks":   chunksFloor,
}

// ours saves a bundle, with plans that are kept from one to the next, as publish.Service
// does it.
func ours(opts ...publish.Option) contestant {
	return func(w *worker, s *state) (turn, error) {
		plans := publish.NewPlans()
		t, err := fresh(append(opts, publish.Reuse(plans))...)(w, s)
		t.close = plans.Close
		return t, err
	}
}

// fresh saves a bundle, with a plan of its own each time.
func fresh(opts ...publish.Option) contestant {
	return func(w *worker, s *state) (turn, error) {
		dir := filepath.Join(s.dir, "bundle")
		return turn{
			run:   func() error { return saveBundle(s, dir, opts...) },
			check: func() error { return checkShares(s, s.paths(filepath.Join(dir, "fields"), ".bin"), nil, false) },
		}, nil
	}
}

func saveBundle(s *state, dir string, opts ...publish.Option) error {
	if !s.Sync {
		opts = append([]publish.Option{publish.WithDurability(publish.None)}, opts...)
	}
	return publish.SaveBundle(context.Background(), s.c, dir, publish.State{Fields: s.named, Method: "bench"}, opts...)
}

// oursLoading loads the bundle that another launch saved, with plans that are kept.
func oursLoading(opts ...publish.Option) contestant {
	return func(w *worker, s *state) (turn, error) {
		plans := publish.NewPlans()
		t, err := freshLoading(append(opts, publish.Reuse(plans))...)(w, s)
		t.close = plans.Close
		return t, err
	}
}

func freshLoading(opts ...publish.Option) contestant {
	return func(w *worker, s *state) (turn, error) {
		return turn{
			run: func() error {
				_, err := publish.LoadBundle(context.Background(), s.c, w.bundle(), publish.Request{Fields: s.named, Method: "bench"}, opts...)
				return err
			},
			check: s.checkFields,
		}, nil
	}
}

// bundle is the bundle that restarts read.
func (w *worker) bundle() string { return filepath.Join(w.job.Tmpfs, "restart") }

// paths are the files of the fields, one each.
func (s *state) paths(dir, suffix string) []string {
	paths := make([]string, s.Fields)
	for f := range paths {
		paths[f] = filepath.Join(dir, fmt.Sprintf("f%d%s", f, suffix))
	}
	return paths
}

// checkShares compares this rank's contiguous share of each field.
func checkShares(s *state, paths []string, offsets []int64, bigEndian bool) error {
	for f, path := range paths {
		o := output{path: path, field: f, first: s.first, cells: s.share, offset: 8 * s.first, bigEndian: bigEndian}
		if offsets != nil {
			o.offset += offsets[f]
		} else {
			o.size = 8 * s.domain.Cells()
		}
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// raw is a peer that writes one file per field.
func raw(library, symbol string) contestant {
	return func(w *worker, s *state) (turn, error) {
		paths := s.paths(s.dir, ".bin")
		run, _, err := w.call(s, library, symbol, paths)
		return turn{run: run, check: func() error {
			if library == "posix" {
				return checkPackedShares(s, paths)
			}
			return checkShares(s, paths, nil, false)
		}}, err
	}
}

// checkPackedShares is for the floor, in which fields may share buffers.
func checkPackedShares(s *state, paths []string) error {
	for f, path := range paths {
		if err := check(output{path: path, field: s.packedValue(f), first: s.first, cells: s.share, offset: 8 * s.first, size: 8 * s.domain.Cells()}); err != nil {
			return err
		}
	}
	return nil
}

// separate writes one file per field and rank: no bundle, for information.
func separate(w *worker, s *state) (turn, error) {
	paths := s.paths(s.dir, ".bin")
	run, _, err := w.call(s, "posix", "separate_save", paths)
	return turn{run: run, check: func() error {
		for f, path := range paths {
			if err := check(output{path: fmt.Sprintf("%s.%d", path, s.c.Rank()), field: s.packedValue(f), first: s.first, cells: s.share, size: 8 * s.share}); err != nil {
				return err
			}
		}
		return nil
	}}, err
}

// inOneFile is a peer that writes all fields into one file and says where they begin.
func inOneFile(library, symbol, suffix string, bigEndian bool) contestant {
	return func(w *worker, s *state) (turn, error) {
		paths := make([]string, s.Fields)
		for f := range paths {
			paths[f] = s.path("all" + suffix)
		}
		run, offsets, err := w.call(s, library, symbol, paths)
		return turn{run: run, check: func() error { return checkShares(s, paths, offsets, bigEndian) }}, err
	}
}

// loading is a peer that reads the files of the bundle, into the packed buffers or
// into the fields.
func loading(library, symbol string, packed bool) contestant {
	return func(w *worker, s *state) (turn, error) {
		run, _, err := w.call(s, library, symbol, s.paths(filepath.Join(w.bundle(), "fields"), ".bin"))
		if packed {
			return turn{run: run, check: s.checkPacked}, err
		}
		return turn{run: run, check: s.checkFields}, err
	}
}

// loadingOwn is a peer that reads a file of its own format, which it writes first.
func loadingOwn(library, prefix, suffix string) contestant {
	return func(w *worker, s *state) (turn, error) {
		paths := make([]string, s.Fields)
		for f := range paths {
			paths[f] = filepath.Join(w.job.Tmpfs, prefix+suffix)
		}
		save, _, err := w.call(s, library, prefix+"_save", paths)
		if err != nil {
			return turn{}, err
		}
		load, _, err := w.call(s, library, prefix+"_load", paths)
		if err != nil {
			return turn{}, err
		}
		return turn{run: load, check: s.checkFields}, save()
	}
}
