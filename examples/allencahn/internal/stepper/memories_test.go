package stepper_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device/emulated"
)

// memories are all that a stepper can work in here.
func memories(t *testing.T) []memory {
	return []memory{onHost, onEmulated(emulated.Lazy), onEmulated(emulated.Eager), onEmulated(emulated.Delayed)}
}
