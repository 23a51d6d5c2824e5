package record_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/fieldstone-io/fieldstone/record"
)

func ExampleBuilder() {
	b := record.NewBuilder()
	b.Section("solver", func(b *record.Builder) {
		b.Text("type", "newton").Int("iterations", 20)
		b.Section("linear", func(b *record.Builder) {
			b.Float("tolerance", 1e-8)
		})
	})
	b.Section("system", func(b *record.Builder) {
		b.Entry("terms", "diffusion", func(b *record.Builder) { b.Bool("implicit", true) })
		b.Entry("terms", "source", func(b *record.Builder) { b.Floats("samples", []float64{0, 0.5, 1}) })
	})
	settings, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(settings)

	tolerance, err := settings.Float("solver/linear/tolerance")
	fmt.Println(tolerance, err)
	_, err = settings.Float("solver/iterations")
	fmt.Println(err)
	_, err = settings.Float("solver/nonlinear/tolerance")
	fmt.Println(err, errors.Is(err, record.ErrMissing))
	// Output:
	// solver:
	//   type: "newton"
	//   iterations: 20
	//   linear:
	//     tolerance: 1e-08
	// system:
	//   terms: 2 records
	//     diffusion:
	//       name: "diffusion"
	//       implicit: true
	//     source:
	//       name: "source"
	//       samples: float64[3] 0.0 0.5 1.0
	// 1e-08 <nil>
	// record entry solver/iterations: is the integer 20, not a float
	// record entry solver/nonlinear/tolerance (at solver/nonlinear): missing true
}

func ExampleBuilder_Build() {
	b := record.NewBuilder()
	b.Section("limits", func(b *record.Builder) {
		b.Float("r/a", 0.9)
		b.Floats("faces", []float64{1, 2, 3}, 2, 2)
	})
	b.Int("steps", 10).Int("steps", 20)
	_, err := b.Build()
	fmt.Println(err)
	// Output:
	// build record: entry limits/r/a: invalid key: it contains '/'
	// build record: entry limits/faces: invalid value: 3 values don't fill the dimensions [2 2]
	// build record: entry steps = 20: duplicate: the record has the key already
}

// The order of keys doesn't matter, the type of a number does.
func ExampleRecord_Hash() {
	a, _ := record.Of("steps", 10, "length", 0.5)
	b, _ := record.Of("length", 0.5, "steps", 10)
	c, _ := record.Of("length", 0.5, "steps", 10.0)
	fmt.Println(a.Hash())
	fmt.Println(a.Hash() == b.Hash(), a.Hash() == c.Hash())
	// Output:
	// 0711788d7f506605a1aa3b23771fb09b57b9af8f5c54cabfcd02f4e189937989
	// true false
}

func ExampleHashes() {
	settings, _ := record.Of(
		"solver", record.Record{},
		"time", []float64{0, 1, 2},
		"code", "not part of the setup",
	)
	hashes, err := record.Hashes(settings, "solver", "time")
	fmt.Println(hashes.Keys(), err)
	fmt.Println("setup hash", hashes.Hash())
	// Output:
	// [solver time] <nil>
	// setup hash c729c321d9104851bc9a2615f82987af69c34ef1fd28ee39c318ecf95e3b3e9e
}

func ExampleRecord_MarshalJSON() {
	matrix, err := record.NewArray([]float32{1, 2, 3, 4.5}, 2, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, _ := record.Of("steps", 10, "length", 1.0, "limit", math.Inf(1), "matrix", matrix, "names", []string{"phi"})
	text, err := json.Marshal(r)
	fmt.Println(string(text), err)

	back, err := record.ParseJSON(text)
	fmt.Println(back.Equal(r), err)
	// Output:
	// {"steps":10,"length":1.0,"limit":{"/float":"Infinity"},"matrix":{"/array":"float32","dims":[2,2],"values":[1.0,2.0,3.0,4.5]},"names":["phi"]} <nil>
	// true <nil>
}

func ExampleDiff() {
	a, _ := record.Of("tolerance", 1e-6, "type", "newton", "times", []float64{0, 1, 2})
	b, _ := record.Of("type", "newton", "tolerance", 1e-8, "times", []float64{0, 1, 2.5}, "restarts", 3)
	for _, d := range record.Diff(a, b) {
		fmt.Println(d)
	}
	// Output:
	// tolerance: value: 1e-06 -> 1e-08
	// times: value: 2.0 -> 2.5 at [2], the first of 1
	// restarts: only in B: 3
}

// An entry that may be absent has a default; one of the wrong type is an error.
func ExampleDefault() {
	r, _ := record.Of("lower_limit_tolerance", 1e-3)
	tolerance, err := record.Default(r.Float, "lower_limit_tolerance", 0)
	fmt.Println(tolerance, err)
	value, err := record.Default(r.Float, "lower_limit_value", 0)
	fmt.Println(value, err)
	// Output:
	// 0.001 <nil>
	// 0 <nil>
}

// What lists hold is known by the values' types.
func ExampleValue_Any() {
	faces, _ := record.NewArray([]float64{0, 1})
	r, _ := record.Of("steps", 10, "names", []string{}, "faces", []record.Array{faces})
	for key, v := range r.All() {
		switch v := v.Any().(type) {
		case int64:
			fmt.Println(key, "is an integer:", v)
		case []string:
			fmt.Println(key, "is a list of", len(v), "texts")
		case []record.Array:
			fmt.Println(key, "is a list of", len(v), "arrays:", v[0])
		}
	}
	// Output:
	// steps is an integer: 10
	// names is a list of 0 texts
	// faces is a list of 1 arrays: float64[2] 0.0 1.0
}
