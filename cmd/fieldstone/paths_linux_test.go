package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fieldstone-io/fieldstone/publish"
)

// oddPaths makes, under a fresh current directory, a good bundle and what is neither
// one nor a run file.
func oddPaths(t *testing.T) {
	t.Helper()
	prepare(t, "odd paths", func(dir string) { sample{increment: 20}.save(t, filepath.Join(dir, "ckpt/step_20")) })
	write(t, "text", []byte("notes\n"))
	write(t, "empty", nil)
	write(t, "other/notes", []byte("x"))
	write(t, "ckpt/step_9.publishing.lock", nil)
	for _, dir := range []string{"hollow", "deep/deeper"} {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("pipe", 0o666); err != nil {
		t.Fatal(err)
	}
	symlink(t, "nowhere", "dangling")
	symlink(t, "text", "link")
}

// All commands call what is none of ours by one name, and can't do their work.
func TestPathsOfNeitherKind(t *testing.T) {
	const neither, directory = "neither a bundle nor a run file", "neither a bundle nor a run file, nor a directory of them"
	for _, c := range []struct {
		path, says string
		isDir      bool
	}{
		{"text", neither, false},
		{"link", neither, false},
		{"empty", neither + " (it is empty)", false},
		{"pipe", neither + " (it is a named pipe)", false},
		{"/dev/null", neither + " (it is a device)", false},
		{"ckpt/step_20/metadata.json", neither + " (it is a part of the bundle ckpt/step_20)", false},
		{"ckpt/step_20/fields/phi.bin", neither + " (it is a part of the bundle ckpt/step_20)", false},
		{"ckpt/step_9.publishing.lock", neither + " (it is empty)", false},
		{"hollow", directory, true},
		{"other", directory, true},
		{"deep", directory, true},
		{"ckpt/step_20/fields", directory + " (it is a part of the bundle ckpt/step_20)", true},
		{"missing", "no such file or directory", false},
		{"missing/above/it", "no such file or directory (there is no directory missing)", false},
		{"hollow/missing/it", "no such file or directory (there is no directory hollow/missing)", false},
		{"dangling", "no such file or directory (it is a symbolic link to nowhere)", false},
		{"text/below", "not a directory", false},
	} {
		t.Run(c.path, func(t *testing.T) {
			oddPaths(t)
			commands := [][]string{
				{"show", c.path}, {"show", "--json", "--stats", c.path}, {"verify", c.path}, {"verify", "-q", c.path},
				{"diff", c.path, "ckpt/step_20"}, {"diff", "ckpt/step_20", c.path}, {"diff", "--json", "ckpt", c.path},
			}
			if !c.isDir {
				commands = append(commands, runFileCommands(c.path)...)
			}
			for _, args := range commands {
				o := mustRun(t, statusFailed, args...)
				command := strings.TrimSuffix(strings.Join(args[:2], " "), " "+c.path)
				if args[0] != "settings" {
					command = args[0]
				}
				if want := "fieldstone: " + command + " " + c.path + ": " + c.says + "\n"; o.errors != want || o.out != "" {
					t.Errorf("%q: %q and %q, want %q", args, o.out, o.errors, want)
				}
			}
			o := mustRun(t, statusFailed, "verify", "--json", c.path)
			v := decodeJSON[map[string][]any](t, o)
			if len(v["bundles"])+len(v["run_files"]) != 0 {
				t.Errorf("%s", o.out)
			}
		})
	}
}

// What has the name of a bundle or a run file is a damaged one: a restart meets it.
func TestDamagedByTheirNames(t *testing.T) {
	oddPaths(t)
	for _, path := range []string{"ckpt/step_21", "step_3.damaged", "step_3.superseded"} {
		write(t, path, []byte("x"))
		for _, command := range []string{"show", "verify"} {
			o := mustRun(t, statusBad, command, path)
			if want := "fieldstone: " + command + " " + path + ": not a bundle: not a directory\n"; o.errors != want {
				t.Errorf("%s %s: %q", command, path, o.errors)
			}
		}
	}
}

// Other paths may be worth a look all the same.
func TestVerifyGoesOnAfterNeither(t *testing.T) {
	oddPaths(t)
	o := mustRun(t, statusFailed, "verify", "text", "ckpt")
	if o.out != "ckpt/step_20: good (4 files, 1007 B)\n" {
		t.Errorf("%s", o.out)
	}
}

func TestThingsOfTwoKindsAreNotCompared(t *testing.T) {
	oddPaths(t)
	write(t, "run.h5", signature)
	const bundle, run, directory = "a bundle", "a run file", "a directory of bundles or run files"
	kinds := map[string]string{"ckpt/step_20": bundle, "run.h5": run, "ckpt": directory}
	for x, kindX := range kinds {
		for y, kindY := range kinds {
			if x == y {
				continue
			}
			o := mustRun(t, statusFailed, "diff", x, y)
			if want := "fieldstone: diff: A, " + x + ", is " + kindX + ", and B, " + y + ", is " + kindY + "\n"; o.errors != want || o.out != "" {
				t.Errorf("%q and %q, want %q", o.out, o.errors, want)
			}
		}
	}
}

func TestPathsWithoutPermission(t *testing.T) {
	oddPaths(t)
	for _, path := range []string{"text", "closed", "ckpt/step_20/metadata.json"} {
		if path == "closed" {
			write(t, "closed/step_1/metadata.json", []byte("{}"))
		}
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod("closed", 0o777) })
	for _, c := range []struct {
		args   []string
		errors string
	}{
		{[]string{"show", "text"}, "fieldstone: show text: permission denied\n"},
		{[]string{"verify", "text"}, "fieldstone: verify text: permission denied\n"},
		{[]string{"diff", "text", "ckpt/step_20"}, "fieldstone: diff text: permission denied\n"},
		{[]string{"show", "closed"}, "fieldstone: show closed: permission denied\n"},
		{[]string{"verify", "closed/step_1"}, "fieldstone: verify closed/step_1: permission denied\n"},
		{[]string{"ls", "closed"}, "fieldstone: ls closed: permission denied\n"},
		{[]string{"show", "ckpt/step_20"}, "fieldstone: show ckpt/step_20: metadata.json: permission denied\n"},
		{[]string{"verify", "ckpt"}, "fieldstone: verify ckpt/step_20: metadata.json: permission denied\n"},
	} {
		if o := runAsOther(t, c.args...); o.status != statusFailed || o.errors != c.errors {
			t.Errorf("%q: exit status %d, %q, want %q", c.args, o.status, o.errors, c.errors)
		}
	}
}

