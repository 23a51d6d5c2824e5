package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// damages are what can happen to a bundle, and what verify must say. They start
// from a good bundle with two fields and a sidecar at step_10.
var damages = []struct {
	name   string
	damage func(t *testing.T, dir string)
	status int
	// says is what each line of standard error must have after the path.
	says []string
}{
	{"nothing", func(*testing.T, string) {}, 0, nil},
	{"metadata truncated", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte { return b[:len(b)/2] })
	}, 1, []string{"metadata.json: "}},
	{"metadata empty", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func([]byte) []byte { return nil })
	}, 1, []string{"metadata.json: "}},
	{"metadata not JSON", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func([]byte) []byte { return []byte("<xml/>") })
	}, 1, []string{"metadata.json: "}},
	{"metadata without a required key", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"accepted_time"`, `"expected_time"`, 1))
		})
		reseal(t, dir)
	}, 1, []string{"metadata.json: accepted_time: missing"}},
	{"metadata of a wrong type", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"euler"`, `12`, 1))
		})
		reseal(t, dir)
	}, 1, []string{"metadata.json: method_identity: "}},
	{"a digit of the time changed", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), "1.25", "1.35", 1))
		})
	}, 1, []string{"metadata.json: checksum differs"}},
	{"a dimension changed", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), "[4, 3, 2]", "[4, 3, 3]", 1))
		})
	}, 1, []string{"metadata.json: checksum differs"}},
	{"the version changed, but not the checksum", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"format_version": 2`, `"format_version": 3`, 1))
		})
	}, 1, []string{"metadata.json: checksum differs"}},
	{"a later version", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"format_version": 2`, `"format_version": 3`, 1))
		})
		reseal(t, dir)
	}, 2, []string{"metadata.json: format_version: "}},
	{"metadata missing", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "metadata.json"))
	}, 1, []string{"not a bundle: no metadata.json"}},
	{"field missing", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "fields/phi.bin"))
	}, 1, []string{"fields/phi.bin: the file is missing"}},
	{"field too short", func(t *testing.T, dir string) {
		rewrite(t, dir, "fields/phi.bin", func(b []byte) []byte { return b[:len(b)-1] })
	}, 1, []string{"fields/phi.bin: 191 bytes, the grid needs exactly 192"}},
	{"field too long", func(t *testing.T, dir string) {
		rewrite(t, dir, "fields/phi.bin", func(b []byte) []byte { return append(b, 0) })
	}, 1, []string{"fields/phi.bin: 193 bytes, the grid needs exactly 192"}},
	{"field empty", func(t *testing.T, dir string) {
		rewrite(t, dir, "fields/phi.bin", func([]byte) []byte { return nil })
	}, 1, []string{"fields/phi.bin: 0 bytes, the grid needs exactly 192"}},
	{"a bit of a field flipped", func(t *testing.T, dir string) { flip(t, dir, "fields/T.bin") },
		1, []string{"fields/T.bin: checksum differs"}},
	{"a bit of each field flipped", func(t *testing.T, dir string) {
		flip(t, dir, "fields/T.bin")
		flip(t, dir, "fields/phi.bin")
	}, 1, []string{"fields/phi.bin: checksum differs", "fields/T.bin: checksum differs"}},
	{"a bit of the metadata flipped", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			b[strings.Index(string(b), "euler")] ^= 1
			return b
		})
	}, 1, []string{"metadata.json: checksum differs"}},
	{"a bit of the sidecar flipped", func(t *testing.T, dir string) { flip(t, dir, "sidecar.json") },
		1, []string{"sidecar.json: checksum differs"}},
	{"sidecar missing", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "sidecar.json"))
	}, 1, []string{"sidecar.json: the file is missing"}},
	{"a sidecar that was not published", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func(b []byte) []byte {
			lines := strings.SplitAfter(string(b), "\n")
			return []byte(lines[0] + strings.Join(lines[2:], ""))
		})
	}, 1, []string{"checksums.txt: sidecar.json is not listed"}},
	{"a checksum changed", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func(b []byte) []byte {
			at := strings.LastIndex(string(b), "  fields/T.bin") - 1
			b[at] = "0123456789abcdef"[(strings.IndexByte("0123456789abcdef", b[at])+1)%16]
			return b
		})
	}, 1, []string{"fields/T.bin: checksum differs"}},
	{"a bit of a name in the checksums flipped", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func(b []byte) []byte {
			b[strings.Index(string(b), "phi")] ^= 1
			return b
		})
	}, 1, []string{"checksums.txt: "}},
	{"checksums truncated", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func(b []byte) []byte { return b[:len(b)-3] })
	}, 1, []string{"checksums.txt: line 4: the end is missing"}},
	{"checksums lack a line", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func(b []byte) []byte {
			return b[:strings.LastIndex(strings.TrimSpace(string(b)), "\n")+1]
		})
	}, 1, []string{"checksums.txt: fields/T.bin is not listed"}},
	{"checksums empty", func(t *testing.T, dir string) {
		rewrite(t, dir, "checksums.txt", func([]byte) []byte { return nil })
	}, 1, []string{"checksums.txt: metadata.json is not listed"}},
	{"checksums missing", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "checksums.txt"))
	}, 1, []string{"checksums.txt: the file is missing: Fieldstone published this bundle with it"}},
	{"metadata truncated and a bit of a field flipped", func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte { return b[:20] })
		flip(t, dir, "fields/phi.bin")
	}, 1, []string{"metadata.json: ", "fields/phi.bin: checksum differs"}},
	{"the fields are gone", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "fields"))
	}, 1, []string{"fields: the directory is missing"}},
	{"the fields are a file", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "fields"))
		write(t, filepath.Join(dir, "fields"), nil)
	}, 1, []string{"fields: not a directory"}},
	{"the fields are a link", func(t *testing.T, dir string) {
		rename(t, filepath.Join(dir, "fields"), filepath.Join(dir, "elsewhere"))
		symlink(t, "elsewhere", filepath.Join(dir, "fields"))
	}, 1, []string{"fields: not a directory"}},
	{"a field is a link", func(t *testing.T, dir string) {
		rename(t, filepath.Join(dir, "fields/phi.bin"), filepath.Join(dir, "phi.bin"))
		symlink(t, "../phi.bin", filepath.Join(dir, "fields/phi.bin"))
	}, 1, []string{"fields/phi.bin: not a regular file"}},
	{"a field is a directory", func(t *testing.T, dir string) {
		remove(t, filepath.Join(dir, "fields/phi.bin"))
		write(t, filepath.Join(dir, "fields/phi.bin/x"), nil)
	}, 1, []string{"fields/phi.bin: not a regular file"}},
	{"a file that belongs to nobody", func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, "fields/notes.txt"), nil)
	}, 0, nil},
	{"a field that the metadata don't list", func(t *testing.T, dir string) {
		write(t, filepath.Join(dir, "fields/old.bin"), nil)
		write(t, filepath.Join(dir, "fields/._phi.bin"), nil)
	}, 0, []string{"warning: fields/old.bin: the metadata don't list it"}},
	{"the bundle is a file", func(t *testing.T, dir string) {
		remove(t, dir)
		write(t, dir, nil)
	}, 1, []string{"not a bundle: not a directory"}},
	{"the bundle is gone", remove, 2, []string{"no such file or directory"}},
	{"the bundle is empty", func(t *testing.T, dir string) {
		remove(t, dir)
		if err := os.Mkdir(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}, 1, []string{"not a bundle: no metadata.json"}},
	{"the bundle is a link to itself", func(t *testing.T, dir string) {
		remove(t, dir)
		symlink(t, "step_10", dir)
	}, 2, []string{"too many levels of symbolic links"}},
	{"the bundle is a dangling link", func(t *testing.T, dir string) {
		remove(t, dir)
		symlink(t, "nowhere", dir)
	}, 2, []string{"no such file or directory"}},
	{"the bundle is a link to a good one", func(t *testing.T, dir string) {
		rename(t, dir, dir+"0")
		symlink(t, "step_100", dir)
	}, 0, nil},
}

