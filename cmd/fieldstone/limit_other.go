//go:build !unix

package main

// endureLimits has nothing to do: there is no such limit.
func endureLimits() {}
