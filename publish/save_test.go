package publish

import (
	"fmt"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

func TestABundleRestartsOnAnyRankCount(t *testing.T) {
	for _, writers := range []int{1, 2, 3, 4, 7} {
		fsys := vfs.NewMem()
		if err := saveStep(t, fsys, writers, "/", 5); err != nil {
			t.Fatal(err)
		}
		for _, readers := range []int{1, 2, 3, 4, 7} {
			t.Run(fmt.Sprintf("%d to %d", writers, readers), func(t *testing.T) {
				for _, opts := range [][]Option{nil, {InPlace()}} {
					if err := loadStep(t, fsys, readers, "/step_5", 5, opts...); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}