func TestVerifyNamesTheDamage(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			sample{increment: 10, sidecar: map[string]int{"seed": 7}}.save(t, "step_10")
			c.damage(t, "step_10")
			o := mustRun(t, c.status, "verify", "step_10")
			lines := strings.Split(strings.TrimSuffix(o.errors, "\n"), "\n")
			if o.errors == "" {
				lines = nil
			}
			if len(lines) != len(c.says) {
				t.Fatalf("standard error has %d lines, want %d:\n%s", len(lines), len(c.says), o.errors)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, "fieldstone: verify step_10: "+c.says[i]) {
					t.Errorf("standard error line %d: %q, want %q", i, line, c.says[i])
				}
			}
		})
	}
}

// What is good must show, and be equal to itself. What isn't may be, as far as
// the contents aren't verified, but must never count as different from itself.
func TestOtherCommandsAgreeWithVerify(t *testing.T) {
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			sample{increment: 10, sidecar: map[string]int{"seed": 7}}.save(t, "step_10")
			c.damage(t, "step_10")
			if o := run(t, "show", "step_10"); c.status == 0 && o.status != 0 {
				t.Errorf("show: exit status %d: %s", o.status, o.errors)
			}
			o := run(t, "diff", "step_10", "step_10")
			if o.status == 1 || c.status == 0 && o.status != 0 {
				t.Errorf("diff with itself: exit status %d: %s", o.status, o.errors)
			}
			if o.status == 2 && !strings.HasPrefix(o.errors, "fieldstone: diff step_10: ") {
				t.Errorf("diff with itself: %s", o.errors)
			}
		})
	}
}

