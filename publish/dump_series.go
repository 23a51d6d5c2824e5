package publish

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/internal/xdmf"
)

// maxSeriesBytes bounds what is read as an XDMF file that a series goes on with.
const maxSeriesBytes = 256 << 20

// dumpSeries is the XDMF file of a run of dumps, on rank 0. Its steps are what the
// files hold: a step leaves it before one of its files is written anew.
type dumpSeries struct {
	o        options
	path     string
	name     string // of the series
	template dumpTemplate
	ids      []string
	claim    *seriesClaim

	steps []xdmf.Step
	text  []byte // of the file that the steps are from; nil: there was none
}

// seriesKey is an XDMF file in use, seriesClaim who in this process uses it.
type seriesKey struct {
	fs   vfs.FS
	path string
}

type seriesClaim struct {
	template string
	ids      []string
	users    int
}

var seriesClaims = struct {
	sync.Mutex
	held map[seriesKey]*seriesClaim
}{held: make(map[seriesKey]*seriesClaim)}

// open claims the XDMF file for the template and the fields within this process, and
// reads it, so that another series is found out before anything is written.
func (s *dumpSeries) open() error {
	if err := s.take(); err != nil {
		return err
	}
	err := s.refresh()
	if err != nil {
		s.release()
	}
	return err
}

// take refuses a second template, or other fields, while the first is in use: each
// would strike out the steps of the other.
func (s *dumpSeries) take() error {
	key := seriesKey{s.o.fs, s.path}
	text := s.template.under(s.template.text)
	seriesClaims.Lock()
	defer seriesClaims.Unlock()
	claim := seriesClaims.held[key]
	if claim == nil {
		claim = &seriesClaim{template: text, ids: s.ids}
		seriesClaims.held[key] = claim
	}
	if claim.template != text || !slices.Equal(claim.ids, s.ids) {
		return inputError(fmt.Errorf("%s is in use for the fields %q with the template %q: give one of the two another name, or close the first",
			s.path, claim.ids, claim.template))
	}
	claim.users++
	s.claim = claim
	return nil
}

// release ends the claim.
func (s *dumpSeries) release() {
	seriesClaims.Lock()
	defer seriesClaims.Unlock()
	if s.claim == nil {
		return
	}
	if s.claim.users--; s.claim.users == 0 {
		delete(seriesClaims.held, seriesKey{s.o.fs, s.path})
	}
	s.claim = nil
}

// refresh reads the XDMF file unless it is as this series left it: an earlier run may
// have made it, and another one may have written it since.
func (s *dumpSeries) refresh() error {
	text, err := vfs.ReadFile(s.o.fs, s.path, maxSeriesBytes)
	if errors.Is(err, fs.ErrNotExist) {
		if s.text == nil {
			return nil
		}
		s.text = nil // it was removed, maybe with the dumps; the next save makes it again
		return s.adopt(s.steps)
	}
	if err == nil && s.text != nil && bytes.Equal(text, s.text) {
		return nil
	}
	var read xdmf.Series
	if err == nil {
		read, err = xdmf.Read(text)
	}
	if err == nil {
		err = s.adopt(read.Steps)
	}
	if err != nil {
		return fmt.Errorf("%s: the series can't go on with it: %w", s.path, err)
	}
	s.text = text
	return nil
}

// adopt takes steps that are in the XDMF file. Arrays whose files are gone or have
// another size than they say leave the series, and of two of one file the older one;
// what is left must be of files that the template names.
func (s *dumpSeries) adopt(steps []xdmf.Step) error {
	var kept []xdmf.Step
	var gone []string
	seen := make(map[string]bool)
	for _, step := range slices.Backward(steps) {
		var arrays []xdmf.Array
		for _, a := range step.Arrays {
			there, err := s.holds(step, a)
			switch {
			case err != nil:
				return err
			case !there:
				gone = append(gone, a.Path)
				continue
			case !s.owns(step, a):
				return fmt.Errorf("it lists %s with the field %q, which is no file of the fields %q with the template %q: "+
					"give the dumps another name, or remove the XDMF file", a.Path, a.Name, s.ids, s.template.text)
			}
			if !seen[a.Path] {
				seen[a.Path] = true
				arrays = append(arrays, a)
			}
		}
		if len(arrays) > 0 {
			step.Arrays = arrays
			kept = append(kept, step)
		}
	}
	if len(gone) > 0 {
		s.o.log.Warn("dumps leave their series: the files are gone or have another size", "series", s.path, "files", gone)
	}
	slices.Reverse(kept)
	s.steps = kept
	return nil
}

