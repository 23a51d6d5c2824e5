//go:build !linux

package brick

func usableCores() cores { return nil }
