package field

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// atOnce calls do(0) to do(n-1) on as many goroutines as there are cores, this
// one included. Of several errors it returns that of the lowest number; a panic
// is an error. No goroutine outlives the call.
func atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			errs[i] = protect(func() error { return do(i) })
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// protect makes an error of a panic.
func protect(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return do()
}
