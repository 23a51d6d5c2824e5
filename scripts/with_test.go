package scripts_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A module elsewhere is built with the scripts too: they stay where they are called, and
// what they make is found from there. Programs that only say that all is installed stand
// in for the real ones.
func TestCommandsRunWhereTheyAreCalled(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"with-mpi", "with-hdf5", "with-mumax", "hdf5-environment"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		put(t, filepath.Join(root, "scripts", name), string(text))
	}
	bin, elsewhere := filepath.Join(root, "bin"), filepath.Join(root, "a solver")
	if err := os.Mkdir(elsewhere, 0o777); err != nil {
		t.Fatal(err)
	}
	// Only the HDF5 of the name hdf5 is there, so that each file of another name is needed.
	put(t, filepath.Join(bin, "pkg-config"), "#!/bin/sh\n[ \"$2\" != hdf5-serial ] || [ -n \"$PKG_CONFIG_PATH\" ] || exit 1\n[ \"$1\" != --modversion ] || echo 1\n")
	put(t, filepath.Join(bin, "go"), "#!/bin/sh\npwd\n") // fakegpudir, in the root
	put(t, filepath.Join(bin, "mpirun.openmpi"), "#!/bin/sh\n")
	put(t, filepath.Join(bin, "mpirun.mpich"), "#!/bin/sh\n")

	for _, c := range []struct {
		script, tags string
		files        []string // that pkg-config is led to
	}{
		{"with-hdf5", "hdf5", []string{"build/hdf5/pkgconfig/hdf5-serial.pc"}},
		{"with-mpi openmpi", "mpi,hdf5", []string{"build/hdf5/pkgconfig/hdf5-serial.pc"}},
		{"with-mpi mpich", "mpi,hdf5", []string{"build/mpich/pkgconfig/ompi.pc"}},
		{"with-mumax", "mumax", nil},
	} {
		t.Run(c.script, func(t *testing.T) {
			words := strings.Fields(c.script)
			args := append(words[1:], "sh", "-c", `pwd; echo "$GOFLAGS"; echo "$PKG_CONFIG_PATH"; echo "$CGO_CFLAGS"`)
			command := exec.Command(filepath.Join(root, "scripts", words[0]), args...)
			command.Dir = elsewhere
			command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "GOFLAGS=", "PKG_CONFIG_PATH=", "CGO_CFLAGS=")
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(string(out), "\n")
			if lines[0] != elsewhere || lines[1] != "-tags="+c.tags {
				t.Errorf("%s", out)
			}
			for _, file := range c.files {
				if _, err := os.Stat(filepath.Join(root, file)); err != nil || !strings.Contains(lines[2], filepath.Join(root, filepath.Dir(file))) {
					t.Errorf("%v\n%s", err, out)
				}
			}
			if include := fmt.Sprintf("-I%s/internal/fakegpu/include", root); words[0] == "with-mumax" && !strings.Contains(lines[3], include) {
				t.Errorf("%s", out)
			}
			if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// put writes a program.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
}
