package device

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Driver opens the devices of one kind.
type Driver interface {
	// Devices returns what devices of the kind this machine has. The error
	// is ErrUnavailable where the driver itself is missing.
	Devices() ([]Properties, error)
	// Open opens one of them. Which is the second part of the name given to
	// [Open]: the number of the device, or another word that the driver
	// documents (such as one for the context that is current already). It is
	// empty for the driver's choice.
	Open(which string) (Space, error)
}

var registry = struct {
	sync.Mutex
	drivers map[string][]Driver
}{drivers: map[string][]Driver{}}

// RegisterDriver makes a kind of device known to [Open]. Packages that
// implement one call it when they are initialised. The kind is a word without
// a colon. If two packages claim the same kind, none of its devices can be
// opened.
func RegisterDriver(kind string, d Driver) {
	registry.Lock()
	defer registry.Unlock()
	registry.drivers[kind] = append(registry.drivers[kind], d)
}

// Kinds returns the kinds of device that the program knows, in alphabetical
// order. It doesn't tell whether this machine has such a device.
func Kinds() []string {
	registry.Lock()
	defer registry.Unlock()
	kinds := make([]string, 0, len(registry.drivers))
	for k := range registry.drivers {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	return kinds
}

// Devices returns the devices of a kind that this machine has. The error is
// ErrNotFound for a kind that the program doesn't know and ErrUnavailable
// where the machine lacks the driver.
func Devices(kind string) ([]Properties, error) {
	d, err := driver(kind)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	list, err := d.Devices()
	if err != nil {
		return nil, fmt.Errorf("list devices of kind %q: %w", kind, err)
	}
	return list, nil
}

// Open opens a space by its name, "kind:number" or "kind" alone for the
// driver's choice. The error is ErrNotFound for a kind that the program
// doesn't know and ErrUnavailable where the machine lacks the driver or the
// device.
func Open(name string) (Space, error) {
	kind, which, _ := strings.Cut(name, ":")
	d, err := driver(kind)
	if err != nil {
		return nil, fmt.Errorf("open device %q: %w", name, err)
	}
	s, err := d.Open(which)
	if err != nil {
		return nil, fmt.Errorf("open device %q: %w", name, err)
	}
	return s, nil
}

// ForRank returns the name of the device that a rank should use: ranks of one
// node share its devices evenly, rank by rank. localRank counts the ranks of
// the node. The error is that of [Devices], ErrUnavailable also where there is
// no device.
func ForRank(kind string, localRank int) (string, error) {
	list, err := Devices(kind)
	if err != nil {
		return "", fmt.Errorf("choose a device for local rank %d: %w", localRank, err)
	}
	switch {
	case localRank < 0:
		return "", fmt.Errorf("choose a device for local rank %d: %w", localRank, ErrInvalid)
	case len(list) == 0:
		return "", fmt.Errorf("choose a device for local rank %d: %w: there is no device of kind %q", localRank, ErrUnavailable, kind)
	}
	return fmt.Sprintf("%s:%d", kind, list[localRank%len(list)].Ordinal), nil
}

func driver(kind string) (Driver, error) {
	registry.Lock()
	d := registry.drivers[kind]
	registry.Unlock()
	switch len(d) {
	case 0:
		return nil, fmt.Errorf("kind %q: %w (known: %s)", kind, ErrNotFound, strings.Join(Kinds(), ", "))
	case 1:
		return d[0], nil
	}
	return nil, fmt.Errorf("kind %q: %w: %d packages of the program claim it", kind, ErrInvalid, len(d))
}
