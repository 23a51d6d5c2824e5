//go:build amd64 || arm64

package hip_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/hip"
	"github.com/fieldstone-io/fieldstone/device/internal/gpu/gputest"
	"github.com/fieldstone-io/fieldstone/device/internal/kernels"
)

func TestEveryCallOfTheRuntimeCanFail(t *testing.T) {
	gpu := load(t, "7")
	list, err := device.Devices("hip")
	if err != nil {
		t.Fatal(err)
	}
	image, err := kernels.TestCodeObject(list[0].Arch)
	if err != nil {
		t.Fatal(err)
	}
	gputest.Faults(t, gputest.Config{
		GPU:       gpu,
		Space:     "hip:1",
		Image:     image,
		Functions: append(hip.Functions(), "hipGetDevicePropertiesR0600"),
		Quiet: map[string]string{
			"hipRuntimeGetVersion": "the version is left out",
			"hipGetErrorName":      "it can't fail",
			"hipGetLastError":      "its result is that of other calls",
		},
		Forget: func() { hip.Use("libamdhip64.so.7") },
	}, []gputest.Fault{
		{Code: 2, Name: "hipErrorOutOfMemory", Is: device.ErrOutOfMemory},
		{Code: 304, Name: "hipErrorOperatingSystem", Is: device.ErrDriver},
		{Code: 700, Name: "hipErrorIllegalAddress", Is: device.ErrAddress, Sticky: true},
	})
}
