package publish

import (
	"io/fs"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/comm"
)

// warnings are the lines of a log that warn.
func warnings(log *logs) (list []string) {
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "level=WARN") {
			list = append(list, line)
		}
	}
	return list
}

// That nothing will ever be saved is said once, at the start.
func TestAStartWarnsWhenNothingIsSaved(t *testing.T) {
	for text, want := range map[string]string{
		`{"checkpoints": {"every": 10, "directory": "/data/ckpt"}}`: "key=checkpoints meant=checkpoint",
		`{"Checkpoint": {"every": 10}}`:                             "key=Checkpoint meant=checkpoint",
		`{"check_point": 1}`:                                        "key=check_point meant=checkpoint",
		`{"chekcpoint": {}}`:                                        "key=chekcpoint meant=checkpoint",
		`{"restart-from": "latest", "checkpoint": {"every": 1, "directory": "/data/ckpt"}}`:       "key=restart-from meant=restart_from",
		`{"checkpoint": {"directory": "/data/ckpt"}}`:                                             "says when",
		`{"checkpoint": {"directory": "/data/ckpt", "every": 0, "every_seconds": -1, "keep": 2}}`: "says when",
		`{"checkpoint": {"every": 10}}`:                                                           "no checkpoint.directory",
		`{"checkpoint": {"on_signal": ["SIGTERM"]}}`:                                              "no checkpoint.directory",

		`{}`:                                   "",
		`{"checkpoint": {}, "checkpoints": 3}`: "",
		`{"check": 1, "restart": 2, "points": 3}`:                              "",
		`{"checkpoint": {"keep": 3}, "output": 1}`:                             "",
		`{"checkpoint": {"every": 10, "directory": "/data/ckpt"}}`:             "",
		`{"checkpoint": {"every_seconds": 10, "directory": "/data/ckpt"}}`:     "",
		`{"checkpoint": {"on_signal": ["SIGINT"], "directory": "/data/ckpt"}}`: "",
	} {
		cfg, err := ParseConfig([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		var log logs
		if err := withService(t, newFS(t), 2, cfg, &log, steps(10)); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := warnings(&log)
		if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], want)) {
			t.Errorf("%s: warnings %q, want one with %q", text, got, want)
		}
	}
}

func TestMisspeltKeysAndWordsGetASuggestion(t *testing.T) {
	for text, want := range map[string]string{
		`{"checkpoint": {"evry": 1}}`:         `checkpoint.evry: unknown key (did you mean "every"?)`,
		`{"checkpoint": {"Every": 1}}`:        `(did you mean "every"?)`,
		`{"checkpoint": {"every_second": 1}}`: `(did you mean "every_seconds"?)`,
		`{"checkpoint": {"onsignal": 1}}`:     `(did you mean "on_signal"?)`,
		`{"checkpoint": {"waitseconds": 1}}`:  `(did you mean "wait_seconds"?)`,
		`{"checkpoint": {"dir": 1}}`:          "unknown key (known are",
	} {
		if _, err := ParseConfig([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	for from, want := range map[string]string{
		"lastest":         `no such file or directory (did you mean "latest"?)`,
		"Latest":          `(did you mean "latest"?)`,
		"step_10":         "no such file or directory",
		"results/lastest": "no such file or directory",
	} {
		err := newService(t, newFS(t), 2, unwaiting(from))
		wantError(t, err, fs.ErrNotExist, "restart: ", from, want)
		if !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want an end of %q", from, err, want)
		}
	}
	// A bundle may have any name.
	fsys := newFS(t)
	if err := saveStep(t, fsys, 1, "/data", 1); err != nil {
		t.Fatal(err)
	}
	named, err := filepath.Abs("lastest")
	if err != nil {
		t.Fatal(err)
	}
	if err := (checkpoints{o: &options{fs: fsys, log: silent}}).makeDir(filepath.Dir(named)); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Rename("/data/step_1", named); err != nil {
		t.Fatal(err)
	}
	if err := newService(t, fsys, 2, unwaiting("lastest")); err != nil {
		t.Errorf("a bundle of that name: %v", err)
	}
}

// Forgotten fields of a bundle are named, once.
func TestFieldsThatNobodyWantsAreNamed(t *testing.T) {
	fsys := newFS(t)
	if err := saveStep(t, fsys, 2, "/data", 10); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]Option{nil, {InPlace()}} {
		for wanted, want := range map[string]string{"phi T": "", "phi": "[T]", "T": "[phi]"} {
			var log logs
			err := onRanks(t, 3, func(c *comm.Comm) error {
				s, err := newTestSolver(c, 1, strings.Fields(wanted)...)
				if err != nil {
					return err
				}
				opts := append([]Option{Filesystem(fsys), Logger(slog.New(slog.NewTextHandler(&log, nil)))}, opts...)
				_, err = LoadBundle(t.Context(), c, "/data/step_10", Request{Fields: s.named()}, opts...)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			got := warnings(&log)
			if want == "" && len(got) > 0 || want != "" && (len(got) != 1 || !strings.Contains(got[0], "fields="+want) || !strings.Contains(got[0], "/data/step_10")) {
				t.Errorf("with %s wanted: %q, want one with %s", wanted, got, want)
			}
		}
	}
}

// A link whose target was purged, or isn't mounted, is told from a bundle that isn't
// there, and never passed over.
func TestALinkToNothingIsNamedAsSuch(t *testing.T) {
	base := newFS(t)
	if err := withService(t, base, 2, unwaiting(""), nil, steps(10, 20)); err != nil {
		t.Fatal(err)
	}
	if err := base.Symlink("/gone/step_40", "/data/ckpt/step_40"); err != nil {
		t.Fatal(err)
	}
	before := base.Dump()
	for _, from := range []string{Latest, "/data/ckpt/step_40", "/data/ckpt/step_10"} {
		wantError(t, newService(t, base, 2, unwaiting(from)), fs.ErrNotExist,
			"/data/ckpt/step_40 is a link to nothing", "purged", "mounted", "remove the link")
	}
	sameFiles(t, base, before)
	// Saving goes on below it, and removal past it.
	cfg := unwaiting("")
	cfg.Checkpoint.Keep, cfg.Checkpoint.Superseded = 1, SetAside
	wantError(t, newService(t, base, 2, cfg), fs.ErrNotExist, "step_40 is a link to nothing")

	// So is a directory of which only the link is there, for those who read and who write.
	if err := base.Symlink("/gone", "/data/scratch"); err != nil {
		t.Fatal(err)
	}
	for _, every := range []int64{0, 10} {
		cfg := unwaiting(Latest)
		cfg.Checkpoint.Directory, cfg.Checkpoint.Every = "/data/scratch", every
		wantError(t, newService(t, base, 2, cfg), fs.ErrNotExist, "/data/scratch is a link to nothing")
	}
	if err := saveWith(t, base, 2, "/data/scratch/step_1", nil); err == nil || !strings.Contains(err.Error(), "/data/scratch is a link to nothing") {
		t.Errorf("a bundle in it: %v", err)
	}
}
