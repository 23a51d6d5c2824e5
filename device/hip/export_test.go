package hip

import (
	"maps"
	"slices"
)

// Functions returns the names of the runtime's functions that are used.
func Functions() []string {
	return slices.Sorted(maps.Keys(new(library).functions()))
}

// Use makes the next opening load one version of the runtime.
func Use(soname string) {
	loaded.Lock()
	defer loaded.Unlock()
	names, loaded.lib = []string{soname}, nil
}

// UseFrom is Use with other folders where the loader doesn't look.
func UseFrom(soname string, others ...string) (restore func()) {
	Use(soname)
	old := folders
	folders = others
	return func() { folders = old }
}
