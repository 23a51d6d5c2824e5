package record_test

import (
	"bytes"
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

// Whatever the text, ParseJSON refuses it or gives a record whose JSON view gives the
// same record, within a memory that the text bounds.
func FuzzParseJSON(f *testing.F) {
	for _, r := range []record.Record{sample(f), {}} {
		text, err := r.MarshalJSON()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Add([]byte(`{"k":{"/array":"int8","dims":[4294967296,4294967296],"values":[]}}`), false)
	f.Add([]byte(`{"k":{"/array":"float32","dims":[0,9223372036854775807],"values":[]}}`), false)
	f.Add([]byte(`{"1":{"/records":[{"name":"order"}]},"k":-0.0e1}`), true)
	f.Fuzz(func(t *testing.T, text []byte, anyKeys bool) {
		var options []record.Option
		if anyKeys {
			options = append(options, record.AnyKeys())
		}
		r, err := record.ParseJSON(text, options...)
		if err != nil {
			if r.Len() != 0 {
				t.Errorf("an error and a record: %v", err)
			}
			return
		}
		if err := r.Writable(); err != nil && !anyKeys {
			t.Errorf("not writable: %v", err)
		}
		view, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		// Floats gain a point or digits and characters are escaped; nothing else grows.
		if len(view) > 100+40*len(text) {
			t.Errorf("%d bytes became %d", len(text), len(view))
		}
		back, err := record.ParseJSON(view, options...)
		if err != nil {
			t.Fatalf("%v of %s", err, view)
		}
		if !back.Equal(r) || back.Hash() != r.Hash() || len(record.Diff(r, back)) != 0 {
			t.Errorf("differences %v after %s", record.Diff(r, back), view)
		}
		again, err := back.MarshalJSON()
		if err != nil || !bytes.Equal(again, view) {
			t.Errorf("the view of %s is %s, %v", view, again, err)
		}
		if r.String() == "" && r.Len() > 0 {
			t.Error("no text")
		}
	})
}
