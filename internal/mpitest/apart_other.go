//go:build !linux

package mpitest

func goApart() {}