func TestVerifyPaths(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		status  int
		out     string
		errors  string
	}{
		{"a bundle", nil, []string{"results/ckpt/step_20"}, 0,
			"results/ckpt/step_20: good (5 files, 1.2 KiB)\n", ""},
		{"a slash at the end", nil, []string{"results/ckpt/step_9/"}, 0,
			"results/ckpt/step_9/: good (4 files, 1008 B)\n", ""},
		{"the current directory", func(t *testing.T) { t.Chdir("results/ckpt/step_9") }, []string{"."}, 0,
			".: good (4 files, 1008 B)\n", ""},
		{"spaces and UTF-8", nil, []string{"results/ckpt/before the thaw ψ"}, 0,
			"results/ckpt/before the thaw ψ: good (4 files, 1009 B)\n", ""},
		{"a directory of bundles, newest first, without what is set aside", nil, []string{"results/ckpt"}, 1,
			"results/ckpt/step_40: bad\nresults/ckpt/step_30: bad\nresults/ckpt/before the thaw ψ: good (4 files, 1009 B)\n" +
				"results/ckpt/step_20: good (5 files, 1.2 KiB)\nresults/ckpt/step_10: good (4 files, 1008 B)\nresults/ckpt/step_9: good (4 files, 1008 B)\n",
			"fieldstone: verify results/ckpt/step_40: fields/T.bin: 184 bytes, the grid needs exactly 192\n" +
				"fieldstone: verify results/ckpt/step_30: fields/phi.bin: checksum differs: b4955d791344a68b is recorded, the file has 88b00227af05e2a8\n"},
		{"a directory through a link", func(t *testing.T) {
			symlink(t, "results/ckpt", "latest run")
			remove(t, "results/ckpt/step_40")
			remove(t, "results/ckpt/step_30")
			remove(t, "results/ckpt/before the thaw ψ")
			remove(t, "results/ckpt/step_20")
		}, []string{"latest run"}, 0,
			"latest run/step_10: good (4 files, 1008 B)\nlatest run/step_9: good (4 files, 1008 B)\n", ""},
		{"several paths, the worst counts", nil,
			[]string{"results/ckpt/step_9", "results/ckpt/step_40", "results/ckpt/step_50"}, 2,
			"results/ckpt/step_9: good (4 files, 1008 B)\nresults/ckpt/step_40: bad\n",
			"fieldstone: verify results/ckpt/step_40: fields/T.bin: 184 bytes, the grid needs exactly 192\n" +
				"fieldstone: verify results/ckpt/step_50: no such file or directory\n"},
		{"a bundle that was set aside, when named", nil, []string{"results/ckpt/step_15.damaged"}, 1,
			"results/ckpt/step_15.damaged: bad\n",
			"fieldstone: verify results/ckpt/step_15.damaged: fields/T.bin: the file is missing\n"},
		{"a staging directory is no bundle", nil, []string{"results/ckpt/step_60.publishing"}, 1,
			"results/ckpt/step_60.publishing: bad\n",
			"fieldstone: verify results/ckpt/step_60.publishing: not a bundle: no metadata.json\n"},
		{"a directory of a bundle's shape without metadata", func(t *testing.T) {
			write(t, "odd/fields/phi.bin", nil)
		}, []string{"odd"}, 1, "odd: bad\n", "fieldstone: verify odd: not a bundle: no metadata.json\n"},
		{"a directory without bundles", nil, []string{"results"}, 2, "",
			"fieldstone: verify results: neither a bundle nor a run file, nor a directory of them\n"},
		{"a directory with nothing but what is set aside", func(t *testing.T) {
			rename(t, "results/ckpt/step_50.superseded", "results/step_50.superseded")
		}, []string{"results"}, 2, "",
			"fieldstone: verify results: no bundles but such that were set aside\n"},
		{"a path below a file", nil, []string{"results/ckpt/notes.txt/step_1"}, 2, "",
			"fieldstone: verify results/ckpt/notes.txt/step_1: not a directory\n"},
		{"a name too long for the filesystem", nil, []string{strings.Repeat("x", 300)}, 2, "",
			"fieldstone: verify " + strings.Repeat("x", 300) + ": file name too long\n"},
		{"a name with control characters", nil, []string{"a\x1b[31mb\nc"}, 2, "",
			"fieldstone: verify a\\x1b[31mb\\nc: no such file or directory\n"},
		{"quietly", nil, []string{"-q", "results/ckpt/step_9"}, 0, "", ""},
		{"quietly a bad one", nil, []string{"-q", "results/ckpt/step_40"}, 1, "",
			"fieldstone: verify results/ckpt/step_40: fields/T.bin: 184 bytes, the grid needs exactly 192\n"},
		{"without checksums", func(t *testing.T) { version1(t, "results/ckpt/step_10") }, []string{"results/ckpt/step_10"}, 0,
			"results/ckpt/step_10: good by size, it has no checksums (3 files, 596 B)\n", ""},
		{"without checksums, a field too long", func(t *testing.T) {
			version1(t, "results/ckpt/step_10")
			rewrite(t, "results/ckpt/step_10", "fields/T.bin", func(b []byte) []byte { return append(b, b...) })
		}, []string{"results/ckpt/step_10"}, 1,
			"results/ckpt/step_10: bad\n", "fieldstone: verify results/ckpt/step_10: fields/T.bin: 384 bytes, the grid needs exactly 192\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results(t)
			if c.prepare != nil {
				c.prepare(t)
			}
			got := run(t, append([]string{"verify"}, c.args...)...)
			if diff := cmp.Diff(outcome{c.status, c.out, c.errors}, got, cmp.AllowUnexported(outcome{})); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestVerifyJSON(t *testing.T) {
	results(t)
	version1(t, "results/ckpt/step_10")
	rewrite(t, "results/ckpt/step_9", "metadata.json", func(b []byte) []byte {
		return []byte(strings.Replace(string(b), `"format_version": 2`, `"format_version": 3`, 1))
	})
	reseal(t, "results/ckpt/step_9")
	o := mustRun(t, 2, "verify", "--json", "results/ckpt")
	golden(t, "verify.json", o.out)
}

func TestUnlistedFilesInJSON(t *testing.T) {
	dir := t.TempDir()
	sample{}.save(t, filepath.Join(dir, "b"))
	write(t, filepath.Join(dir, "b/fields/old.bin"), nil)
	want := []any{"fields/old.bin"}
	v := decodeJSON[map[string][]map[string]any](t, mustRun(t, 0, "verify", "--json", filepath.Join(dir, "b")))
	if d := cmp.Diff(want, v["bundles"][0]["unlisted"]); d != "" {
		t.Errorf("verify: -want +got:\n%s", d)
	}
	o := mustRun(t, 0, "show", "--json", filepath.Join(dir, "b"))
	if d := cmp.Diff(want, decodeJSON[map[string]any](t, o)["unlisted"]); d != "" || !strings.Contains(o.errors, "old.bin") {
		t.Errorf("show: -want +got:\n%s\nstandard error: %s", d, o.errors)
	}
}

// A bundle that OpenPFC's own writer made on three ranks.
func TestVerifyBundleOfAnotherWriter(t *testing.T) {
	const path = "../../../shared/cases/openpfc-v1-bundle"
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		t.Skip("the case is not part of the repository")
	}
	o := mustRun(t, 0, "verify", path)
	if !strings.Contains(o.out, "good by size, it has no checksums (3 files") {
		t.Errorf("verify: %s", o.out)
	}
	o = mustRun(t, 0, "diff", path, path)
	if !strings.Contains(o.out, "psi          equal") {
		t.Errorf("diff: %s", o.out)
	}
	s := decodeJSON[map[string]any](t, mustRun(t, 0, "show", "--json", path))
	for key, want := range map[string]any{
		"accepted_time": 12.375, "accepted_increment": 99.0, "method_identity": "etd1", "format_version": 1.0,
	} {
		if s[key] != want {
			t.Errorf("%s is %v, want %v", key, s[key], want)
		}
	}
}
