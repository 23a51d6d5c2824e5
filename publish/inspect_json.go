package publish

import (
	"encoding/json"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/strictjson"
)

// SameJSON reports whether two JSON texts are equal as values, as configurations
// of boundary conditions are compared: the order of keys is free, 1 equals 1.0,
// and numbers count to their last digit. A text that isn't one JSON value
// (strictly: UTF-8, no key twice in an object, at most 128 levels) is an error.
func SameJSON(a, b json.RawMessage) (bool, error) {
	for i, text := range []json.RawMessage{a, b} {
		if err := strictjson.Check(text); err != nil {
			return false, fmt.Errorf("%s JSON text: %w", [...]string{"first", "second"}[i], err)
		}
	}
	return strictjson.Canonical(a) == strictjson.Canonical(b), nil
}
