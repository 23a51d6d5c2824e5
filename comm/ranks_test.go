package comm_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/internal/mpitest"
)

func TestSumSmoke(t *testing.T) {
	mpitest.Run(t, []int{1, 3, 7}, func(t *mpitest.T, c *comm.Comm) {
		v := []int64{1}
		if err := c.AllReduceInt64(t.Context(), comm.Sum, v); err != nil || v[0] != int64(c.Size()) {
			t.Errorf("sum is %d, %v", v[0], err)
		}
		t.Logf("hello from %d of %d", c.Rank(), c.Size())
	})
}
