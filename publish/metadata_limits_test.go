package publish

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/vfs"
)

// manyFields are ids of so many fields.
func manyFields(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("field %d", i)
	}
	return ids
}

// Metadata that would take seconds to read are refused soon, by the file that they are in.
func TestMetadataOfTooManyKeysAreRefused(t *testing.T) {
	m := Metadata{Domain: testDomain, Fields: []string{"a"}}
	text, err := EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.TrimSuffix(strings.TrimSpace(string(text)), "}")
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"k%d":1`, i)
		}
		return b.String()
	}
	for _, extra := range map[string]string{
		"keys":             keys(maxMetadataStrings),
		"keys of objects":  `,"x":[` + strings.Repeat(`{"":0},`, maxMetadataStrings) + `0]`,
		"strings":          `,"x":[` + strings.Repeat(`"",`, maxMetadataStrings) + `0]`,
		"keys of a record": `,"boundary_conditions":[{"config":{"a":1` + keys(maxMetadataStrings) + `},"state":null}]`,
	} {
		fsys := newFS(t)
		if err := errors.Join(fsys.Mkdir("/data/b", 0o777), vfs.WriteFile(fsys, "/data/b/metadata.json", []byte(whole+extra+"}"), 0o666, true)); err != nil {
			t.Fatal(err)
		}
		_, _, err := readMetadata(fsys, "/data/b")
		wantError(t, err, ErrDamaged, "/data/b/metadata.json", fmt.Sprintf("more than %d keys and strings", maxMetadataStrings))
		wantError(t, err, ErrMetadata)
	}
	m.Fields = manyFields(maxFields + 1)
	_, err = EncodeMetadata(m)
	wantError(t, err, ErrMetadata, "fields: ", fmt.Sprint(maxFields))
}

// What can be written can be read, up to the last field.
func TestMetadataOfTheMostFieldsAreRead(t *testing.T) {
	m := Metadata{Domain: testDomain, Fields: manyFields(maxFields), Writer: &Writer{NonFinite: map[string]int64{}}}
	for _, id := range m.Fields {
		m.Writer.NonFinite[id] = 1
	}
	text, err := EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseMetadata(text)
	if err != nil || len(back.Fields) != maxFields || len(back.Writer.NonFinite) != maxFields {
		t.Errorf("%d fields, %v", len(back.Fields), err)
	}
}
