package grid

import (
	"fmt"
	"slices"
)

// GapError says that cells belong to no box.
type GapError struct {
	// Gap is a box of cells that none of the boxes holds. There may be more.
	Gap Box
	// Whole is the box that should have been covered.
	Whole Box
}

func (e *GapError) Error() string {
	return fmt.Sprintf("gap: cells %v of %v belong to no box", e.Gap, e.Whole)
}

// OverlapError says that two boxes have cells in common.
type OverlapError struct {
	// A < B are the indices of the two boxes, which are ranks where there is
	// one box for each rank.
	A, B int
	// BoxA and BoxB are the two boxes.
	BoxA, BoxB Box
	// Common holds the cells that are in both.
	Common Box
}

func (e *OverlapError) Error() string {
	return fmt.Sprintf("overlap: box %d %v and box %d %v both hold cells %v", e.A, e.BoxA, e.B, e.BoxB, e.Common)
}

// OutsideError says that a box holds cells outside of the whole.
type OutsideError struct {
	// Index is the index of the box, which is a rank where there is one box
	// for each rank.
	Index int
	// Box is the box itself.
	Box Box
	// Whole is the box that it should lie in.
	Whole Box
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("outside: box %d %v is not within %v", e.Index, e.Box, e.Whole)
}

// Tile reports whether the boxes cover the whole exactly: it returns nil, or
// an [*OutsideError], an [*OverlapError] or a [*GapError], looked for in this
// order. Empty boxes are ignored, wherever they lie. The result depends on the
// arguments only, so that ranks which check the same boxes report the same
// error.
//
// The work depends on the number of boxes n, not on that of cells: about
// n log² n for boxes that come from cutting the whole again and again, as
// those of every Cartesian decomposition do; more, but still correct, for
// boxes in a general position.
func Tile(whole Box, boxes []Box) error {
	t := tiler{whole: whole, boxes: boxes}
	items := make([]int, 0, len(boxes))
	for i, b := range boxes {
		if b.Empty() {
			continue
		}
		if whole.Empty() || !whole.Contains(b) {
			return &OutsideError{Index: i, Box: b, Whole: whole}
		}
		items = append(items, i)
	}
	if whole.Empty() {
		return nil
	}
	if err := t.check(whole, items); err != nil {
		return err
	}
	if t.gap != nil {
		return t.gap
	}
	return nil
}

// tiler cuts the whole along faces of the boxes until each part is filled by
// one box, or by none, or by two.
type tiler struct {
	whole Box
	boxes []Box
	gap   *GapError // the first one; an overlap found later takes precedence
}

// check looks at the part of the whole that lies in region. The items are the
// indices of the boxes that have cells in it, in ascending order.
func (t *tiler) check(region Box, items []int) error {
	if len(items) == 0 {
		if t.gap == nil {
			t.gap = &GapError{Gap: region, Whole: t.whole}
		}
		return nil
	}
	axis, at, ok := t.bestCut(region, items)
	if !ok {
		// No face cuts the region, so each item fills it.
		if len(items) == 1 {
			return nil
		}
		a, b := items[0], items[1]
		return &OverlapError{
			A: a, B: b, BoxA: t.boxes[a], BoxB: t.boxes[b],
			Common: t.boxes[a].Intersect(t.boxes[b]),
		}
	}
	lower, upper := region, region
	lower.Size[axis] = at - region.Low[axis]
	upper.Low[axis] = at
	upper.Size[axis] = region.Size[axis] - lower.Size[axis]

	part := make([]int, 0, len(items))
	for _, i := range items {
		if t.boxes[i].Low[axis] < at {
			part = append(part, i)
		}
	}
	if err := t.check(lower, part); err != nil {
		return err
	}
	part = part[:0]
	for _, i := range items {
		if t.boxes[i].High()[axis] > at {
			part = append(part, i)
		}
	}
	return t.check(upper, part)
}

// bestCut chooses a face of one of the items that lies inside of the region:
// the one that leaves the fewest items in the larger part, and among those the
// one that cuts through the fewest. It returns false if there is no such face.
func (t *tiler) bestCut(region Box, items []int) (axis, at int, ok bool) {
	lows := make([]int, len(items))
	highs := make([]int, len(items))
	var bestMost, bestSum int
	for a := range 3 {
		first, last := region.Low[a], region.High()[a]
		for n, i := range items {
			lows[n] = max(t.boxes[i].Low[a], first)
			highs[n] = min(t.boxes[i].High()[a], last)
		}
		slices.Sort(lows)
		slices.Sort(highs)
		// below counts the items with cells before the cut, done those that
		// end there or before.
		for below, done := 0, 0; below < len(lows) || done < len(highs); {
			c := last
			if below < len(lows) {
				c = lows[below]
			}
			if done < len(highs) {
				c = min(c, highs[done])
			}
			for done < len(highs) && highs[done] <= c {
				done++
			}
			above := len(items) - done
			if c > first && c < last {
				most, sum := max(below, above), below+above
				if !ok || most < bestMost || most == bestMost && sum < bestSum {
					axis, at, ok = a, c, true
					bestMost, bestSum = most, sum
				}
			}
			for below < len(lows) && lows[below] <= c {
				below++
			}
		}
	}
	return axis, at, ok
}
