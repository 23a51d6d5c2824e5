package publish

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxChecksumsBytes is more than the lines of all fields whose ids fit into a
// metadata.json: the shortest id takes 9 bytes there and 29 here.
const maxChecksumsBytes = 4 * maxMetadataBytes

// The names in a bundle.
const (
	metadataFile  = "metadata.json"
	sidecarFile   = "sidecar.json"
	checksumsFile = "checksums.txt"
	fieldsDir     = "fields"
	fieldSuffix   = ".bin"
)

// fileChecksum is a line of checksums.txt.
type fileChecksum struct {
	Path string // relative to the bundle, with slashes
	CRC  uint64 // CRC-64/NVME of the whole file
}

// formatChecksums returns the content of checksums.txt: a line "<16 hex
// digits>  <relative path>" for each file. The lines are in the order given;
// writers give metadata.json, sidecar.json, then the fields in their order.
func formatChecksums(files []fileChecksum) []byte {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%016x  %s\n", f.CRC, f.Path)
	}
	return b.Bytes()
}

// parseChecksums reads the content of checksums.txt. It takes the lines in any
// order, but nothing else than formatChecksums writes: only files that a bundle
// can have, each once. Errors name the line.
func parseChecksums(data []byte) ([]fileChecksum, error) {
	if int64(len(data)) > maxChecksumsBytes {
		return nil, fmt.Errorf("%d bytes, at most %d are read", len(data), maxChecksumsBytes)
	}
	var files []fileChecksum
	seen := make(map[string]int)
	text := string(data)
	for line := 1; text != ""; line++ {
		one, rest, ended := strings.Cut(text, "\n")
		text = rest
		if !ended {
			return nil, fmt.Errorf("line %d: the end is missing", line)
		}
		f, err := parseChecksumLine(one)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", line, err)
		}
		if first, ok := seen[f.Path]; ok {
			return nil, fmt.Errorf("line %d: %q is listed on line %d already", line, shorten(f.Path), first)
		}
		seen[f.Path] = line
		files = append(files, f)
	}
	return files, nil
}

func parseChecksumLine(line string) (fileChecksum, error) {
	const digits = 16
	if len(line) < digits+2 || line[digits:digits+2] != "  " {
		return fileChecksum{}, errors.New("want 16 hexadecimal digits, two spaces and a path")
	}
	sum, path := line[:digits], line[digits+2:]
	for i := range len(sum) {
		if !strings.Contains("0123456789abcdef", sum[i:i+1]) {
			return fileChecksum{}, fmt.Errorf("%q is not a checksum of 16 lower-case hexadecimal digits", sum)
		}
	}
	crc, err := strconv.ParseUint(sum, 16, 64)
	if err != nil {
		return fileChecksum{}, err
	}
	if err := checkListedPath(path); err != nil {
		return fileChecksum{}, err
	}
	return fileChecksum{Path: path, CRC: crc}, nil
}

// checkListedPath keeps a listed path inside the bundle.
func checkListedPath(path string) error {
	if path == metadataFile || path == sidecarFile {
		return nil
	}
	id, ok := strings.CutPrefix(path, fieldsDir+"/")
	if ok {
		id, ok = strings.CutSuffix(id, fieldSuffix)
	}
	if !ok {
		return fmt.Errorf("%q is not the path of a bundle's file", shorten(path))
	}
	return CheckID(id)
}
