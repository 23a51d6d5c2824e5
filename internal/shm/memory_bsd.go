//go:build unix && !linux

package shm

func adviseHuge([]byte) {}
