//go:build linux && (amd64 || arm64)

package fakegpu_test

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

// The test binary is also the program that the tests below start.
func TestMain(m *testing.M) {
	if library := os.Getenv("FAKEGPU_TEST_LIBRARY"); library != "" {
		program(library)
		return
	}
	os.Exit(m.Run())
}

// program uses a library as a program does that knows of no fake, and prints what
// happens.
func program(library string) {
	h, err := purego.Dlopen(library, purego.RTLD_NOW)
	if err != nil {
		fmt.Println(err)
		return
	}
	bind := func(fn any, name string) { purego.RegisterLibFunc(fn, h, name) }
	var start func(uint32) int32
	var devices func(*int32) int32
	if strings.HasPrefix(library, "libcuda") {
		bind(&start, "cuInit")
		bind(&devices, "cuDeviceGetCount")
		var n int32
		fmt.Println("init", start(0), "count", devices(&n), n)
		return
	}
	bind(&start, "hipInit")
	bind(&devices, "hipGetDeviceCount")
	var n int32
	fmt.Println("init", start(0), "count", devices(&n), n)
	useHIP(bind)
}

func useHIP(bind func(fn any, name string)) {
	g := &gpu{vendor: "hip"}
	for name, fn := range g.functions() {
		bind(fn, name)
	}
	var p, m, f uintptr
	fmt.Println("allocate", g.malloc(&p, 800), g.malloc(&p, 80), g.malloc(&p, 80))
	var pinned unsafe.Pointer
	fmt.Println("pin", g.pin(&pinned, 80, 0))
	image, err := os.ReadFile(kernels + "devicetest.gfx90a.hsaco")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("load", g.load(&m, &image[0]), g.function(&f, m, "pack3d"))
	fmt.Println("copy", g.toHostOn(pinned, p, 80, 0))
	lazy := math.IsNaN(*(*float64)(pinned)) // so is the memory
	fmt.Println("synchronise", g.sync(), lazy)
}

func start(t *testing.T, l fakegpu.Libraries, library string, env ...string) (stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(append(os.Environ(), l.Environment()...), append(env, "FAKEGPU_TEST_LIBRARY="+library)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &errs)
	}
	return out.String(), errs.String()
}

func TestProgramsFindTheFakes(t *testing.T) {
	l := fakegpu.Build(t)
	for _, library := range []string{"libcuda.so.1", "libcuda.so"} {
		if out, _ := start(t, l, library, "FAKEGPU_DEVICES=3"); out != "init 0 count 0 3\n" {
			t.Errorf("%s: %s", library, out)
		}
	}
	if out, _ := start(t, l, "libcuda.so.1", "FAKEGPU_DEVICES=0"); out != "init 100 count 3 0\n" {
		t.Errorf("no device: %s", out)
	}
}

func TestTheEnvironmentSetsUpAProgram(t *testing.T) {
	l := fakegpu.Build(t, kernels+"devicetest.cu", kernels+"box.cu")
	for _, version := range []string{"libamdhip64.so", "libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7"} {
		out, errs := start(t, l, version, "FAKEGPU_MODE=lazy", "FAKEGPU_MEM=1000", "FAKEGPU_FAIL=hipMalloc:2=999,hipHostMalloc:5=1",
			"FAKEGPU_ARCH=gfx90a", "FAKEGPU_DEVICES=1", "FAKEGPU_TRACE=1")
		want := "init 0 count 0 1\nallocate 0 999 0\npin 0\nload 0 0\ncopy 0\nsynchronise 0 true\n"
		if out != want {
			t.Errorf("%s: got\n%s\nwant\n%s", version, out, want)
		}
		if !strings.Contains(errs, "fakegpu: hipMalloc: 999\n") {
			t.Errorf("%s: no trace: %s", version, errs)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	l := fakegpu.Build(t)
	for _, setting := range []string{"FAKEGPU_MODE=sometimes", "FAKEGPU_MEM=much", "FAKEGPU_DEVICES=1000", "FAKEGPU_FAIL=hipMalloc"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self)
		cmd.Env = append(append(os.Environ(), l.Environment()...), setting, "FAKEGPU_TEST_LIBRARY=libcuda.so.1")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), setting+" makes no sense") {
			t.Errorf("%s: %v\n%.200s", setting, err, out)
		}
	}
}

func TestBuildTakesWhatWasBuilt(t *testing.T) {
	first, second := fakegpu.Build(t, kernels+"box.cu"), fakegpu.Build(t, kernels+"box.cu")
	if first.Dir != second.Dir || first.Kernels[0] != second.Kernels[0] {
		t.Errorf("%+v, then %+v", first, second)
	}
	if base := fakegpu.Build(t); base.Dir == first.Dir || len(base.Kernels) != 0 {
		t.Errorf("without kernels: %+v", base)
	}
}
