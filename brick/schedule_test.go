package brick

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/grid"
)

// Every cell of every file is in one slot at one step; a rank has each file's cells
// in ascending order, and nothing in its slot lies over something else.
func TestSchedulesCoverTheFiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		files := rapid.IntRange(1, 40).Draw(t, "files")
		ranks := rapid.IntRange(1, 9).Draw(t, "ranks")
		cells := rapid.Int64Range(1, 50).Draw(t, "cells")
		slot := rapid.Int64Range(1, 120).Draw(t, "slot")
		s := newSchedule(files, ranks, cells, slot)
		if err := checkSchedule(s, rapid.Int64Range(1, 130).Draw(t, "most")); err != nil {
			t.Fatalf("%+v: %v", s, err)
		}
	})
}

func checkSchedule(s schedule, most int64) error {
	seen := make([][]bool, s.files)
	for i := range seen {
		seen[i] = make([]bool, s.cells)
	}
	lastOf := make([]int64, s.files) // over all ranks: what a source is asked for ascends
	busy := 0
	for step := range s.steps {
		for rank := range s.ranks {
			at := int64(0)
			err := s.extents(step, rank, func(e extent) error {
				switch {
				case e.file < 0 || e.file >= s.files || e.first < 0 || e.end <= e.first || e.end > s.cells:
					return fmt.Errorf("step %d, rank %d: %+v", step, rank, e)
				case e.at < at || e.at+e.end-e.first > s.slot:
					return fmt.Errorf("step %d, rank %d: %+v after %d", step, rank, e, at)
				case e.first < lastOf[e.file]:
					return fmt.Errorf("step %d, rank %d: %+v is not beyond %d", step, rank, e, lastOf[e.file])
				}
				at, lastOf[e.file] = e.at+e.end-e.first, e.end
				for c := e.first; c < e.end; c++ {
					if seen[e.file][c] {
						return fmt.Errorf("step %d, rank %d: cell %d of file %d comes again", step, rank, c, e.file)
					}
					seen[e.file][c] = true
				}
				return nil
			})
			if err != nil {
				return err
			}
			if at > 0 {
				busy++
			}
		}
	}
	for i := range seen {
		for c, ok := range seen[i] {
			if !ok {
				return fmt.Errorf("cell %d of file %d is nowhere", c, i)
			}
		}
	}
	// The units are what the slots have, in the same places.
	total := int64(0)
	for step := range s.steps {
		for rank := range s.ranks {
			var slots []extent
			_ = s.extents(step, rank, func(e extent) error { slots = append(slots, e); return nil })
			for n := 0; ; n++ {
				u, ok := s.unit(step, rank, n, most)
				if !ok {
					break
				}
				total += u.end - u.first
				if !slices.ContainsFunc(slots, func(e extent) bool {
					return e.file == u.file && e.first <= u.first && u.first < u.end && u.end <= e.end && e.at-e.first == u.at-u.first
				}) {
					return fmt.Errorf("step %d, rank %d: %+v is not in the slot: %+v", step, rank, u, slots)
				}
			}
		}
	}
	if total != int64(s.files)*s.cells {
		return fmt.Errorf("the units have %d cells", total)
	}
	// No step is empty.
	if busy < s.steps {
		return fmt.Errorf("%d of %d steps have something to do", busy, s.steps)
	}
	return nil
}

// Where there are as many files as ranks, each is one rank's.
func TestWholeFilesHaveOneWriter(t *testing.T) {
	cases := []struct {
		name         string
		files, ranks int
		cells, slot  int64
		steps        int
		writers      int // of each file, at most
	}{
		{"large files, as many as ranks", 4, 4, 100, 10, 10, 1},
		{"twice as many", 8, 4, 100, 10, 20, 1},
		{"one is left over, for all", 5, 4, 100, 10, 13, 4},
		{"one file", 1, 2, 100, 10, 5, 2},
		{"three files for four ranks", 3, 4, 100, 10, 10, 2},
		{"small files share slots", 100, 2, 10, 100, 5, 1},
		{"but not when ranks would have none", 4, 4, 10, 100, 1, 1},
		{"fewer small files than ranks", 2, 4, 10, 100, 1, 1},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			s := newSchedule(tc.files, tc.ranks, tc.cells, tc.slot)
			if s.steps != tc.steps {
				t.Errorf("%d steps, want %d", s.steps, tc.steps)
			}
			writers := make([]int, tc.files)
			for rank := range tc.ranks {
				has := make([]bool, tc.files)
				for step := range s.steps {
					_ = s.extents(step, rank, func(e extent) error { has[e.file] = true; return nil })
				}
				for i, h := range has {
					if h {
						writers[i]++
					}
				}
			}
			for i, n := range writers {
				if n < 1 || n > tc.writers {
					t.Errorf("file %d has %d writers", i, n)
				}
			}
		})
	}
}

// What a box has of a part of the file comes row by row, in as few pieces as there
// can be.
func TestBoxesWithinAPartOfTheFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var size [3]int
		var b grid.Box
		for axis := range size {
			size[axis] = rapid.IntRange(1, 6).Draw(t, "size")
			b.Low[axis] = rapid.IntRange(0, size[axis]-1).Draw(t, "low")
			b.Size[axis] = rapid.IntRange(0, size[axis]-b.Low[axis]).Draw(t, "extent")
		}
		if b.Empty() {
			b = grid.Box{}
		}
		all := int64(size[0] * size[1] * size[2])
		low := rapid.Int64Range(0, all).Draw(t, "from")
		high := rapid.Int64Range(low, all).Draw(t, "to")
		var want []int64 // file cells in the part, and their numbers in the box
		first := int64(-1)
		for n, c := range cellsOf(size, b) {
			if c >= low && c < high {
				if first < 0 {
					first = int64(n)
				}
				want = append(want, c)
			}
		}
		r := newRuns(size, b, Float64)
		pieces := 0
		err := r.within(low, high, func(q piece) error {
			if pieces++; q.first != first {
				return fmt.Errorf("%+v begins at another cell than %d", q, first)
			}
			for row := range q.rows {
				for i := range q.n {
					if len(want) == 0 || want[0] != q.cell+row*r.rowStep+i {
						return fmt.Errorf("row %d, cell %d of %+v: want the rest to be %v", row, i, q, want)
					}
					want = want[1:]
				}
			}
			first += q.n * q.rows
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(want) > 0 {
			t.Fatalf("cells %v are missing", want)
		}
		if pieces > 3*max(1, b.Size[2]) {
			t.Fatalf("%d pieces of %d planes", pieces, b.Size[2])
		}
	})
}

func TestCoresAreSharedByTheRanksOfANode(t *testing.T) {
	cases := []struct {
		name string
		sets []cores
		node int
		own  bool
	}{
		{"each bound to a core of its own", []cores{{1}, {2}}, 2, true},
		{"both bound to the same core", []cores{{1}, {1}}, 2, false},
		{"not bound", []cores{{3}, {3}}, 2, true},
		{"more ranks than cores", []cores{{3}, {3}, {3}, {3}}, 4, false},
		{"cores of a second word", []cores{{0, 1}, {0, 2}}, 2, true},
		{"several nodes count cores alike", []cores{{1}, {2}, {1}, {2}}, 2, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			workers, own := shareCores(tc.sets, layout{Node: tc.node})
			if own != tc.own || workers != 1 {
				t.Errorf("%d workers, cores of their own: %v", workers, own)
			}
		})
	}
	if workers, own := shareCores([]cores{nil}, layout{Node: 1}); workers < 1 || !own {
		t.Errorf("unknown cores: %d workers, own %v", workers, own)
	}
}
