//go:build !linux

package stepper_test

func onFakes() []memory { return nil }
