//go:build amd64 || arm64

package dl

import "github.com/ebitengine/purego"

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// noLoad is RTLD_NOLOAD, which both C libraries have.
const noLoad = 4

// opened finds a library that is loaded already, by whatever path.
func opened(name string) (uintptr, bool) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL|noLoad)
	return handle, err == nil
}

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func invoke(f Func, args []uintptr) uintptr {
	result, _, _ := purego.SyscallN(uintptr(f), args...)
	return result
}
