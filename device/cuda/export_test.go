package cuda

import (
	"maps"
	"slices"
)

// Functions returns the names of the driver's functions that are used.
func Functions() []string {
	return slices.Sorted(maps.Keys(new(library).functions()))
}

// Forget makes the next opening load the library again.
func Forget() {
	loaded.Lock()
	defer loaded.Unlock()
	loaded.lib = nil
}
