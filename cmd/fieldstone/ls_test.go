package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/publish"
	"pgregory.net/rapid"
)

// Of runs, which have other commands, the names are listed.
func TestRunsInDirectories(t *testing.T) {
	results(t)
	for _, name := range []string{"decay.segment0001.h5", "decay.segment0002.h5", "decay.checkpoint.h5"} {
		write(t, "runs/"+name, nil)
	}
	see := "files of the run decay" + withHDF5(": see 'fieldstone segments runs decay'", "") + "\n"
	if o := mustRun(t, 0, "ls", "runs"); o.out != "no bundles\n"+see {
		t.Errorf("%s", o.out)
	}
	if o := mustRun(t, 2, "show", "runs"); o.errors != "fieldstone: show runs: no bundles, but "+see {
		t.Errorf("%s", o.errors)
	}
	write(t, "runs/growth.checkpoint.prev.h5", nil)
	seeAll := "files of the runs decay, growth" + withHDF5(": see 'fieldstone segments runs NAME'", "") + "\n"
	if o := mustRun(t, 0, "ls", "runs"); o.out != "no bundles\n"+seeAll {
		t.Errorf("%s", o.out)
	}
	if l := decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "runs")); !slices.Equal(l.Runs, []string{"decay", "growth"}) {
		t.Errorf("%v", l.Runs)
	}
	rename(t, "results/ckpt/step_20", "runs/step_20")
	if o := mustRun(t, 0, "ls", "runs"); !strings.HasSuffix(o.out, seeAll) || !strings.Contains(o.out, "step_20") {
		t.Errorf("%s", o.out)
	}
	if o := mustRun(t, 0, "show", "runs"); strings.Contains(o.out+o.errors, "decay") {
		t.Errorf("%s", o.out+o.errors)
	}
	if l := decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "results/ckpt")); l.Runs == nil || len(l.Runs) != 0 {
		t.Errorf("%v", l.Runs)
	}
}

func TestLsGolden(t *testing.T) {
	for _, c := range []struct {
		golden string
		args   []string
	}{
		{"ls.txt", []string{"ls", "results/ckpt"}},
		{"ls-verify.txt", []string{"ls", "--verify", "results/ckpt"}},
		{"ls.json", []string{"ls", "--json", "results/ckpt"}},
		{"ls-verify.json", []string{"ls", "--json", "--verify", "results/ckpt"}},
	} {
		t.Run(c.golden, func(t *testing.T) {
			results(t)
			o := mustRun(t, 0, c.args...)
			if o.errors != "" {
				t.Errorf("standard error: %s", o.errors)
			}
			golden(t, c.golden, o.out)
		})
	}
}

func TestLsListsTheCurrentDirectory(t *testing.T) {
	results(t)
	want := mustRun(t, 0, "ls", "results/ckpt").out
	t.Chdir("results/ckpt")
	if got := mustRun(t, 0, "ls").out; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestLsFailures(t *testing.T) {
	for _, c := range []struct{ name, path, errors string }{
		{"a bundle", "results/ckpt/step_9", "fieldstone: ls results/ckpt/step_9: is a bundle, not a directory of bundles (see 'fieldstone show')\n"},
		{"a file", "results/ckpt/notes.txt", "fieldstone: ls results/ckpt/notes.txt: not a directory\n"},
		{"nothing", "nowhere", "fieldstone: ls nowhere: no such file or directory\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			results(t)
			o := mustRun(t, 2, "ls", c.path)
			if o.errors != c.errors || o.out != "" {
				t.Errorf("%q and %q, want %q", o.out, o.errors, c.errors)
			}
		})
	}
}

func TestLsOfADirectoryWithoutBundles(t *testing.T) {
	t.Chdir(t.TempDir())
	if o := mustRun(t, 0, "ls"); o.out != "no bundles\n" {
		t.Errorf("%q", o.out)
	}
	l := decodeJSON[listing](t, mustRun(t, 0, "ls", "--json"))
	if len(l.Entries) != 0 || !l.Latest.Fresh || l.Latest.From != nil {
		t.Errorf("%+v", l)
	}
}

