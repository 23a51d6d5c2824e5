// Package record holds typed records: ordered maps of plain values that describe a
// run, its unknowns and the state of its stepper, with a hash that is the same on
// every machine.
//
// A [Builder] makes a [Record] and collects all errors; accessors read it by path:
//
//	b := record.NewBuilder()
//	b.Text("type", "newton")
//	b.Section("linear", func(b *record.Builder) {
//		b.Float("tolerance", 1e-8)
//		b.Int("iterations", 200)
//	})
//	solver, err := b.Build()
//	...
//	tolerance, err := solver.Float("linear/tolerance")
//
// # Values
//
// A value is one of these. Package runfile writes each as the HDF5 object on the
// right, and reads it back as the same value:
//
//	bool     a boolean                           a byte with the attribute bool
//	int      an integer of 64 bits, with sign    a scalar dataset
//	uint     an integer from 2⁶³ to 2⁶⁴-1        a scalar dataset
//	float    a float64                           a scalar dataset
//	text     UTF-8 without NUL                   a scalar dataset
//	texts    a list of texts                     a dataset of rank 1
//	array    numbers of one type, rank 1 to 32   a dataset
//	arrays   a list of arrays                    a group of datasets 1, 2, ...
//	record   a record                            a group
//	records  a list of records, each with a      a group of groups by name, with
//	         text "name", unique in the list     the dataset order
//
// The integer 1, the float 1 and true are three values; so are the elements' types of
// an array. An empty list is a value too, and another one than an empty list of
// another kind. The keys that a record may have are those of [CheckKey].
//
// Two values are equal if they have the same kind and content. Floats are compared by
// their bits, so that 0 and -0 differ, but all NaN are one. The order of keys is kept
// for people and plays no part in a comparison; lists are in order.
//
// # Immutability and concurrency
//
// Records, values and arrays never change: what is given to them and what they return
// are copies. Several goroutines may use them at once. A Builder belongs to one.
//
// # The hash
//
// [Record.Hash] is the SHA-256 of the 20 bytes "fieldstone-record-1\n" and the
// encoding of the record, in lower-case hexadecimal. In the encoding a word is 8 bytes
// in little-endian order, a length is a word, and a string is its length in bytes and
// its bytes in UTF-8. A value begins with one ASCII letter:
//
//	bool     b  one byte, 0 or 1
//	int      i  a word, in two's complement
//	uint     u  a word; only for integers from 2⁶³ on
//	float    f  a word, the bits of the float64; of every NaN 7ff8000000000000
//	text     s  a string
//	texts    S  the number of strings, the strings
//	array    a  two letters for the element type: i1 i2 i4 i8 u1 u2 u4 u8 f4 f8
//	            the rank, the dimensions in C order
//	            the elements in C order, little-endian; NaN of f4 as 7fc00000
//	arrays   A  the number of arrays, the arrays, each from its letter a on
//	record   r  the number of keys; for each key, sorted by its bytes,
//	            the key as a string and the value
//	records  R  the number of records, the records, each from its letter r on
//
// No encoding is the beginning of another, so records are equal exactly if their
// encodings are. The page docs/record-hash.md has examples byte by byte, and
// testdata/vectors.json records with their hashes. [Hashes] hashes the sections of a
// record; the setup hash of a run is the hash of its result.
//
// # JSON
//
// [Record.MarshalJSON] and [ParseJSON] convert a record to JSON and back without loss:
//
//	bool     true, false
//	int      1                      a number without point and exponent
//	uint     9223372036854775808    likewise
//	float    1.0, 2.5e-07           a number with a point or an exponent
//	         {"/float":"NaN"}       also Infinity and -Infinity
//	text     "a text"
//	texts    ["a","b"]
//	array    {"/array":"float64","dims":[2,1],"values":[1.0,"NaN"]}
//	arrays   {"/arrays":[{"/array":...},...]}
//	record   {"key":...}            keys in order
//	records  {"/records":[{"name":...},...]}
//
// No key of a record contains '/', so the marks can't be mistaken for keys.
// [Record.String] and [Record.WriteText] are for people, and [Diff] tells in which
// entries two records differ.
package record
