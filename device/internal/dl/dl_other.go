//go:build !linux || !(amd64 || arm64)

package dl

import "errors"

var errPlatform = errors.New("libraries can't be loaded at run time on this platform")

func open(string) (uintptr, error) { return 0, errPlatform }

func opened(string) (uintptr, bool) { return 0, false }

func symbol(uintptr, string) (uintptr, error) { return 0, errPlatform }

// invoke isn't reached: there is no library, so there is no function.
func invoke(Func, []uintptr) uintptr { panic(errPlatform) }
