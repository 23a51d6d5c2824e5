//go:build linux && (amd64 || arm64)

package fakegpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const kernels = "../../device/internal/kernels/"

// The drivers and a program that uses them, compiled with sanitizers and with all
// warnings as errors, do what they must without a complaint.
func TestSanitizers(t *testing.T) {
	l := Build(t, kernels+"devicetest.cu")
	for _, sanitizer := range []string{"address,undefined", "thread"} {
		t.Run(sanitizer, func(t *testing.T) {
			program, err := buildSelftest("-g", "-Werror", "-fsanitize="+sanitizer, "-fno-sanitize-recover=all")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(program, kernels+"devicetest.ptx", kernels+"devicetest.gfx942.hsaco", l.Kernels[0])
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func buildSelftest(flags ...string) (program string, err error) {
	const name = "selftest.c"
	source, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		return "", err
	}
	key := func() (string, error) {
		base, err := baseKey()
		return strings.Join(slices.Concat([]string{base, string(source)}, flags), "\n"), err
	}
	dir, err := cached("selftest", key, func(dir string) error {
		if err := os.CopyFS(dir, sources); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), source, 0o666); err != nil {
			return err
		}
		var objects []object
		for _, o := range slices.Concat(coreFiles, cudaFiles, hipFiles, []string{"hip"}) {
			objects = append(objects, object{name: o, source: "csrc/" + o + ".c", flags: append(flags, "-DHIP_VERSION=7")})
		}
		objects = append(objects, object{name: "selftest", source: name, flags: flags})
		if err := compileAll(dir, objects); err != nil {
			return err
		}
		args := slices.Concat(flags, []string{"-o", "selftest"})
		for _, o := range objects {
			args = append(args, o.name+".o")
		}
		return run(dir, cCompiler, append(args, "-ldl", "-lpthread", "-lm")...)
	})
	return filepath.Join(dir, "selftest"), err
}

func TestTheCacheForgetsWhatIsOld(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	root, err := cacheRoot()
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	get := func(key string) {
		t.Helper()
		dir, err := cached("test", func() (string, error) { return key, nil }, func(string) error { made++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if key == "old" {
			longAgo := time.Now().AddDate(0, -2, 0)
			if err := os.Chtimes(dir, longAgo, longAgo); err != nil {
				t.Fatal(err)
			}
		}
	}
	get("old")
	get("new")
	get("new")
	get("newer")
	if made != 3 {
		t.Errorf("%d folders were made, want 3", made)
	}
	left, err := filepath.Glob(filepath.Join(root, "test-*[0-9a-f]"))
	if err != nil || len(left) != 2 {
		t.Errorf("%q are left (%v), want those of new and newer", left, err)
	}
}
