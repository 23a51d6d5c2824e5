//go:build amd64 || arm64

package cuda_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/cuda"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu/gputest"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
	"github.com/fieldstone-io/fieldstone/internal/devtest"
	"github.com/fieldstone-io/fieldstone/internal/fakegpu"
)

var config = devicetest.Config{
	Open:   func() (device.Space, error) { return device.Open("cuda:0") },
	Faults: true,
}

// load loads the fake driver.
func load(t testing.TB) *fakegpu.Driver {
	t.Helper()
	devtest.OnFakes(t)
	cuda.Use("libcuda.so.1")
	return fakegpu.Load(t, "cuda")
}

func TestConformance(t *testing.T) {
	for _, mode := range fakegpu.Modes {
		t.Run(mode.String(), func(t *testing.T) {
			gpu := load(t)
			gpu.Set(t, mode)
			devicetest.Run(t, config)
			if live := gpu.Live(); live != (fakegpu.Live{}) {
				t.Errorf("left over: %+v", live)
			}
		})
	}
}

// On a lazy device, each planted bug is noticed by the check of what it breaks,
// every time.
func TestSuiteNoticesPlantedBugs(t *testing.T) {
	gpu := load(t)
	gpu.Set(t, fakegpu.Lazy)
	devicetest.RunPlanted(t, config, 3)
	gpu.Misuse() // some of the bugs are
}

func TestConformanceOnTheDevice(t *testing.T) {
	name := devtest.On(t, "cuda")
	devicetest.Run(t, devicetest.Config{Open: func() (device.Space, error) { return device.Open(name) }})
}

func TestCallsOnTheDevice(t *testing.T) {
	name := devtest.On(t, "cuda")
	s := newSolver(t)
	mine := s.context(0)
	space := open(t, name)
	gputest.EachCall(t, space, kernels.TestPTX(), func(call string) {
		if got := s.current(); got != mine {
			t.Fatalf("after %s the current context is %#x, want %#x", call, got, mine)
		}
	})
	gputest.Allocations(t, space, kernels.TestPTX())
	if _, err := space.LoadModule([]byte("this is no PTX")); !errors.Is(err, device.ErrInvalid) {
		t.Errorf("a text that is no PTX: %v", err)
	} else {
		t.Log(err)
	}
}

// The suite opens a space for each check; the device's primary context is made once for
// all of them.
func TestOneContextForTheSuite(t *testing.T) {
	devtest.OnFakes(t)
	cmd := exec.Command(os.Args[0], "-test.run=^TestConformanceOnTheDevice$", "-test.v")
	cmd.Env = append(os.Environ(), fakegpu.Build(t).Environment()...)
	cmd.Env = append(cmd.Env, "FIELDSTONE_DEVICE=cuda:0", "FAKEGPU_TRACE=1", "FAKEGPU_MODE=eager")
	out, err := cmd.CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, "--- PASS: TestConformanceOnTheDevice/") {
		t.Fatalf("%v\n%.10000s", err, text)
	}
	if n := strings.Count(text, "fakegpu: a context is made\n"); n != 1 {
		t.Errorf("%d contexts were made", n)
	}
}

// What a fault does to the driver stays in a process of its own. Whether that can
// go on afterwards is up to the driver.
func TestFaultsOnTheDevice(t *testing.T) {
	const variable = "FIELDSTONE_FAULT_CHECK"
	name := devtest.On(t, "cuda")
	for _, check := range devicetest.Checks() {
		switch {
		case !check.LosesTheSpace(), check.Name == "after a loss a new space works":
		case os.Getenv(variable) == check.Name:
			must(t, check.Run(devicetest.Config{Open: func() (device.Space, error) { return device.Open(name) }}))
		case os.Getenv(variable) == "":
			t.Run(check.Name, func(t *testing.T) {
				cmd := exec.Command(os.Args[0], "-test.run=^TestFaultsOnTheDevice$")
				cmd.Env = append(os.Environ(), variable+"="+check.Name)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
	}
}