// errNeither is told apart from a path that can't be looked at.
func TestLookAtErrors(t *testing.T) {
	oddPaths(t)
	if _, err := new(app).identify("text"); !errors.Is(err, errNeither) {
		t.Error(err)
	}
	if _, err := new(app).identify("missing"); errors.Is(err, errNeither) || !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A name can have a line break, which must not forge a line of the output.
func TestNamesWithLineBreaks(t *testing.T) {
	t.Chdir(t.TempDir())
	const name = "run\nforged"
	for _, n := range []int64{1, 2} {
		sample{increment: n}.save(t, filepath.Join(name, "step_1\nforged", publish.StepName(n)))
	}
	sample{}.save(t, filepath.Join(name, "bundle\nforged"))
	write(t, filepath.Join(name, "decay\nforged.segment0001.h5"), []byte("no HDF5"))
	below := filepath.Join(name, "step_1\nforged")
	for _, args := range [][]string{
		{"show", name}, {"show", below}, {"show", "--stats", below}, {"verify", name, below}, {"ls", name}, {"ls", "--verify", name}, {"ls", below},
		{"diff", name, name}, {"diff", below, name}, {"diff", filepath.Join(below, "step_1"), filepath.Join(below, "step_2")}, {"show", name + "\nforged"},
		{"diff", "--rtol", "1", name, below},
	} {
		o := run(t, args...)
		if strings.Contains(o.out+o.errors, "\nforged") || !strings.Contains(o.out+o.errors, `\nforged`) && !strings.HasPrefix(args[len(args)-1], below) {
			t.Errorf("%q: %q and %q", args, o.out, o.errors)
		}
	}
}
