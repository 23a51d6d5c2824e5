//go:build amd64 || arm64

package dl

import "github.com/ebitengine/purego"

func open(name string) (uintptr, error) {
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

func symbol(handle uintptr, name string) (uintptr, error) { return purego.Dlsym(handle, name) }

func invoke(f Func, args []uintptr) uintptr {
	result, _, _ := purego.SyscallN(uintptr(f), args...)
	return result
}
