package comm

import (
	"fmt"
	"runtime/debug"
)

// A PanicError is a panic that Protect turned into an error.
type PanicError struct {
	Value any    // what was passed to panic
	Stack []byte // the goroutine's stack at the panic
}

// Error gives the value without the stack.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap gives the value if it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// Protect calls fn and returns its error; a panic in fn becomes a *PanicError.
// Callbacks of a caller run in it, so that a rank whose callback panics still
// takes part in the agreement that follows.
func Protect(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}
