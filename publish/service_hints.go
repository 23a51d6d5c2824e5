package publish

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// warnConfig warns on rank 0 of a configuration that can hardly be meant: that nothing is
// ever saved shows too late otherwise.
func (s *Service) warnConfig() {
	if s.c.Rank() != 0 {
		return
	}
	for _, key := range s.cfg.misspelt {
		s.o.log.Warn("a key of the configuration is not one of the checkpoint service, and is ignored",
			"key", key, "meant", nearest(key, "checkpoint", "restart_from"))
	}
	k := s.cfg.Checkpoint
	switch {
	case k.Directory != "" && !k.ruled():
		s.o.log.Warn("no checkpoint is saved unless the program calls Save: none of checkpoint.every, checkpoint.every_seconds and checkpoint.on_signal says when",
			"directory", k.Directory)
	case k.Directory == "" && k.ruled():
		s.o.log.Warn("no checkpoint is saved: there is no checkpoint.directory")
	}
}

// meantLatest asks, in an error about a bundle that isn't there, whether "latest" was
// meant.
func meantLatest(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w%s", err, didYouMean(path, Latest))
	}
	return err
}

// didYouMean asks for the known word that is nearest to another one, if it is near.
func didYouMean(word string, known ...string) string {
	if near := nearest(word, known...); similar(word, near) {
		return fmt.Sprintf(" (did you mean %q?)", near)
	}
	return ""
}

func nearest(word string, known ...string) string {
	best, least := "", 0
	for _, k := range known {
		if d := distance(plain(word), plain(k)); best == "" || d < least {
			best, least = k, d
		}
	}
	return best
}

// similar reports whether a word is probably a misspelling of a known one.
func similar(word, known string) bool {
	return word != known && distance(plain(word), plain(known)) <= max(1, len(known)/4)
}

// plain is a word without case and separators.
func plain(word string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(word))
}

// distance is the number of letters that are to be put in, left out, replaced or
// exchanged with the next one to make one word of the other.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	const far = 1 << 20
	if len(x) > 100 || len(y) > 100 {
		return far
	}
	var before, last []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last = last, row
		row = make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}
