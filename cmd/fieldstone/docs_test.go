package main

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var cliPage, runPage = page("cli.md"), page("cli-run-files.md")

func page(name string) string {
	path, err := filepath.Abs("../../docs/" + name)
	if err != nil {
		panic(err)
	}
	return path
}

// The examples of docs/cli.md are what the tool writes: each block of console
// output is made again.
func TestExamplesOfTheDocumentation(t *testing.T) {
	results(t)
	sample{increment: 20, fields: []sampleField{
		{"phi", func(cell int) float64 {
			if cell == 17 {
				return 4.25 + 1e-12
			}
			return float64(cell) / 4
		}},
		{"T", func(cell int) float64 { return -1 - float64(cell) }},
	}}.save(t, "other/step_20")

	checkExamples(t, cliPage, 8)
}

// sizes are those of files, which HDF5 lays out as its release likes.
var sizes = regexp.MustCompile(` *[0-9.]+ [KM]iB| *[0-9]+ B\b`)

// checkExamples makes the console output on a page again, at least some commands. The
// sizes of run files play no part.
func checkExamples(t *testing.T, path string, least int) {
	t.Helper()
	page := string(read(t, path))
	var made strings.Builder
	rest, commands := page, 0
	for {
		const begin, end = "```console\n", "```\n"
		before, after, ok := strings.Cut(rest, begin)
		made.WriteString(before)
		if !ok {
			break
		}
		block, after, ok := strings.Cut(after, end)
		if !ok {
			t.Fatal("a block has no end")
		}
		made.WriteString(begin)
		for line := range strings.Lines(block) {
			if command, ok := strings.CutPrefix(line, "$ fieldstone "); ok {
				made.WriteString(line + example(t, strings.TrimSpace(command)))
				commands++
			}
		}
		made.WriteString(end)
		rest = after
	}
	if commands < least {
		t.Errorf("%s has %d examples", path, commands)
	}
	want, got := page, made.String()
	if path == runPage {
		want, got = sizes.ReplaceAllString(want, "SIZE"), sizes.ReplaceAllString(got, "SIZE")
	}
	if *update {
		write(t, path, []byte(made.String()))
	} else if got != want {
		t.Errorf("the examples of %s are not what the tool writes (rewrite them with -update):\n%s", path, made.String())
	}
}

// example runs a command line without quotes, and writes what a terminal shows.
// "; echo $?" behind it shows the exit status too.
func example(t *testing.T, command string) string {
	t.Helper()
	command, status := strings.CutSuffix(command, "; echo $?")
	o := run(t, strings.Fields(command)...)
	shown := o.errors + o.out
	if status {
		shown += fmt.Sprintln(o.status)
	}
	return shown
}

// Every key of the JSON outputs is described.
func TestJSONKeysAreDocumented(t *testing.T) {
	results(t)
	checkKeys(t, cliPage, [][]string{
		{"show", "--json", "--stats", "results/ckpt"}, {"ls", "--json", "results/ckpt"}, {"verify", "--json", "results/ckpt"},
		{"diff", "--json", "--metadata", "--sidecar", "results/ckpt/step_9", "results/ckpt/step_30"}, {"version", "--json"},
		{"diff", "--json", "--rtol", "1", "results/ckpt/step_9", "results/ckpt/step_30"}, {"diff", "--json", "results/ckpt", "results/ckpt"},
	})
}

// checkKeys looks on a page for every key that some commands write.
func checkKeys(t *testing.T, path string, commands [][]string) {
	t.Helper()
	page := string(read(t, path))
	for _, args := range commands {
		for key := range keysOf(decodeJSON[any](t, run(t, args...))) {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s: %s has no `%s`", strings.Join(args, " "), path, key)
			}
		}
	}
}

// Every command and every flag is on one of the pages.
func TestCommandsAndFlagsAreDocumented(t *testing.T) {
	pages := string(read(t, cliPage)) + string(read(t, runPage))
	var visit func(c *cobra.Command, path string)
	visit = func(c *cobra.Command, path string) {
		if path != "" && !strings.Contains(pages, "`"+path) && !strings.Contains(pages, "fieldstone "+path) {
			t.Errorf("the command %s is not documented", path)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !strings.Contains(pages, "--"+f.Name) && !strings.Contains(pages, "`-"+f.Shorthand) && !strings.Contains(pages, " -"+f.Shorthand+" ") {
				t.Errorf("the flag --%s of %s is not documented", f.Name, path)
			}
		})
		for _, sub := range c.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				visit(sub, strings.TrimSpace(path+" "+sub.Name()))
			}
		}
	}
	visit(newRoot(&app{out: bufio.NewWriter(io.Discard), err: io.Discard}), "")
}

func keysOf(v any) map[string]bool {
	keys := make(map[string]bool)
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, member := range v {
				if key == "boundary_conditions" {
					continue // below it are the keys of the solver
				}
				keys[key] = true
				if key == "segment" || key == "bundles" && len(v) > 2 {
					continue // below it are those of the settings, and names of fields
				}
				visit(member)
			}
		case []any:
			for _, element := range v {
				visit(element)
			}
		}
	}
	visit(v)
	return keys
}
