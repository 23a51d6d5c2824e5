package device_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/device/emulated"
)

func TestPitchSpan(t *testing.T) {
	tests := []struct {
		name   string
		pitch  device.Pitch
		extent device.Extent
		want   int64 // -1: an error
	}{
		{"a row is its length", device.Pitch{Row: 10, Rows: 1}, device.Extent{Row: 7, Rows: 1, Slices: 1}, 7},
		{"rows are a pitch apart", device.Pitch{Row: 10, Rows: 3}, device.Extent{Row: 7, Rows: 3, Slices: 1}, 27},
		{"slices are a number of pitches apart", device.Pitch{Row: 10, Rows: 4}, device.Extent{Row: 7, Rows: 3, Slices: 2}, 67},
		{"a dense box is its bytes", device.Pitch{Row: 7, Rows: 3}, device.Extent{Row: 7, Rows: 3, Slices: 2}, 42},
		{"an empty row spans nothing", device.Pitch{}, device.Extent{Rows: 3, Slices: 2}, 0},
		{"no rows span nothing", device.Pitch{}, device.Extent{Row: 1, Slices: 2}, 0},
		{"no slices span nothing", device.Pitch{}, device.Extent{Row: 1, Rows: 2}, 0},
		{"rows must not overlap", device.Pitch{Row: 6, Rows: 3}, device.Extent{Row: 7, Rows: 3, Slices: 2}, -1},
		{"slices must not overlap", device.Pitch{Row: 7, Rows: 2}, device.Extent{Row: 7, Rows: 3, Slices: 2}, -1},
		{"a negative row", device.Pitch{Row: 7, Rows: 3}, device.Extent{Row: -7, Rows: 3, Slices: 2}, -1},
		{"negative rows", device.Pitch{Row: 7, Rows: 3}, device.Extent{Row: 7, Rows: -3, Slices: 2}, -1},
		{"negative slices", device.Pitch{Row: 7, Rows: 3}, device.Extent{Row: 7, Rows: 3, Slices: -2}, -1},
		{"too many slices", device.Pitch{Row: 1, Rows: math.MaxInt64}, device.Extent{Row: 1, Rows: 1, Slices: 3}, -1},
		{"too long a pitch", device.Pitch{Row: math.MaxInt64, Rows: 2}, device.Extent{Row: 1, Rows: 2, Slices: 2}, -1},
		{"the longest span", device.Pitch{Row: math.MaxInt64 - 1, Rows: 2}, device.Extent{Row: 1, Rows: 2, Slices: 1}, math.MaxInt64},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.pitch.Span(tt.extent)
			if tt.want < 0 {
				if !errors.Is(err, device.ErrInvalid) {
					t.Errorf("span %d, error %v; want an error", got, err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("span %d, error %v; want %d", got, err, tt.want)
			}
		})
	}
	if got := (device.Extent{Row: 7, Rows: 3, Slices: 2}).Bytes(); got != 42 {
		t.Errorf("bytes %d, want 42", got)
	}
}

func TestArgsAreAlignedToTheirSize(t *testing.T) {
	var args device.Args
	args.Uint32(1).Float64(1).Int32(-1).Ptr(0x1234).Float32(1).Uint32(2).Int64(-1)
	want := []byte{
		1, 0, 0, 0, 0, 0, 0, 0, // padding
		0, 0, 0, 0, 0, 0, 0xf0, 0x3f,
		0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, // padding
		0x34, 0x12, 0, 0, 0, 0, 0, 0,
		0, 0, 0x80, 0x3f, 2, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	}
	if got := args.Bytes(); !slices.Equal(got, want) {
		t.Errorf("packed\n%v, want\n%v", got, want)
	}
	var values []int
	for v := range args.Values() {
		values = append(values, len(v))
		if len(values) == 4 && !slices.Equal(v, []byte{0x34, 0x12, 0, 0, 0, 0, 0, 0}) {
			t.Errorf("the pointer's bytes are %v", v)
		}
	}
	if want := []int{4, 8, 4, 8, 4, 4, 8}; !slices.Equal(values, want) {
		t.Errorf("values of %v bytes, want %v", values, want)
	}
	if got := args.Reset().Bytes(); len(got) != 0 {
		t.Errorf("%v after reset", got)
	}
	for v := range args.Values() {
		t.Errorf("value %v after reset", v)
	}
	for v := range (*device.Args)(nil).Values() {
		t.Errorf("no arguments have value %v", v)
	}
	if got := (*device.Args)(nil).Bytes(); got != nil {
		t.Errorf("no arguments are %v", got)
	}
}

