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
