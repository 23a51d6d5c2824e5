package main

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/devicetest"
)

func TestEverythingIsMeasured(t *testing.T) {
	var out strings.Builder
	args := []string{"-device", "emulated:0", "-size", "12", "-repeats", "2", "-folder", t.TempDir()}
	if err := run(context.Background(), args, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"float64 cube: pack", "float64 cube: unpack", "float32 cube: pack", "float64, rows of 16: unpack",
		"float64 to the host: direct", "float64 to the host: mirror", "float32 to the device: direct",
		"save: direct", "save: mirror", "load: direct",
	} {
		if !regexp.MustCompile(`(?m)^` + want + ` +\d+\.`).MatchString(out.String()) {
			t.Errorf("there is no line %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestWrongCellsAreNoticed(t *testing.T) {
	for _, bug := range []devicetest.Bug{
		devicetest.StreamSynchronizeReturnsAtOnce,
		devicetest.CopyToHostLosesTheLastByte,
		devicetest.CopyToDeviceGoesAstray,
		devicetest.LaunchDoesNothing,
	} {
		t.Run(string(bug), func(t *testing.T) {
			space, err := device.Open("emulated:0")
			if err != nil {
				t.Fatal(err)
			}
			defer space.Close()
			planted := struct {
				device.Space
				device.BoxKernels // Plant's space has none
			}{devicetest.Plant(space, bug), space.(device.BoxKernels)}
			var out strings.Builder
			s := settings{size: 12, fields: 1, repeats: 1, folder: t.TempDir()}
			if err := measure(context.Background(), s, planted, &out); err == nil {
				t.Errorf("no error\n%s", out.String())
			} else {
				t.Log(err)
			}
		})
	}
}
