package record

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
)

// HashPrefix begins what is hashed. It names the version of the encoding.
const HashPrefix = "fieldstone-record-1\n"

// Hash returns the canonical hash of the record: the SHA-256 of [HashPrefix] and the
// record's encoding, as 64 lower-case hexadecimal digits. The package comment gives
// the encoding.
func (r Record) Hash() string { return Value{kind: Group, ref: r}.Hash() }

// Hash returns the canonical hash of a value, as [Record.Hash] does for records.
func (v Value) Hash() string {
	h := sha256.New()
	w := bufio.NewWriterSize(h, 1<<12)
	w.WriteString(HashPrefix)
	encode(w, v)
	w.Flush() // neither it nor the writes before can fail: a hash takes everything
	return hex.EncodeToString(h.Sum(nil))
}

// WriteCanonical writes the canonical encoding of the record, which is what is hashed
// after [HashPrefix].
func (r Record) WriteCanonical(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<12)
	encode(b, Value{kind: Group, ref: r})
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write canonical record: %w", err)
	}
	return nil
}

// Hashes returns a record with the hash of each of the named sections, which are
// keys of r: the setup hash of a run is the hash of that record. The error matches
// [ErrMissing] if r lacks a section, and [ErrDuplicate] if one is named twice.
func Hashes(r Record, sections ...string) (Record, error) {
	var b Builder
	for _, section := range sections {
		v, ok := r.at(section)
		if !ok {
			return Record{}, fmt.Errorf("hash sections: %w", &PathError{Path: section, At: section, Err: ErrMissing})
		}
		b.Text(section, v.Hash())
	}
	hashes, err := b.Build()
	if err != nil {
		return Record{}, fmt.Errorf("hash sections: %w", err)
	}
	return hashes, nil
}

// encode writes the canonical encoding of a value. The writer keeps the error.
func encode(w *bufio.Writer, v Value) {
	switch v.kind {
	case Bool:
		w.WriteByte('b')
		w.WriteByte(byte(v.bits))
	case Int:
		w.WriteByte('i')
		encodeWord(w, v.bits)
	case Uint:
		w.WriteByte('u')
		encodeWord(w, v.bits)
	case Float:
		w.WriteByte('f')
		encodeWord(w, float64Bits(v.float()))
	case Text:
		w.WriteByte('s')
		encodeText(w, v.text())
	case Texts:
		w.WriteByte('S')
		encodeLength(w, len(v.texts()))
		for _, s := range v.texts() {
			encodeText(w, s)
		}
	case Numbers:
		encodeArray(w, v.array())
	case Arrays:
		w.WriteByte('A')
		encodeLength(w, len(v.arrays()))
		for _, a := range v.arrays() {
			encodeArray(w, a)
		}
	case Group:
		encodeRecord(w, v.record())
	case Records:
		w.WriteByte('R')
		encodeLength(w, len(v.list().entries))
		for _, r := range v.list().entries {
			encodeRecord(w, r)
		}
	}
}

func encodeRecord(w *bufio.Writer, r Record) {
	w.WriteByte('r')
	encodeLength(w, r.Len())
	keys := r.Keys()
	slices.Sort(keys)
	for _, key := range keys {
		encodeText(w, key)
		v, _ := r.at(key)
		encode(w, v)
	}
}

func encodeArray(w *bufio.Writer, a Array) {
	w.WriteByte('a')
	w.WriteString(elementTypes[a.Type()].code)
	encodeLength(w, a.Rank())
	for _, d := range a.shape() {
		encodeLength(w, d)
	}
	const chunk = 1 << 9
	s := a.store()
	buf := make([]byte, 0, min(s.length(), chunk)*a.Type().Size())
	for from := 0; from < s.length(); from += chunk {
		buf = s.appendBytes(buf[:0], from, min(from+chunk, s.length()))
		w.Write(buf)
	}
}

func encodeText(w *bufio.Writer, s string) {
	encodeLength(w, len(s))
	w.WriteString(s)
}

func encodeLength(w *bufio.Writer, n int) { encodeWord(w, uint64(n)) }

func encodeWord(w *bufio.Writer, bits uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], bits)
	w.Write(word[:])
}
