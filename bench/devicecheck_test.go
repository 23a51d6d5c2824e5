//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// standIn is what the check runs in place of the program that measures. STAND_IN has
// words PART=hang and PART=fail; what hangs does so after its first figure, for as long as
// the file HOLD is there.
const standIn = `#!/bin/bash
while [ $# -gt 0 ]; do
	case $1 in
	-list) echo "cuda:0: a device"; exit 0 ;;
	-verify) [ -d "$2" ]; exit ;;
	-parts) part=$2 ;;
	-also) also=$2 ;;
	esac
	shift
done
say() { [ -z "$also" ] || echo "$1" >>"$also"; echo "$1"; }
say "first figure of $part"
for word in $STAND_IN; do
	case $word in
	$part=hang) while [ -e "$HOLD" ]; do sleep 0.05; done ;;
	$part=fail) echo "FAIL: cells are wrong" >&2; exit 1 ;;
	esac
done
say "last figure of $part"
`

const standInTest = "#!/bin/bash\necho '--- PASS: TestConformance'; echo '--- SKIP: TestFaults'\n"

const standInExample = `#!/bin/bash
while [ "$1" != -out ]; do shift; done
mkdir -p "$2/step_20" "$2/step_40/fields"
`

// checkTree is what travels to a machine with a device: the script and an archive.
func checkTree(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	script, err := os.ReadFile("device-check.sh")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	var archive bytes.Buffer
	zip := gzip.NewWriter(&archive)
	files := tar.NewWriter(zip)
	add := func(name, text string) {
		if err := files.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	add("device", standIn)
	add("allencahn", standInExample)
	for _, p := range []string{"device/cuda", "field", "publish", "examples/allencahn/internal/stepper"} {
		add("tests/"+p+".test", standInTest)
		write(p+"/doc.go", nil) // tests run in the package's folder
	}
	for _, c := range []interface{ Close() error }{files, zip} {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write("bench/device-check.sh", script)
	write("build/device/cuda.tar.gz", archive.Bytes())
	write("hold", nil)
	return root
}

// check prepares a run of the script in a tree.
func check(t *testing.T, root, device string, environment ...string) *exec.Cmd {
	t.Helper()
	command := exec.Command(filepath.Join(root, "bench/device-check.sh"), device)
	command.Env = append(os.Environ(), "OUT="+filepath.Join(root, "out"), "HOLD="+filepath.Join(root, "hold"), "TMPDIR="+t.TempDir())
	command.Env = append(command.Env, environment...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What outlives the script keeps a pipe open, but no file.
	said, err := os.Create(filepath.Join(root, "said"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { said.Close() })
	command.Stdout, command.Stderr = said, said
	t.Cleanup(func() { os.Remove(filepath.Join(root, "hold")) })
	return command
}

// read returns a file of a tree.
func read(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cameBack returns the file of figures, and fails where others than the two came back.
func cameBack(t *testing.T, root string) string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "out"))
	if err != nil || len(entries) != 2 {
		t.Errorf("%d files came back, want 2: %v", len(entries), err)
	}
	return read(t, root, "out/device-check.txt")
}

func TestTheDeviceCheckTakesTheMostWorthyFirst(t *testing.T) {
	t.Parallel()
	root := checkTree(t)
	bin := t.TempDir()
	for name, text := range map[string]string{
		"nvidia-smi":        "echo a device, and its clocks",
		"compute-sanitizer": "echo ========= ERROR SUMMARY: 0 errors",
	} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := check(t, root, "cuda:0", "PATH="+bin+":"+os.Getenv("PATH")).Run(); err != nil {
		t.Errorf("%v\n%s", err, read(t, root, "said"))
	}
	text := cameBack(t, root)
	if said := read(t, root, "said"); said != text {
		t.Errorf("printed is\n%s\nand in the file\n%s", said, text)
	}
	var stages []string
	for _, m := range regexp.MustCompile(`(?m)^ok +(.*\S) +\d+ s$`).FindAllStringSubmatch(text, -1) {
		stages = append(stages, m[1])
	}
	want := []string{"open cuda:0", "tests of device/cuda", "tests of field", "tests of publish", "tests of examples/allencahn/internal/stepper",
		"example on cuda:0 and the host", "measure: big", "measure: kernels", "measure: ring", "measure: capture", "measure: costs",
		"measure: blocked", "measure: readings", "measure: bundles", "compute-sanitizer memcheck"}
	if !slices.Equal(stages, want) {
		t.Errorf("stages are %q, want %q", stages, want)
	}
	for _, want := range []string{"nvidia-smi: a device, and its clocks", "1 passed, 1 skipped", "last figure of bundles", "ERROR SUMMARY: 0 errors", " s in all"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing is said of %q", want)
		}
	}
}

// Whatever was measured before the check was ended is there, and says what was under way.
func TestTheDeviceCheckMayBeEndedAtAnyTime(t *testing.T) {
	for _, tt := range []struct {
		name   string
		signal syscall.Signal
		says   string
	}{{"killed", syscall.SIGKILL, ""}, {"asked to end", syscall.SIGTERM, "during: measure: ring"}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := checkTree(t)
			command := check(t, root, "cuda:0", "STAND_IN=ring=hang")
			if err := command.Start(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(root, "out/device-check.txt")
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), "first figure of ring") {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("there is no figure: %v\n%s", err, text)
				}
			}
			if err := command.Process.Signal(tt.signal); err != nil {
				t.Fatal(err)
			}
			if err := command.Wait(); err == nil {
				t.Error("it ended well")
			}
			text := cameBack(t, root)
			for _, want := range []string{"1 passed", "last figure of big", "last figure of kernels", "first figure of ring", tt.says} {
				if !strings.Contains(text, want) {
					t.Errorf("nothing is said of %q:\n%s", want, text)
				}
			}
			if log := read(t, root, "out/device-check.log"); !strings.Contains(log, "=== tests of field\n--- PASS: TestConformance") {
				t.Errorf("the log is\n%s", log)
			}
		})
	}
}