// A publication at work must be told from a dead one, without being disturbed.
func TestLsTellsWhetherLocksAreHeld(t *testing.T) {
	results(t)
	states := func() map[string]state {
		m := make(map[string]state)
		for _, e := range decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "results/ckpt")).Entries {
			m[e.Name] = e.State
		}
		return m
	}
	leftovers := []string{"step_60.publishing", "step_60.publishing.lock", "step_5.removing"}
	for _, name := range leftovers {
		if got := states()[name]; got != stateLeftover {
			t.Errorf("%s is %q before it is locked", name, got)
		}
	}
	var locks []vfs.Lock
	for _, step := range []string{"step_60", "step_5"} {
		lock, err := vfs.OS.Lock(filepath.Join("results/ckpt", step+lockSuffix))
		if err != nil {
			t.Fatal(err)
		}
		locks = append(locks, lock)
	}
	for _, name := range append(leftovers, "step_5.publishing.lock") {
		if got := states()[name]; got != stateInUse {
			t.Errorf("%s is %q while it is locked", name, got)
		}
	}
	text := mustRun(t, 0, "ls", "results/ckpt").out
	for _, want := range []string{
		"step_60.publishing       being published",
		"step_60.publishing.lock  in use",
		"step_5.removing          being removed",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, lock := range locks {
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	if got := states()["step_60.publishing"]; got != stateLeftover {
		t.Errorf("step_60.publishing is %q after the lock is gone", got)
	}
	if _, err := os.Lstat("results/ckpt/step_5.publishing.lock"); err == nil {
		t.Error("asking for the lock made its file")
	}
}

func TestLsSaysWhenALockCannotBeAsked(t *testing.T) {
	results(t)
	remove(t, "results/ckpt/step_60.publishing.lock")
	symlink(t, "step_60.publishing.lock", "results/ckpt/step_60.publishing.lock")
	for _, e := range decodeJSON[listing](t, mustRun(t, 0, "ls", "--json", "results/ckpt")).Entries {
		if e.Name == "step_60.publishing" && (e.State != stateUnknown || e.Error == nil) {
			t.Errorf("%+v, want an unknown state with an error", e)
		}
	}
}

// The target of a link may come back: nobody restarts from the bundle below meanwhile.
func TestLsSaysThatALinkLeadsToNothing(t *testing.T) {
	results(t)
	symlink(t, "/nowhere/step_70", "results/ckpt/step_70")
	out := mustRun(t, 0, "ls", "results/ckpt").out
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, `"latest" fails: step_70: is a link to nothing`) || !strings.Contains(last, "remove the link") {
		t.Errorf("the last line is %q", last)
	}
}

