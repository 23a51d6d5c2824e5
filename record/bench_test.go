package record_test

import (
	"testing"

	"github.com/fieldstone-io/fieldstone/record"
)

func BenchmarkHash(b *testing.B) {
	values := make([]float64, 1<<17)
	for i := range values {
		values[i] = float64(i) / 3
	}
	r := mustOf(b, "samples", values)
	b.SetBytes(int64(8 * len(values)))
	for b.Loop() {
		r.Hash()
	}
}

func BenchmarkJSON(b *testing.B) {
	r := mustOf(b, "solver", sample(b), "other", sample(b))
	text, err := r.MarshalJSON()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("marshal", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := r.MarshalJSON(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := record.ParseJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
