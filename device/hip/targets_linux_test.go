//go:build amd64 || arm64

package hip_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/hip"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/pack"
)

// What docs/gpu.md has for each architecture: the target that serves it, if any.
var served = []struct{ arch, target string }{
	{"gfx900:xnack-", "gfx9-generic"},
	{"gfx902:xnack+", "gfx9-generic"},
	{"gfx904:xnack-", "gfx9-generic"},
	{"gfx906:sramecc+:xnack-", "gfx9-generic"},
	{"gfx908:sramecc+:xnack-", "gfx908"},
	{"gfx909:xnack-", "gfx9-generic"},
	{"gfx90a:sramecc+:xnack-", "gfx90a"},
	{"gfx90c:xnack-", "gfx9-generic"},
	{"gfx942:sramecc+:xnack-", "gfx942"},
	{"gfx950:sramecc+:xnack-", ""},
	{"gfx1010:xnack-", "gfx10-1-generic"},
	{"gfx1011:xnack-", "gfx10-1-generic"},
	{"gfx1012:xnack-", "gfx10-1-generic"},
	{"gfx1013:xnack+", "gfx10-1-generic"},
	{"gfx1030", "gfx10-3-generic"},
	{"gfx1031", "gfx10-3-generic"},
	{"gfx1032", "gfx10-3-generic"},
	{"gfx1033", "gfx10-3-generic"},
	{"gfx1034", "gfx10-3-generic"},
	{"gfx1035", "gfx10-3-generic"},
	{"gfx1036", "gfx10-3-generic"},
	{"gfx1100", "gfx1100"},
	{"gfx1101", "gfx11-generic"},
	{"gfx1102", "gfx11-generic"},
	{"gfx1103", "gfx11-generic"},
	{"gfx1150", "gfx11-generic"},
	{"gfx1151", "gfx11-generic"},
	{"gfx1152", "gfx11-generic"},
	{"gfx1153", "gfx11-generic"},
	{"gfx1200", "gfx12-generic"},
	{"gfx1201", "gfx12-generic"},
	{"gfx803", ""},
	{"gfx1250", ""},
}

// Runtimes of both kinds: one that knows code objects of families, and one that doesn't.
func TestEveryArchitectureHasTheCodeObjectOfTheTable(t *testing.T) {
	for _, version := range []struct {
		rocm, newest string // version of code objects
		families     bool
	}{{"7", "0", true}, {"6", "0", true}, {"6", "5", false}, {"5", "0", false}} {
		gpu := load(t, version.rocm)
		gpu.Setting(t, "OBJECT", version.newest)
		for _, s := range served {
			gpu.Setting(t, "ARCH", s.arch)
			space, err := device.Open("hip:0")
			must(t, err)
			module, err := space.(device.BoxKernels).BoxModule()
			family := strings.HasSuffix(s.target, "-generic")
			bare, _, _ := strings.Cut(s.arch, ":")
			switch {
			case s.target != "" && (!family || version.families):
				if err == nil {
					_, err = module.Kernel(string(device.PackFloat64))
				}
				if err != nil {
					t.Errorf("ROCm %s: %s: %v", version.rocm, s.arch, err)
				}
			case !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), bare):
				t.Errorf("ROCm %s: %s: error %v, want one that is %q and names the architecture", version.rocm, s.arch, err, device.ErrUnsupported)
			case family && !strings.Contains(err.Error(), "since 6.4"):
				t.Errorf("ROCm %s: %s: error %q doesn't say since when families can be loaded", version.rocm, s.arch, err)
			}
			if s.target != "" && !slices.Contains(hip.Targets(s.arch), s.target) {
				t.Errorf("the targets of %s are %q, want %s among them", s.arch, hip.Targets(s.arch), s.target)
			}
			must(t, space.Close())
		}
		gpu.Reset()
	}
}

// Fields go another way where no code object can be loaded, and say so once.
func TestFieldsDoWithoutACodeObject(t *testing.T) {
	for _, tt := range []struct{ rocm, arch, says string }{
		{"6", "gfx1151", ""},
		{"5", "gfx1151", "the device is gfx1151, and the image a code object of version 6"},
		{"7", "gfx950:sramecc+:xnack-", `kernels for AMD architecture "gfx950`},
	} {
		gpu := load(t, tt.rocm)
		gpu.Setting(t, "ARCH", tt.arch)
		var said strings.Builder
		space, err := device.Open("hip:0")
		must(t, err)
		log := slog.New(slog.NewTextHandler(&said, nil))
		domain := grid.Domain{Size: [3]int{5, 4, 3}, Spacing: [3]float64{1, 1, 1}}
		var fields []*field.Field[float64]
		for range 2 {
			f, err := field.New[float64](domain, domain.Box(), field.Halo(1), field.In(space), field.Transfer(field.Direct), field.Logger(log))
			must(t, err)
			fields = append(fields, f)
			cells, err := f.MutableView()
			must(t, err)
			for i := range cells {
				cells[i] = float64(i)
			}
			must(t, f.Upload())
			must(t, f.NoteDeviceWrite())
			src, err := f.Source()
			must(t, err)
			got := make([]float64, 5*4*3)
			must(t, src.ReadCells(pack.Bytes(got), 0))
			for i, x := range got {
				if want := float64(f.Layout().Index(i%5, i/5%4, i/20)); x != want {
					t.Fatalf("ROCm %s, %s: cell %d is %v, want %v", tt.rocm, tt.arch, i, x, want)
				}
			}
		}
		for _, f := range fields {
			must(t, f.Free())
		}
		must(t, space.Close())
		warnings := strings.Count(said.String(), "level=WARN")
		want := 1
		if tt.says == "" {
			want = 0
		}
		// The handler quotes what it writes.
		if text := strings.ReplaceAll(said.String(), `\"`, `"`); warnings != want || !strings.Contains(text, tt.says) {
			t.Errorf("ROCm %s, %s: %d warnings, want %d about %q\n%s", tt.rocm, tt.arch, warnings, want, tt.says, said.String())
		}
		gpu.Reset()
	}
}
