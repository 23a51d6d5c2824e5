package runfile

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/fieldstone-io/fieldstone/internal/h5"
	"github.com/fieldstone-io/fieldstone/pack"
	"github.com/fieldstone-io/fieldstone/record"
)

// ErrChecksum says that values of a file are not those that were written: their checksum
// is another one than the file has of them.
var ErrChecksum = errors.New("the checksum does not match")

// The group of checksums, which is beside the records and groups that other readers know.
// docs/run-file-format.md says what is in it.
const (
	sumsGroup          = "checksums"
	algorithmAttribute = "algorithm"
	sumsAlgorithm      = "CRC-64/NVME"

	stateSumsPath      = sumsGroup + "/states"
	stateNamesPath     = sumsGroup + "/state_datasets"
	fieldSumsGroup     = sumsGroup + "/fields"
	statisticSumsPath  = sumsGroup + "/statistics"
	statisticRowsPath  = sumsGroup + "/statistics_rows"
	statisticNamesPath = sumsGroup + "/statistics_datasets"
	recordSumsPath     = sumsGroup + "/records"
	recordNamesPath    = sumsGroup + "/record_paths"
)

var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// sumFloats continues a checksum with numbers as files have them.
func sumFloats(crc uint64, v []float64) uint64 {
	if littleEndian {
		return pack.Update(crc, pack.Bytes(v))
	}
	var b []byte
	for part := range slices.Chunk(v, 512) {
		b, _ = binary.Append(b[:0], binary.LittleEndian, part) // floats always have a size
		crc = pack.Update(crc, b)
	}
	return crc
}

// sumNumbers is the checksum of numbers or booleans as files have them.
func sumNumbers[T h5.Element](v []T) uint64 {
	if floats, ok := any(v).([]float64); ok {
		return sumFloats(0, floats)
	}
	b, _ := binary.Append(nil, binary.LittleEndian, v) // all elements have a size
	return pack.Sum(b)
}

// sumTexts is the checksum of texts, each with a NUL behind it.
func sumTexts(list []string) (crc uint64) {
	for _, s := range list {
		crc = pack.Update(crc, append([]byte(s), 0))
	}
	return crc
}

// sumWriter takes a checksum of what is written to it.
type sumWriter struct{ crc uint64 }

func (w *sumWriter) Write(b []byte) (int, error) {
	w.crc = pack.Update(w.crc, b)
	return len(b), nil
}

// sumRecord is the checksum of a record: that of its canonical encoding.
func sumRecord(r record.Record) uint64 {
	var w sumWriter
	_ = r.WriteCanonical(&w) // it takes everything
	return w.crc
}
