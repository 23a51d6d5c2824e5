package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/publish"
)

// documented are the command lines of a document, without the program's name.
func documented(t *testing.T, path string) (lines [][]string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("allencahn( -[^`\n]*)").FindAllStringSubmatch(string(text), -1) {
		lines = append(lines, strings.Fields(m[1]))
	}
	if lines == nil {
		t.Fatalf("%s has no command line", path)
	}
	return lines
}

// Whoever tries a command that a document shows has something to look at in the end: both
// phases. What takes a moment is run, on the host, which has the same bits as any device;
// of longer runs that begin with a sphere the formula says how large it is in the end.
func TestDocumentedCommandsEndWithAGrain(t *testing.T) {
	for path, small := range map[string]int{"../../docs/gpu.md": 2, "README.md": 0} {
		ran := 0
		for _, line := range documented(t, path) {
			set, err := parse(line, io.Discard)
			if err != nil {
				t.Errorf("%s: %q: %v", path, line, err)
				continue
			}
			cells := float64(set.grid[0]) * float64(set.grid[1]) * float64(set.grid[2])
			if cells*float64(set.steps) > 1e7 {
				if radius := set.radiusAtEnd(); set.start == startSphere && !(radius > 4*set.model.Width) {
					t.Errorf("%s: %q: the sphere ends with radius %v", path, line, radius)
				}
				continue
			}
			ran++
			set.device, set.progress = onHost, false
			set.saves = publish.Config{Checkpoint: publish.CheckpointConfig{Directory: filepath.Join(t.TempDir(), "out")}}
			runRanks(t, 1, set)
			low, high := 1.0, -1.0
			for _, bits := range read(t, set.bundle(set.steps)) {
				low, high = min(low, math.Float64frombits(bits)), max(high, math.Float64frombits(bits))
			}
			if low > -0.9 || high < 0.9 {
				t.Errorf("%s: %q: phi is from %v to %v in the end", path, line, low, high)
			}
		}
		if ran < small {
			t.Errorf("%s: %d command lines were run, want %d", path, ran, small)
		}
	}
}

// radiusAtEnd is that of a sphere which is large beside its interface; 0 if it is gone.
func (set settings) radiusAtEnd() float64 {
	radius := set.radius
	if radius == 0 {
		radius = 3 * set.model.Spacing * float64(min(set.grid[0], set.grid[1], set.grid[2])) / 8
	}
	time := float64(set.steps) * set.model.Step
	return math.Sqrt(max(0, radius*radius-4*set.model.Mobility*set.model.Kappa*time))
}
