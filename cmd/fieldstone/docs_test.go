package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

var cliPage = func() string {
	path, err := filepath.Abs("../../docs/cli.md")
	if err != nil {
		panic(err)
	}
	return path
}()

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

	page := string(read(t, cliPage))
	var made strings.Builder
	rest, blocks := page, 0
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
				blocks++
			}
		}
		made.WriteString(end)
		rest = after
	}
	if blocks < 8 {
		t.Errorf("the page has %d examples", blocks)
	}
	if *update {
		write(t, cliPage, []byte(made.String()))
	} else if made.String() != page {
		t.Errorf("the examples of docs/cli.md are not what the tool writes (rewrite them with -update):\n%s", made.String())
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
	page := string(read(t, cliPage))
	for _, args := range [][]string{
		{"show", "--json", "--stats", "results/ckpt"}, {"ls", "--json", "results/ckpt"}, {"verify", "--json", "results/ckpt"},
		{"diff", "--json", "--metadata", "--sidecar", "results/ckpt/step_9", "results/ckpt/step_30"}, {"version", "--json"},
	} {
		for key := range keysOf(decodeJSON[any](t, run(t, args...))) {
			if !strings.Contains(page, "`"+key+"`") {
				t.Errorf("%s: docs/cli.md has no `%s`", strings.Join(args, " "), key)
			}
		}
	}
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
