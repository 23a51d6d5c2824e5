// Package excerpt keeps a long or hostile string from filling a message.
package excerpt

import "unicode/utf8"

// Of returns s if it has at most so many bytes. Otherwise it returns the whole characters
// among the first ones, and the mark.
func Of(s string, most int, mark string) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && cut > most-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
