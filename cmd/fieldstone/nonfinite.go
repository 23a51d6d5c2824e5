package main

import (
	"fmt"
	"strings"

	"github.com/fieldstone-io/fieldstone/publish"
)

// nonFinite returns how many cells of fields are NaN or infinite, as the writer has
// counted them; nil if it hasn't.
func nonFinite(m publish.Metadata) map[string]int64 {
	if m.Writer == nil {
		return nil
	}
	return m.Writer.NonFinite
}

// notFinite names the fields with such cells, "" if there are none or nobody knows.
func notFinite(m publish.Metadata) string {
	var fields []string
	counts := nonFinite(m)
	for _, id := range m.Fields {
		if n := counts[id]; n > 0 {
			fields = append(fields, fmt.Sprintf("%s (%s)", id, count(n, "cell")))
		}
	}
	if fields == nil {
		return ""
	}
	return "NaN or infinite: " + strings.Join(fields, ", ")
}
