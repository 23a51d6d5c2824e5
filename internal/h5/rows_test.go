//go:build hdf5

package h5_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// An attribute has as many elements as its shape says: of a shorter slice nothing beyond
// its end is read, and what was there stays.
func TestAttributesOfAnotherLengthAreRefused(t *testing.T) {
	f, name := create(t)
	must(t, f.CreateGroup("g"))
	must(t, h5.SetAttribute(f, "g", "old", []int64{7, 8}, 2))
	behind := []int64{1, 2, 3, 4, 5, 6, 7, 8}
	for _, c := range []struct {
		n     int
		shape []int
	}{
		{0, nil}, {2, nil}, {0, []int{1}}, {1, []int{2}}, {3, []int{2}}, {1, []int{0}},
		{5, []int{2, 3}}, {7, []int{2, 3}}, {2, []int{-2}}, {0, []int{1 << 40, 1 << 40}},
	} {
		for _, attribute := range []string{"old", "new"} {
			err := h5.SetAttribute(f, "g", attribute, behind[:c.n], c.shape...)
			if !errors.Is(err, h5.ErrShape) {
				t.Errorf("%d elements for shape %v: %v", c.n, c.shape, err)
			}
			var e *h5.Error
			if !errors.As(err, &e) || e.File != name {
				t.Errorf("%v does not name the file", err)
			}
		}
	}
	f = reopen(t, f)
	if list, err := f.Attributes("g"); err != nil || !slices.Equal(list, []string{"old"}) {
		t.Errorf("there are the attributes %q, %v", list, err)
	}
	if data, shape, err := h5.Attribute[int64](f, "g", "old"); err != nil || !slices.Equal(data, []int64{7, 8}) || !slices.Equal(shape, []int{2}) {
		t.Errorf("the old attribute is %v of shape %v, %v", data, shape, err)
	}
}