// holds reports whether the file of an array is there and has its size.
func (s *dumpSeries) holds(step xdmf.Step, a xdmf.Array) (bool, error) {
	if a.Slab != nil {
		return true, nil // no dump, and owns says so
	}
	info, err := s.o.fs.Stat(directory(s.path) + filepath.FromSlash(a.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	size := int64(8)
	if a.Complex {
		size = 16
	}
	for _, n := range step.Size {
		size *= int64(n)
	}
	return info.Size() == a.Offset+size, nil
}

// owns reports whether an array is a file of the template, of the increment of its
// step.
func (s *dumpSeries) owns(step xdmf.Step, a xdmf.Array) bool {
	increment, ok := stepIncrement(step)
	if !ok || a.Slab != nil || !s.template.has('s') && a.Name != s.ids[0] {
		return false
	}
	path, err := s.relative(s.template.path(increment, a.Name))
	return err == nil && path == a.Path
}

// relative is the path of a file as the XDMF file has it. Readers strip white space
// from its begin.
func (s *dumpSeries) relative(file string) (string, error) {
	path, err := xdmf.Relative(s.path, file)
	if err == nil && strings.TrimSpace(path) != path {
		path = "./" + path
	}
	return path, err
}

func stepName(increment int64) string { return fmt.Sprintf("increment %d", increment) }

func stepIncrement(step xdmf.Step) (increment int64, ok bool) {
	_, err := fmt.Sscanf(step.Name, "increment %d", &increment)
	return increment, err == nil && stepName(increment) == step.Name
}

// before strikes out what will no longer be so when a step is written: the files that
// it writes anew, and the steps of a branch that was left, which has later increments
// or times.
func (s *dumpSeries) before(increment int64, time float64, arrays []dumpArray) error {
	step, err := s.step(increment, time, arrays)
	if err != nil {
		return err
	}
	written := make(map[string]bool)
	for _, a := range step.Arrays {
		written[a.Path] = true
	}
	return s.strike(func(old xdmf.Step) []xdmf.Array {
		others := slices.DeleteFunc(slices.Clone(old.Arrays), func(a xdmf.Array) bool { return written[a.Path] })
		if n, _ := stepIncrement(old); n < increment && old.Time < time {
			return others
		}
		if len(others) > 0 {
			s.o.log.Info("dumps leave their series: they are of a branch that was left", "series", s.path, "step", old.Name, "time", old.Time)
		}
		return nil
	})
}

// rewind strikes out the steps beyond an increment.
func (s *dumpSeries) rewind(increment int64) error {
	return s.strike(func(old xdmf.Step) []xdmf.Array {
		if n, _ := stepIncrement(old); n > increment {
			return nil
		}
		return old.Arrays
	})
}

// strike leaves of each step the arrays that keep returns, and saves the series if
// that is less than there was.
func (s *dumpSeries) strike(keep func(xdmf.Step) []xdmf.Array) error {
	if err := s.refresh(); err != nil {
		return err
	}
	var kept []xdmf.Step
	changed := false
	for _, step := range s.steps {
		arrays := keep(step)
		changed = changed || len(arrays) < len(step.Arrays)
		if len(arrays) > 0 {
			step.Arrays = arrays
			kept = append(kept, step)
		}
	}
	if !changed {
		return nil
	}
	s.steps = kept
	return s.save()
}

// add appends a step whose files are written.
func (s *dumpSeries) add(increment int64, time float64, arrays []dumpArray) error {
	step, err := s.step(increment, time, arrays)
	if err != nil {
		return err
	}
	s.steps = append(s.steps, step)
	return s.save()
}

// step describes the dumps of an increment.
func (s *dumpSeries) step(increment int64, time float64, arrays []dumpArray) (xdmf.Step, error) {
	step := xdmf.Step{Name: stepName(increment), Time: time}
	for _, a := range arrays {
		step.Size, step.Origin, step.Spacing = a.domain.Size, a.domain.Origin, a.domain.Spacing
		path, err := s.relative(s.template.path(increment, a.id))
		if err != nil {
			return step, err
		}
		step.Arrays = append(step.Arrays, xdmf.Array{Name: a.id, Path: path, Complex: a.complex})
	}
	return step, nil
}

// check checks that the series can be written as XDMF, whatever the increment is.
func (s *dumpSeries) check(arrays []dumpArray) error {
	step, err := s.step(0, 0, arrays)
	if err != nil {
		return err
	}
	return xdmf.Write(io.Discard, xdmf.Series{Name: s.name, Steps: []xdmf.Step{step}})
}

// save writes the XDMF file anew, atomically. A series without steps has none.
func (s *dumpSeries) save() error {
	sync := s.o.durability == Full
	if len(s.steps) == 0 {
		err := s.o.fs.Remove(s.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err == nil && sync {
			err = s.o.fs.SyncDir(directory(s.path) + ".")
		}
		if err == nil {
			s.text = nil
		}
		return err
	}
	var text bytes.Buffer
	if err := xdmf.Write(&text, xdmf.Series{Name: s.name, Steps: s.steps}); err != nil {
		return err
	}
	if err := replaceFile(s.o.fs, s.path, text.Bytes(), sync); err != nil {
		return err
	}
	s.text = text.Bytes()
	return nil
}

// replaceFile puts data at path; a reader sees the old content or the new.
func replaceFile(fsys vfs.FS, path string, data []byte, sync bool) error {
	temporary := path + ".new"
	if err := fsys.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := vfs.WriteFile(fsys, temporary, data, 0o666, sync); err != nil {
		return err
	}
	if err := vfs.Move(fsys, temporary, path); err != nil {
		return err
	}
	if sync {
		return fsys.SyncDir(directory(path) + ".")
	}
	return nil
}