// A step that fails, or takes all of the time, is an error, and the others are done as far
// as there is time.
func TestTheDeviceCheckGoesOnAfterAFailure(t *testing.T) {
	for _, tt := range []struct {
		name, standIn, seconds string
		want                   []string
	}{
		{"wrong cells", "kernels=fail", "", []string{"FAILED  measure: kernels", "        FAIL: cells are wrong", "failed: measure: kernels", "last figure of big", "last figure of bundles"}},
		{"no time", "big=hang", "4", []string{"first figure of big", "FAILED  measure: big", "        ended after", "not run: measure: bundles: no time was left", " s in all"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := checkTree(t)
			err := check(t, root, "cuda:0", "STAND_IN="+tt.standIn, "FIELDSTONE_CHECK_SECONDS="+tt.seconds).Run()
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 1 {
				t.Errorf("it ends with %v", err)
			}
			text := cameBack(t, root)
			for _, want := range tt.want {
				if !strings.Contains(text, want) {
					t.Errorf("nothing is said of %q:\n%s", want, text)
				}
			}
		})
	}
}

func TestTheDeviceCheckSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	root := checkTree(t)
	for _, tt := range []struct{ device, want string }{
		{"hip:0", "no " + root + "/build/device/hip.tar.gz (make device-check-build VENDOR=hip makes it), and no Go to build it"},
		{"tpu:0", "tpu:0 is neither a CUDA nor a HIP device"},
	} {
		// A PATH without Go.
		bin := t.TempDir()
		for _, tool := range []string{"bash", "dirname", "env"} {
			path, err := exec.LookPath(tool)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
		err := check(t, root, tt.device, "PATH="+bin).Run()
		if text := read(t, root, "said"); err == nil || !strings.Contains(text, tt.want) {
			t.Errorf("%s: %v\n%s", tt.device, err, text)
		}
	}
}
