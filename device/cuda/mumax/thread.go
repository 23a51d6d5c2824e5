//go:build mumax

package mumax

import (
	"runtime"

	"github.com/mumax/3/cuda/cu"
)

// attempt turns the panic of a failed call of cu into a result.
func attempt(fn func()) (r cu.Result) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case cu.Result:
			r = p
		default:
			panic(p)
		}
	}()
	fn()
	return cu.SUCCESS
}

// onNewThread is attempt on an OS thread that ends afterwards, with whatever fn
// has made current on it.
func onNewThread(fn func()) cu.Result {
	done := make(chan cu.Result)
	go func() {
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		done <- attempt(fn)
	}()
	return <-done
}

// within is attempt with a context current, on a thread of its own.
func within(ctx cu.Context, fn func()) cu.Result {
	return onNewThread(func() {
		ctx.SetCurrent()
		fn()
	})
}
