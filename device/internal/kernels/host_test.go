package kernels

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The same source, as the host's compiler understands it, against index arithmetic:
// all that doesn't depend on a compiler for devices.
func TestBoxKernelsMoveTheRightCells(t *testing.T) {
	compiler, err := exec.LookPath("g++")
	if err != nil && os.Getenv("FIELDSTONE_REQUIRE_FAKEGPU") == "" {
		t.Skip("needs g++")
	}
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "check")
	if out, err := exec.Command(compiler, "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
		// Addresses are counted from cells that lie before the arrays.
		"-fsanitize=address,undefined", "-fno-sanitize=pointer-overflow", "-fno-sanitize-recover",
		"-I", "include", filepath.Join("testdata", "check.cc"), "-o", program).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := exec.Command(program).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
