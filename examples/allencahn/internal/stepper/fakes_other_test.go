//go:build !linux || !(amd64 || arm64)

package stepper_test

func onFakes() []memory { return nil }