func TestLatestInLs(t *testing.T) {
	const guess = " (if its contents are good: --verify reads them)"
	version3 := func(t *testing.T, dir string) {
		rewrite(t, dir, "metadata.json", func(b []byte) []byte {
			return []byte(strings.Replace(string(b), `"format_version": 2`, `"format_version": 3`, 1))
		})
		reseal(t, dir)
	}
	gone := func(t *testing.T, dir string) { remove(t, filepath.Join(dir, "metadata.json")) }
	for _, c := range []struct {
		name    string
		prepare func(t *testing.T)
		args    []string
		want    string
	}{
		{"the highest increment", func(*testing.T) {}, nil, `"latest" restarts from step_20` + guess},
		{"verified", func(*testing.T) {}, []string{"--verify"}, `"latest" restarts from step_20`},
		{"damage is passed over", func(t *testing.T) { gone(t, "step_20") }, nil,
			`"latest" restarts from step_9, passing over step_20` + guess},
		{"damage that only checksums show", func(t *testing.T) { flip(t, "step_20", "fields/T.bin") }, []string{"--verify"},
			`"latest" restarts from step_9, passing over step_20`},
		{"the same, not looked at", func(t *testing.T) { flip(t, "step_20", "fields/T.bin") }, nil,
			`"latest" restarts from step_20` + guess},
		{"none is good", func(t *testing.T) { gone(t, "step_20"); gone(t, "step_9") }, nil,
			`"latest" fails: none of the 2 bundles is good`},
		{"the only one is not good", func(t *testing.T) { gone(t, "step_20"); remove(t, "step_9") }, nil,
			`"latest" fails: the only bundle is not good`},
		{"a later version is not passed over", func(t *testing.T) { version3(t, "step_20") }, nil,
			`"latest" fails: step_20: metadata.json: format_version: 3 is not supported (this reader knows 1 and 2)`},
		{"a later version below does not matter", func(t *testing.T) { version3(t, "step_9") }, nil,
			`"latest" restarts from step_20` + guess},
		{"other names do not count", func(t *testing.T) { remove(t, "step_9"); rename(t, "step_20", "twenty") }, nil,
			`"latest" starts afresh: there is no step_N`},
		{"what is set aside does not count", func(t *testing.T) { rename(t, "step_20", "step_20.superseded") }, nil,
			`"latest" restarts from step_9` + guess},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			sample{increment: 9}.save(t, "step_9")
			sample{increment: 20}.save(t, "step_20")
			c.prepare(t)
			lines := strings.Split(strings.TrimSpace(mustRun(t, 0, append([]string{"ls"}, c.args...)...).out), "\n")
			if got := lines[len(lines)-1]; got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestLsNotesABundleUnderAWrongName(t *testing.T) {
	t.Chdir(t.TempDir())
	sample{increment: 9}.save(t, "step_12")
	o := mustRun(t, 0, "ls")
	if want := "named step_12, but of increment 9"; !strings.Contains(o.out, want) {
		t.Errorf("no %q in\n%s", want, o.out)
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name, base string
		kind       kind
	}{
		{"step_40", "step_40", kindBundle},
		{"any name", "any name", kindBundle},
		{"step_40.damaged", "step_40", kindDamaged},
		{"step_40.damaged.2", "step_40", kindDamaged},
		{"step_40.superseded", "step_40", kindSuperseded},
		{"step_40.superseded.13", "step_40", kindSuperseded},
		{"step_40.publishing", "step_40", kindPublishing},
		{"step_40.publishing.lock", "step_40", kindLock},
		{"step_40.removing", "step_40", kindRemoving},
		{"step_40.publishing.0123456789abcdef0123456789abcdef", "step_40", kindPublishing},
		{"step_40.removing.0123456789abcdef0123456789abcdef", "step_40", kindRemoving},
		{"step_40.0123456789abcdef0123456789abcdef", "step_40.0123456789abcdef0123456789abcdef", kindBundle},
		{"run.2", "run.2", kindBundle},
		{"step_40.damaged.x", "step_40.damaged.x", kindBundle},
		{".damaged", ".damaged", kindBundle},
		{".publishing", ".publishing", kindBundle},
	} {
		t.Run(c.name, func(t *testing.T) {
			if base, kind := classify(c.name); base != c.base || kind != c.kind {
				t.Errorf("%q, %q; want %q, %q", base, kind, c.base, c.kind)
			}
		})
	}
}

func TestOrderOfEntries(t *testing.T) {
	want := []string{
		"step_100", "step_20", "step_20.superseded", "step_20.damaged", "step_20.damaged.2", "step_20.damaged.10",
		"step_20.publishing", "step_20.removing", "step_20.publishing.lock", "step_9", "a2", "a10", "b",
	}
	var entries []*entry
	for i := range want {
		// From an order that is wrong for names and for numbers.
		e := &entry{name: want[(i*5+3)%len(want)], step: -1}
		e.base, e.kind = classify(e.name)
		if n, ok := publish.ParseStepName(e.base); ok {
			e.step = n
		}
		entries = append(entries, e)
	}
	slices.SortFunc(entries, newestFirst)
	for i, e := range entries {
		if e.name != want[i] {
			t.Errorf("entry %d is %s, want %s", i, e.name, want[i])
		}
	}
}

func TestNamesAreInOneOrder(t *testing.T) {
	name := rapid.StringMatching(`[ab_0-2]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := name.Draw(t, "a"), name.Draw(t, "b"), name.Draw(t, "c")
		if compareNames(a, b) != -compareNames(b, a) {
			t.Errorf("%q and %q compare as %d and %d", a, b, compareNames(a, b), compareNames(b, a))
		}
		if (compareNames(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q compare as %d", a, b, compareNames(a, b))
		}
		if compareNames(a, b) < 0 && compareNames(b, c) < 0 && compareNames(a, c) >= 0 {
			t.Errorf("%q < %q < %q, but not the first before the last", a, b, c)
		}
	})
}
