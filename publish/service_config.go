package publish

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/owner"
	"github.com/fieldstone-io/fieldstone/internal/signals"
	"github.com/fieldstone-io/fieldstone/internal/strictjson"
)

// Latest as Config.RestartFrom restarts from the newest bundle that verifies.
const Latest = "latest"

// SetAside as CheckpointConfig.Superseded renames newer bundles that a restart
// leaves behind.
const SetAside = "set_aside"

// Config configures a [Service]. It is a part of the solver's JSON:
//
//	{"restart_from": "latest", "checkpoint": {"every": 10, "directory": "results/ckpt", "keep": 3}}
type Config struct {
	misspelt []string // keys of the JSON that are nearly those below

	// RestartFrom is the path of a bundle, [Latest], or empty for a fresh start.
	RestartFrom string           `json:"restart_from"`
	Checkpoint  CheckpointConfig `json:"checkpoint"`
}

// CheckpointConfig says when and where to save. With an empty Directory, or nothing
// that says when, the service is off: it saves nothing unless [Service.Save] is
// called, and leaves the directory alone.
type CheckpointConfig struct {
	// Every saves when the accepted increment is a multiple of it; 0 or less: never.
	Every int64 `json:"every"`
	// EverySeconds saves when so many seconds of wall time have passed since the
	// last save, as seen by rank 0; 0 or less: never.
	EverySeconds float64 `json:"every_seconds"`
	// Directory holds the bundles, step_<increment> each. It is made if missing. All
	// nodes must see it.
	Directory string `json:"directory"`
	// OnSignal names signals, like "SIGTERM" and "SIGUSR1", on which the state is
	// saved at the next accepted step and the solver is told to stop. One that the
	// system doesn't have is an error that wraps [errors.ErrUnsupported].
	OnSignal []string `json:"on_signal"`
	// Keep is the number of newest good bundles that are kept, as judged by
	// structure and size; 0 keeps all. One save removes at most what takes a second, and
	// two bundles at least. If none of them is finite, the newest one that
	// is stays too.
	Keep int `json:"keep"`
	// WaitSeconds is how long a service that saves waits for the directory while
	// another job holds it; 0 stands for 60 seconds, less for not at all.
	WaitSeconds float64 `json:"wait_seconds"`
	// Superseded is empty or [SetAside]: what happens to good bundles that are
	// newer than the state that a run starts from.
	Superseded string `json:"superseded"`
	// NonFinite says what becomes of a state with cells that are NaN or infinite; empty
	// stands for [WarnNonFinite]. NonFiniteFields says so for some fields, by their ids,
	// which the solver must have.
	NonFinite       NonFinitePolicy            `json:"non_finite"`
	NonFiniteFields map[string]NonFinitePolicy `json:"non_finite_fields"`
	// ConstantFields are the ids of fields that may stay as they are from one bundle to
	// the next. The solver must have them. For any other field that is a warning, once,
	// if it has changed before: kernels' writes may not have been noted, or the fields
	// may be around the wrong one of two buffers.
	ConstantFields []string `json:"constant_fields"`
}

// ParseConfig reads the service's keys from a solver's JSON text. Other keys of
// the top level belong to the solver and are left alone; an unknown key under
// "checkpoint" is an error, for a misspelt one would lose states. Errors name the
// key. A key of the top level that is nearly "checkpoint" or "restart_from", where that
// one is missing, is left alone too, and [NewService] warns of it.
func ParseConfig(data []byte) (Config, error) {
	var c Config
	if err := strictjson.Check(data); err != nil {
		return c, fmt.Errorf("configuration: %w", err)
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		return c, fmt.Errorf("configuration: %w", configError("", err))
	}
	if raw, ok := top["restart_from"]; ok {
		if err := json.Unmarshal(raw, &c.RestartFrom); err != nil {
			return c, fmt.Errorf("configuration: %w", configError("restart_from", err))
		}
	}
	if raw, ok := top["checkpoint"]; ok {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(raw, &keys); err != nil {
			return c, fmt.Errorf("configuration: %w", configError("checkpoint", err))
		}
		known := []string{"every", "every_seconds", "directory", "on_signal", "keep", "superseded", "wait_seconds", "non_finite", "non_finite_fields", "constant_fields"}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if !slices.Contains(known, key) {
				return c, fmt.Errorf("configuration: checkpoint.%s: unknown key%s (known are %s)", key, didYouMean(key, known...), strings.Join(known, ", "))
			}
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		if err := d.Decode(&c.Checkpoint); err != nil {
			return c, fmt.Errorf("configuration: %w", configError("checkpoint", err))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(top)) {
		for _, right := range []string{"checkpoint", "restart_from"} {
			if _, there := top[right]; !there && similar(key, right) {
				c.misspelt = append(c.misspelt, key)
			}
		}
	}
	return c, c.Validate()
}

func configError(prefix string, err error) error {
	var t *json.UnmarshalTypeError
	if !errors.As(err, &t) {
		return fmt.Errorf("%s: %w", prefix, err)
	}
	key := strings.Trim(prefix+"."+t.Field, ".")
	if key == "" {
		return fmt.Errorf("is a JSON %s, want an object", t.Value)
	}
	return fmt.Errorf("%s: is a JSON %s, want %s", key, t.Value, jsonName(t.Type))
}

// jsonName says in words of JSON what a value of a Go type is written as.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Slice:
		return "an array of strings"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	}
	return "a string"
}

// Validate reports the first key with an impossible value.
func (c Config) Validate() error {
	k := c.Checkpoint
	switch {
	case strings.ContainsRune(c.RestartFrom, 0):
		return errors.New("restart_from: has a NUL character")
	case strings.ContainsRune(k.Directory, 0):
		return errors.New("checkpoint.directory: has a NUL character")
	case c.RestartFrom == Latest && k.Directory == "":
		return fmt.Errorf("restart_from: %q needs checkpoint.directory", Latest)
	case math.IsNaN(k.EverySeconds) || k.EverySeconds > math.MaxInt64/float64(time.Second):
		return fmt.Errorf("checkpoint.every_seconds: %v is not a number of seconds", k.EverySeconds)
	case math.IsNaN(k.WaitSeconds) || k.WaitSeconds > math.MaxInt64/float64(time.Second):
		return fmt.Errorf("checkpoint.wait_seconds: %v is not a number of seconds", k.WaitSeconds)
	case k.Keep < 0:
		return fmt.Errorf("checkpoint.keep: %d is negative", k.Keep)
	case k.Superseded != "" && k.Superseded != SetAside:
		return fmt.Errorf("checkpoint.superseded: %q: want %q or nothing", k.Superseded, SetAside)
	}
	for i, name := range k.OnSignal {
		if _, err := signals.Lookup(name); err != nil {
			return fmt.Errorf("checkpoint.on_signal[%d]: %w", i, err)
		}
	}
	_, err := k.nonFinite()
	return cmp.Or(err, k.constantFields())
}

// off reports whether the service saves nothing.
func (c CheckpointConfig) off() bool { return c.Directory == "" || !c.ruled() }

// ruled reports whether anything says when to save.
func (c CheckpointConfig) ruled() bool {
	return c.Every > 0 || c.EverySeconds > 0 || len(c.OnSignal) > 0
}

// wait is how long a service waits for its directory.
func (c CheckpointConfig) wait() time.Duration {
	if c.WaitSeconds == 0 {
		return owner.DefaultWait
	}
	return time.Duration(max(c.WaitSeconds, 0) * float64(time.Second))
}
