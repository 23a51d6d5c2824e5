package cuda

import (
	"maps"
	"slices"
)

// Functions returns the names of the driver's functions that are used.
func Functions() []string {
	return slices.Sorted(maps.Keys(new(library).functions()))
}

// Use makes the next opening load the library, of this name.
func Use(name string) {
	loaded.Lock()
	defer loaded.Unlock()
	soname, loaded.lib = name, nil
}

// UseFrom is Use with other folders where the loader doesn't look.
func UseFrom(name string, others ...string) (restore func()) {
	Use(name)
	old := folders
	folders = others
	return func() { folders = old }
}