func TestErrorText(t *testing.T) {
	e := &device.Error{Space: "cuda:0", Op: "allocate 512 bytes", Err: device.ErrOutOfMemory}
	if got, want := e.Error(), "cuda:0: allocate 512 bytes: out of memory"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Code = 2
	if got, want := e.Error(), "cuda:0: allocate 512 bytes: out of memory (code 2)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(e, device.ErrOutOfMemory) {
		t.Error("the cause is hidden")
	}
}

func TestLeakErrorSaysWhat(t *testing.T) {
	err := &device.LeakError{Live: device.Live{Memory: 1, HostMemory: 2, Streams: 3, Events: 4, Modules: 5}}
	if got, want := err.Error(), "not freed: 1 memory, 2 host memory, 3 streams, 4 events, 5 modules"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

type noDriver struct{}

func (noDriver) Devices() ([]device.Properties, error) { return nil, device.ErrUnavailable }
func (noDriver) Open(which string) (device.Space, error) {
	return nil, fmt.Errorf("which %q: %w", which, device.ErrUnavailable)
}

type fewDevices struct {
	noDriver
	list []device.Properties
}

func (d fewDevices) Devices() ([]device.Properties, error) { return d.list, nil }

// register can be undone by nobody, and tests may run more than once.
var register = sync.OnceFunc(func() {
	device.RegisterDriver("few", fewDevices{list: []device.Properties{{Ordinal: 0}, {Ordinal: 2}, {Ordinal: 3}}})
	device.RegisterDriver("empty", fewDevices{})
	device.RegisterDriver("absent", noDriver{})
	device.RegisterDriver("twice", noDriver{})
	device.RegisterDriver("twice", noDriver{})
})

func TestRegistry(t *testing.T) {
	register()
	if got, want := device.Kinds(), []string{"absent", "empty", "emulated", "few", "twice"}; !slices.Equal(got, want) {
		t.Errorf("kinds %q, want %q", got, want)
	}
	for _, tt := range []struct {
		name, text string
		want       error
	}{
		{"absent:1", `open device "absent:1": which "1": unavailable`, device.ErrUnavailable},
		{"absent", `open device "absent": which "": unavailable`, device.ErrUnavailable},
		{"absent:1:2", `open device "absent:1:2": which "1:2": unavailable`, device.ErrUnavailable},
		{"unknown:0", `open device "unknown:0": kind "unknown": not found (known: absent, empty, emulated, few, twice)`, device.ErrNotFound},
		{"", `open device "": kind "": not found (known: absent, empty, emulated, few, twice)`, device.ErrNotFound},
		{"twice:0", `open device "twice:0": kind "twice": invalid argument: 2 packages of the program claim it`, device.ErrInvalid},
	} {
		_, err := device.Open(tt.name)
		if !errors.Is(err, tt.want) || err.Error() != tt.text {
			t.Errorf("open %q: error %v\nwant %s", tt.name, err, tt.text)
		}
	}
	if _, err := device.Devices("absent"); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("devices of an absent kind: error %v", err)
	}
	if _, err := device.Devices("unknown"); !errors.Is(err, device.ErrNotFound) {
		t.Errorf("devices of an unknown kind: error %v", err)
	}
}

func TestForRank(t *testing.T) {
	register()
	for _, tt := range []struct {
		name, kind string
		rank       int
		want       string
		err        error
	}{
		{"the first rank has the first device", "few", 0, "few:0", nil},
		{"the next rank has the next device", "few", 1, "few:2", nil},
		{"more ranks than devices share", "few", 5, "few:3", nil},
		{"negative ranks have none", "few", -1, "", device.ErrInvalid},
		{"there may be no device", "empty", 0, "", device.ErrUnavailable},
		{"there may be no driver", "absent", 0, "", device.ErrUnavailable},
		{"the kind may be unknown", "unknown", 0, "", device.ErrNotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := device.ForRank(tt.kind, tt.rank)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("%q, error %v; want %q, %v", got, err, tt.want, tt.err)
			}
		})
	}
}

// Each rank of a node opens the device that is its own, or shares one.
func ExampleForRank() {
	for localRank := range 6 {
		name, err := device.ForRank("emulated", localRank)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(name, " ")
	}
	fmt.Println()
	// Output: emulated:0 emulated:1 emulated:2 emulated:3 emulated:0 emulated:1
}

func ExampleOpen() {
	space, err := device.Open("emulated:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(space.Name(), space.Properties().Kind)
	if err := space.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: emulated:0 emulated
}

func ExampleArgs() {
	args := new(device.Args).Ptr(0x1000).Int32(3).Float64(0.5)
	fmt.Println(len(args.Bytes()))
	// Output: 24
}
