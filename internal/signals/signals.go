// Package signals knows the signals that a configuration may name.
package signals

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// names are the signals that some system delivers, sorted.
var names = []string{"SIGHUP", "SIGINT", "SIGTERM", "SIGUSR1", "SIGUSR2"}

// Lookup returns the signal of a name, such as "SIGTERM". The error names it, and wraps
// [errors.ErrUnsupported] if other systems have the signal and this one never delivers it.
func Lookup(name string) (os.Signal, error) { return lookup(delivered, name) }

func lookup(delivered map[string]os.Signal, name string) (os.Signal, error) {
	if sig, ok := delivered[name]; ok {
		return sig, nil
	}
	if !slices.Contains(names, name) {
		return nil, fmt.Errorf("%q is not one of %s", name, strings.Join(names, ", "))
	}
	there := "none"
	if len(delivered) > 0 {
		there = strings.Join(slices.Sorted(maps.Keys(delivered)), ", ")
	}
	return nil, fmt.Errorf("%s: this system has no such signal (it has %s): %w", name, there, errors.ErrUnsupported)
}

// Is reports whether a signal that was delivered is the one of a name.
func Is(sig os.Signal, name string) bool { return sig != nil && delivered[name] == sig }
