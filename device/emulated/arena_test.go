package emulated

import (
	"bytes"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"pgregory.net/rapid"
)

// Whatever is allocated and freed, live allocations have addresses of their
// own, a page apart, and find returns the right one.
func TestArenaGivesEveryAllocationItsAddresses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := newArena(40 * page)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := a.close(); err != nil {
				t.Fatal(err)
			}
		}()
		var live []*allocation
		t.Repeat(map[string]func(*rapid.T){
			"allocate": func(t *rapid.T) {
				size := rapid.Int64Range(1, 3*page).Draw(t, "size")
				al, err := a.allocate(size)
				if err != nil {
					if size <= a.capacity-a.used {
						t.Fatalf("%d of %d bytes are used: %v", a.used, a.capacity, err)
					}
					return
				}
				fill(al.bytes, byte(len(live)))
				live = append(live, al)
			},
			"free": func(t *rapid.T) {
				if len(live) == 0 {
					t.Skip("nothing to free")
				}
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				p := live[i].base
				if err := a.free(live[i]); err != nil {
					t.Fatal(err)
				}
				if _, err := a.find(p); err == nil {
					t.Fatal("a freed address is found")
				}
				live = append(live[:i], live[i+1:]...)
			},
			"": func(t *rapid.T) {
				var used int64
				for i, x := range live {
					used += x.size
					for _, p := range []device.Ptr{x.base, x.base.Add(x.size - 1)} {
						if got, err := a.find(p); err != nil || got != x {
							t.Fatalf("%#x: found %v, %v", uintptr(p), got, err)
						}
					}
					for _, p := range []device.Ptr{x.base - 1, x.base.Add(x.size)} {
						if got, err := a.find(p); err == nil {
							t.Fatalf("%#x, outside of an allocation: found %v", uintptr(p), got)
						}
					}
					for _, y := range live[:i] {
						if x.base < y.base.Add(y.size+page) && y.base < x.base.Add(x.size+page) {
							t.Fatalf("%d bytes at %#x and %d bytes at %#x are too close", x.size, uintptr(x.base), y.size, uintptr(y.base))
						}
					}
					if uintptr(x.base) < a.base || uintptr(x.base.Add(x.size)) > a.base+a.size {
						t.Fatal("outside of the window")
					}
				}
				if used != a.used {
					t.Fatalf("%d bytes used, want %d", a.used, used)
				}
			},
		})
	})
}

func TestFill(t *testing.T) {
	for n := range 20 {
		b := make([]byte, n)
		fill(b, 7)
		if !bytes.Equal(b, bytes.Repeat([]byte{7}, n)) {
			t.Errorf("%d bytes: %v", n, b)
		}
	}
}
