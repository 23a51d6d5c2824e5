package publish

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fieldstone-io/fieldstone/comm"
	"github.com/fieldstone-io/fieldstone/field"
	"github.com/fieldstone-io/fieldstone/grid"
	"github.com/fieldstone-io/fieldstone/internal/vfs"
	"github.com/fieldstone-io/fieldstone/pack"
)

// testBundle describes a bundle that writeTestBundle makes without the protocol.
type testBundle struct {
	size        [3]int
	fields      []string
	value       func(field int, cell int64) float64
	sidecar     string
	noChecksums bool
}

func (tb testBundle) write(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "step_40")
	m := sampleMetadata()
	m.Domain.Size, m.Fields = tb.size, tb.fields
	text, err := EncodeMetadata(m)
	if err != nil {
		t.Fatal(err)
	}
	files := []struct {
		path string
		data []byte
	}{{metadataFile, text}}
	if tb.sidecar != "" {
		files = append(files, struct {
			path string
			data []byte
		}{sidecarFile, []byte(tb.sidecar)})
	}
	for f, id := range tb.fields {
		data := make([]byte, m.Domain.Cells()*8)
		for c := range m.Domain.Cells() {
			v := float64(c) + 0.25*float64(f)
			if tb.value != nil {
				v = tb.value(f, c)
			}
			binary.LittleEndian.PutUint64(data[8*c:], math.Float64bits(v))
		}
		files = append(files, struct {
			path string
			data []byte
		}{fieldPath(id), data})
	}
	if err := os.MkdirAll(filepath.Join(dir, fieldsDir), 0o777); err != nil {
		t.Fatal(err)
	}
	var sums []fileChecksum
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f.path), f.data, 0o666); err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fileChecksum{f.path, pack.Sum(f.data)})
	}
	if !tb.noChecksums {
		if err := os.WriteFile(filepath.Join(dir, checksumsFile), formatChecksums(sums), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func openTestBundle(t testing.TB, dir string) *Bundle {
	t.Helper()
	b, err := OpenBundle(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

var plainBundle = testBundle{size: [3]int{5, 4, 3}, fields: []string{"phi", "T µ"}, sidecar: `{"seed": 42}`}

func TestOpenBundle(t *testing.T) {
	dir := plainBundle.write(t)
	b := openTestBundle(t, dir)
	if b.Path() != dir || !b.HasChecksums() {
		t.Errorf("path %q, checksums %t", b.Path(), b.HasChecksums())
	}
	if d := cmp.Diff([]string{"phi", "T µ"}, b.Fields()); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if b.Metadata().AcceptedTime != 12.375 || b.Metadata().Domain.Size != [3]int{5, 4, 3} {
		t.Errorf("metadata %+v", b.Metadata())
	}
	if s, ok := b.Sidecar(); !ok || string(s) != `{"seed": 42}` {
		t.Errorf("sidecar %s, %t", s, ok)
	}
	section, err := b.Field("phi")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(section)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(dir, "fields", "phi.bin"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, file) {
		t.Error("the section isn't the file")
	}
	if crc, ok := b.Checksum("phi"); !ok || crc != pack.Sum(file) {
		t.Errorf("checksum %x, %t", crc, ok)
	}
	var total int64
	for _, f := range []string{metadataFile, sidecarFile, checksumsFile, "fields/phi.bin", "fields/T µ.bin"} {
		info, err := os.Stat(filepath.Join(dir, f))
		if err != nil {
			t.Fatal(err)
		}
		total += info.Size()
	}
	info, err := Inspect(dir)
	if err != nil || info.Bytes != total || !info.Checksums || !info.Sidecar || b.Info().Bytes != total {
		t.Errorf("got %+v, %v, want %d bytes", info, err, total)
	}
}

func TestOpenBundleWithoutChecksumsAndSidecar(t *testing.T) {
	dir := testBundle{size: [3]int{2, 1, 1}, fields: []string{"a"}, noChecksums: true}.write(t)
	b := openTestBundle(t, dir)
	if _, ok := b.Sidecar(); ok || b.HasChecksums() || b.Info().Checksums || b.Info().Sidecar {
		t.Errorf("got %+v", b.Info())
	}
	if _, ok := b.Checksum("a"); ok {
		t.Error("a checksum from nowhere")
	}
	if err := b.Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
	if err := os.Truncate(filepath.Join(dir, "fields", "a.bin"), 15); err != nil {
		t.Fatal(err)
	}
	if err := b.Verify(context.Background(), nil); !errors.Is(err, ErrDamaged) {
		t.Errorf("truncated: %v", err)
	}
}

// edit changes a file of a bundle; nil data removes it.
func edit(file string, change func(data []byte) []byte) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		path := filepath.Join(dir, filepath.FromSlash(file))
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if data = change(data); data == nil {
			err = os.Remove(path)
		} else {
			err = os.WriteFile(path, data, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func remove([]byte) []byte { return nil }

func flip(n int) func(data []byte) []byte {
	return func(data []byte) []byte { data[n] ^= 1; return data }
}

func instead(old, new string) func(data []byte) []byte {
	return func(data []byte) []byte {
		if !bytes.Contains(data, []byte(old)) {
			panic("nothing to replace")
		}
		return bytes.ReplaceAll(data, []byte(old), []byte(new))
	}
}

// resum changes the metadata, and their checksum with them.
func resum(change func([]byte) []byte) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) {
		var old, changed uint64
		edit(metadataFile, func(d []byte) []byte {
			old = pack.Sum(d)
			d = change(d)
			changed = pack.Sum(d)
			return d
		})(t, dir)
		edit(checksumsFile, instead(fmt.Sprintf("%016x", old), fmt.Sprintf("%016x", changed)))(t, dir)
	}
}

// structureDamages are seen without reading fields, contentDamages by Verify
// only.
var (
	structureDamages = []struct {
		name   string
		damage func(t *testing.T, dir string)
		file   string // "" where the error is none about a file
		want   string
		is     error
	}{
		{"a field is missing", edit("fields/phi.bin", remove), "fields/phi.bin", "the file is missing", fs.ErrNotExist},
		{"a field is too short", edit("fields/phi.bin", func(d []byte) []byte { return d[:479] }), "fields/phi.bin", "479 bytes, the grid needs exactly 480", ErrDamaged},
		{"a field is too long", edit("fields/T µ.bin", func(d []byte) []byte { return append(d, 0) }), "fields/T µ.bin", "481 bytes, the grid needs exactly 480", ErrDamaged},
		{"a field is empty", edit("fields/phi.bin", func(d []byte) []byte { return d[:0] }), "fields/phi.bin", "0 bytes", ErrDamaged},
		{"a digit of the time is flipped", edit(metadataFile, instead("12.375", "12.376")), metadataFile, "checksum differs", ErrChecksum},
		{"a blank in the metadata", edit(metadataFile, instead("12.375", " 12.375")), metadataFile, "checksum differs", ErrChecksum},
		{"the metadata are cut", edit(metadataFile, func(d []byte) []byte { return d[:100] }), metadataFile, "the text ends", ErrMetadata},
		{"a digit of the version is flipped", edit(metadataFile, instead(`"format_version": 2`, `"format_version": 3`)), metadataFile, "checksum differs", ErrChecksum},
		{"the metadata list a field more", resum(instead(`"phi",`, `"phi", "psi",`)), "fields/psi.bin", "the file is missing", ErrDamaged},
		{"the metadata list a field less", resum(instead(`"phi",`, ``)), checksumsFile, "fields/phi.bin is listed and is not a file of the bundle", ErrDamaged},
		{"the sidecar is gone", edit(sidecarFile, remove), sidecarFile, "the file is missing", fs.ErrNotExist},
		{"the checksums are cut", edit(checksumsFile, func(d []byte) []byte { return d[:len(d)-1] }), checksumsFile, "line 4: the end is missing", ErrDamaged},
		{"the checksums lack a line", edit(checksumsFile, func(d []byte) []byte { return d[:bytes.LastIndexByte(d[:len(d)-1], '\n')+1] }), checksumsFile, "fields/T µ.bin is not listed", ErrDamaged},
		{"the checksums are empty", edit(checksumsFile, func(d []byte) []byte { return []byte{} }), checksumsFile, "metadata.json is not listed", ErrDamaged},
		{"the checksum of the metadata is another", edit(checksumsFile, flip(0)), metadataFile, "checksum differs", ErrChecksum},
		{"the sidecar isn't listed", edit(checksumsFile, func(d []byte) []byte {
			lines := bytes.SplitAfter(d, []byte("\n"))
			return bytes.Join(slices.Delete(lines, 1, 2), nil)
		}), checksumsFile, "sidecar.json is not listed", ErrDamaged},
		{"the fields are gone", func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, fieldsDir)); err != nil {
				t.Fatal(err)
			}
		}, "fields", "the directory is missing", fs.ErrNotExist},
		{"the fields are elsewhere", func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, fieldsDir), dir+".elsewhere"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dir+".elsewhere", filepath.Join(dir, fieldsDir)); err != nil {
				t.Fatal(err)
			}
		}, "fields", "not a directory", ErrDamaged},
		{"a field is a link", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "fields", "phi.bin")
			if err := os.Rename(path, dir+".elsewhere"); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(dir+".elsewhere", path); err != nil {
				t.Fatal(err)
			}
		}, "fields/phi.bin", "not a regular file", ErrDamaged},
		{"a field is a pipe", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "fields", "phi.bin")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := mkfifo(path); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
		}, "fields/phi.bin", "not a regular file", ErrDamaged},
		{"the metadata are gone", edit(metadataFile, remove), "", "not a bundle: no metadata.json", ErrNotABundle},
		{"the version is another", resum(instead(`"format_version": 2`, `"format_version": 3`)), "", "format_version: 3 is not supported", ErrVersion},
	}
	contentDamages = []struct {
		name   string
		damage func(t *testing.T, dir string)
		file   string
	}{
		{"the first bit of a field", edit("fields/phi.bin", flip(0)), "fields/phi.bin"},
		{"the last bit of a field", edit("fields/T µ.bin", func(d []byte) []byte { d[len(d)-1] ^= 0x80; return d }), "fields/T µ.bin"},
		{"two fields are swapped", func(t *testing.T, dir string) {
			a, b, tmp := filepath.Join(dir, "fields", "phi.bin"), filepath.Join(dir, "fields", "T µ.bin"), filepath.Join(dir, "tmp")
			for _, r := range [][2]string{{a, tmp}, {b, a}, {tmp, b}} {
				if err := os.Rename(r[0], r[1]); err != nil {
					t.Fatal(err)
				}
			}
		}, "fields/phi.bin"},
		{"the recorded checksum of a field", edit(checksumsFile, func(d []byte) []byte {
			line := bytes.LastIndexByte(d[:len(d)-1], '\n') + 1
			if d[line] = '0'; bytes.HasPrefix(d[line:], []byte("00")) {
				d[line] = '1'
			}
			return d
		}), "fields/T µ.bin"},
	}
)

func checkDamage(t *testing.T, err error, dir, file, want string, is error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, is) {
		t.Errorf("got %v, want %q", err, want)
		return
	}
	var d *DamageError
	if errors.As(err, &d) != (file != "") || errors.Is(err, ErrDamaged) != (file != "") {
		t.Errorf("%v is a DamageError: %t", err, d != nil)
	}
	if file != "" && (d.Bundle != dir || d.File != file || !strings.Contains(err.Error(), filepath.Join(dir, file)+": ")) {
		t.Errorf("the error is about %q in %q: %v", d.File, d.Bundle, err)
	}
}

func TestDamageOfTheStructure(t *testing.T) {
	for _, c := range structureDamages {
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			c.damage(t, dir)
			_, err := Inspect(dir)
			checkDamage(t, err, dir, c.file, c.want, c.is)
			b, err := OpenBundle(dir)
			checkDamage(t, err, dir, c.file, c.want, c.is)
			if b != nil {
				t.Error("a bundle beside the error")
			}
		})
	}
}

func TestDamageAfterOpening(t *testing.T) {
	for _, c := range structureDamages {
		// Names of the files as they were when the bundle was opened are what counts.
		if c.file == "" || c.file == checksumsFile || c.file == "fields" || strings.HasPrefix(c.name, "the metadata list") || strings.HasPrefix(c.name, "the checksum") {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			b := openTestBundle(t, dir)
			c.damage(t, dir)
			if err := b.Verify(context.Background(), nil); !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestDamageOfTheContent(t *testing.T) {
	for _, c := range contentDamages {
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			c.damage(t, dir)
			b := openTestBundle(t, dir)
			checkDamage(t, b.Verify(context.Background(), nil), dir, c.file, "checksum differs: ", ErrChecksum)
			b2, err := OpenBundle(dir, VerifyOnOpen(context.Background()))
			checkDamage(t, err, dir, c.file, "checksum differs: ", ErrChecksum)
			if b2 != nil {
				t.Error("a bundle beside the error")
			}
		})
	}
}

func TestAFlippedBitInEachByteIsFound(t *testing.T) {
	dir := testBundle{size: [3]int{3, 1, 1}, fields: []string{"a"}, sidecar: "[1]"}.write(t)
	for _, file := range []string{metadataFile, sidecarFile, checksumsFile, "fields/a.bin"} {
		path := filepath.Join(dir, file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for n := range data {
			bit := n % 8
			changed := slices.Clone(data)
			changed[n] ^= 1 << bit
			writeTestFile(t, path, changed)
			b, err := OpenBundle(dir, VerifyOnOpen(context.Background()))
			if err == nil {
				t.Errorf("%s: bit %d of byte %d is not found", file, bit, n)
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			}
		}
		writeTestFile(t, path, data)
	}
	b, err := OpenBundle(dir, VerifyOnOpen(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// ours makes a bundle one that Fieldstone wrote.
func ours(t *testing.T, dir string) {
	resum(instead(`"result_counter"`, `"fieldstone": {"version": "0.1.0"}, "result_counter"`))(t, dir)
}

// TestABundleOfOursNeedsItsChecksums: without them a copy that was preallocated would
// be good.
func TestABundleOfOursNeedsItsChecksums(t *testing.T) {
	dir := plainBundle.write(t)
	ours(t, dir)
	if _, err := Inspect(dir); err != nil {
		t.Fatal(err)
	}
	edit(checksumsFile, remove)(t, dir)
	const want = "the file is missing: Fieldstone published this bundle with it, so the copy is incomplete"
	_, err := Inspect(dir)
	checkDamage(t, err, dir, checksumsFile, want, fs.ErrNotExist)
	_, err = OpenBundle(dir)
	checkDamage(t, err, dir, checksumsFile, want, fs.ErrNotExist)
	edit("fields/phi.bin", func(d []byte) []byte { return d[1:] })(t, dir)
	_, faults, err := Faults(context.Background(), dir, nil)
	if err != nil || !slices.Equal(faultyFiles(faults), []string{checksumsFile, "fields/phi.bin"}) {
		t.Fatalf("got %v, %v", faults, err)
	}
	checkDamage(t, faults[0], dir, checksumsFile, want, fs.ErrNotExist)

	// Another writer's bundle may do without them.
	dir = plainBundle.write(t)
	edit(metadataFile, instead(`"result_counter"`, `"fieldstone": null, "result_counter"`))(t, dir)
	edit(checksumsFile, remove)(t, dir)
	if err := openTestBundle(t, dir).Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

// version1 makes a bundle without sidecar one that a driver of version 1 publishes
// that doesn't say which fields it has.
func version1(t *testing.T, dir string) {
	edit(metadataFile, func([]byte) []byte {
		return []byte(`{"format_version": 1, "accepted_time": 0.5, "accepted_increment": 7, "method_identity": "m", "fields": [],
			"domain": {"global_dimensions": [5, 4, 3], "physical_origin": [0, 0, 0], "grid_spacing": [1, 1, 1]}}`)
	})(t, dir)
	edit(checksumsFile, remove)(t, dir)
}

// TestAnEmptyListOfVersion1: the files are the list, so each of them counts.
func TestAnEmptyListOfVersion1(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		file   string
		want   string
		is     error
	}{
		{"a field is too short", edit("fields/phi.bin", func(d []byte) []byte { return d[:479] }), "fields/phi.bin", "479 bytes, the grid needs exactly 480", ErrDamaged},
		{"a field is a link", func(t *testing.T, dir string) {
			if err := os.Symlink("phi.bin", filepath.Join(dir, "fields", "psi.bin")); err != nil {
				t.Fatal(err)
			}
		}, "fields/psi.bin", "not a regular file", ErrDamaged},
		{"all fields are missing", func(t *testing.T, dir string) {
			edit("fields/phi.bin", remove)(t, dir)
			edit("fields/T µ.bin", remove)(t, dir)
			writeTestFile(t, filepath.Join(dir, "fields", "._phi.bin"), nil)
		}, "fields", "no field: the metadata list none, and no file *.bin is there", fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testBundle{size: [3]int{5, 4, 3}, fields: []string{"phi", "T µ"}}.write(t)
			version1(t, dir)
			if b := openTestBundle(t, dir); !slices.Equal(b.Fields(), []string{"T µ", "phi"}) {
				t.Fatalf("fields %q", b.Fields())
			}
			c.damage(t, dir)
			_, err := Inspect(dir)
			checkDamage(t, err, dir, c.file, c.want, c.is)
			_, faults, err := Faults(context.Background(), dir, nil)
			if err != nil || len(faults) != 1 {
				t.Fatalf("got %v, %v", faults, err)
			}
			checkDamage(t, faults[0], dir, c.file, c.want, c.is)
		})
	}
}

// TestFilesThatNoListNamesAreTold: they are no damage, and nobody reads them.
func TestFilesThatNoListNamesAreTold(t *testing.T) {
	litter := []string{"._phi.bin", "._", ".#phi.bin", ".DS_Store", ".nfs000000000123", ".fuse_hidden0000", "phi.bin~", ".phi.bin.swp"}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string)
		want   []string
	}{
		{"version 2 with checksums", func(*testing.T, string) {}, []string{"fields/.old.bin", "fields/old.bin"}},
		{"version 2 of another writer", edit(checksumsFile, remove), []string{"fields/.old.bin", "fields/old.bin"}},
		{"version 1 without a list", version1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := testBundle{size: [3]int{5, 4, 3}, fields: []string{"phi", "T µ"}}.write(t)
			for _, name := range append([]string{"old.bin", ".old.bin"}, litter...) {
				writeTestFile(t, filepath.Join(dir, "fields", name), make([]byte, 480))
			}
			c.change(t, dir)
			info, err := Inspect(dir)
			if err != nil || !slices.Equal(info.Unlisted, c.want) {
				t.Errorf("Inspect: %q, %v, want %q", info.Unlisted, err, c.want)
			}
			info, faults, err := Faults(context.Background(), dir, nil)
			if err != nil || len(faults) > 0 || !slices.Equal(info.Unlisted, c.want) {
				t.Errorf("Faults: %q, %v, %v, want %q", info.Unlisted, faults, err, c.want)
			}
			var log logs
			f, err := field.New[float64](info.Metadata.Domain, info.Metadata.Domain.Box())
			if err != nil {
				t.Fatal(err)
			}
			_, err = LoadBundle(context.Background(), comm.Self(), dir, Request{Fields: []field.Named{{ID: "phi", Field: f}}},
				Logger(slog.New(slog.NewTextHandler(&log, nil))))
			told := strings.Contains(log.String(), "don't list")
			if err != nil || told != (c.want != nil) || told && !strings.Contains(log.String(), fmt.Sprint(c.want)) {
				t.Errorf("loading: %v, and the log has\n%s", err, log.String())
			}
		})
	}
}

func TestOpenBundleIgnoresOtherFiles(t *testing.T) {
	dir := plainBundle.write(t)
	for _, f := range []string{"preview.png", ".nfs0001", "fields/notes.txt", "fields/old.bin"} {
		writeTestFile(t, filepath.Join(dir, f), []byte("x"))
	}
	b := openTestBundle(t, dir)
	if err := b.Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
	if _, err := b.Field("old"); !errors.Is(err, ErrNoField) {
		t.Errorf("got %v", err)
	}
}

func TestOpenBundleRefusesASidecarThatIsNotJSON(t *testing.T) {
	dir := testBundle{size: [3]int{1, 1, 1}, fields: []string{"a"}, sidecar: "{"}.write(t)
	_, err := OpenBundle(dir)
	checkDamage(t, err, dir, sidecarFile, "not JSON", ErrDamaged)
}

func TestOpenBundleThroughALink(t *testing.T) {
	dir := plainBundle.write(t)
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := openTestBundle(t, link).Verify(context.Background(), nil); err != nil {
		t.Error(err)
	}
}

func TestVerifyReportsItsProgress(t *testing.T) {
	dir := testBundle{size: [3]int{512, 512, 1}, fields: []string{"a", "b"}, sidecar: "1"}.write(t)
	b := openTestBundle(t, dir)
	var files []string
	var last, all int64
	err := b.Verify(context.Background(), func(file string, done, total int64) {
		if len(files) == 0 || files[len(files)-1] != file {
			files = append(files, file)
		}
		if done <= last || all != 0 && total != all {
			t.Errorf("%s: %d of %d after %d of %d", file, done, total, last, all)
		}
		last, all = done, total
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{metadataFile, sidecarFile, "fields/a.bin", "fields/b.bin"}, files); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	info, err := os.Stat(filepath.Join(dir, checksumsFile))
	if err != nil {
		t.Fatal(err)
	}
	if last != all || all != b.Info().Bytes-info.Size() {
		t.Errorf("%d of %d bytes done, the bundle has %d", last, all, b.Info().Bytes)
	}
}

func TestVerifyCanBeCancelled(t *testing.T) {
	dir := testBundle{size: [3]int{512, 1024, 1}, fields: []string{"a"}}.write(t)
	b := openTestBundle(t, dir)
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err := b.Verify(ctx, func(file string, _, _ int64) {
		if calls++; file == "fields/a.bin" {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || calls != 2 {
		t.Errorf("got %v after %d pieces", err, calls)
	}
	if _, err := OpenBundle(dir, VerifyOnOpen(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if _, err := b.Stats(ctx, "a", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestUseAfterClose(t *testing.T) {
	b, err := OpenBundle(plainBundle.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Field("phi"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if err := b.ReadField("phi", make([]float64, 60)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// readTrace counts the reads of files, and fails them with err if that is set.
type readTrace struct {
	vfs.FS
	mu    sync.Mutex
	reads int
	bytes int
	err   error
}

func (r *readTrace) OpenFile(name string, flag int, perm fs.FileMode) (vfs.File, error) {
	f, err := r.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return tracedFile{f, r}, nil
}

type tracedFile struct {
	vfs.File
	trace *readTrace
}

func (f tracedFile) ReadAt(p []byte, off int64) (int, error) {
	f.trace.mu.Lock()
	f.trace.reads++
	f.trace.bytes += len(p)
	err := f.trace.err
	f.trace.mu.Unlock()
	if err != nil {
		return 0, &fs.PathError{Op: "read", Path: f.Name(), Err: err}
	}
	return f.File.ReadAt(p, off)
}

func TestReadBox(t *testing.T) {
	size := [3]int{7, 5, 6}
	domain := grid.Domain{Size: size}
	b := openTestBundle(t, testBundle{size: size, fields: []string{"a", "b"}}.write(t))
	rapid.Check(t, func(t *rapid.T) {
		var box grid.Box
		for a := range box.Low {
			box.Low[a] = rapid.IntRange(0, size[a]).Draw(t, "low")
			box.Size[a] = rapid.IntRange(0, size[a]-box.Low[a]).Draw(t, "size")
		}
		dst := make([]float64, box.Cells())
		if err := b.ReadBox("b", box, dst); err != nil {
			t.Fatal(err)
		}
		n := 0
		for k := range box.Size[2] {
			for j := range box.Size[1] {
				for i := range box.Size[0] {
					if box.Empty() {
						continue
					}
					cell := (box.Low[0] + i) + size[0]*((box.Low[1]+j)+size[1]*(box.Low[2]+k))
					if want := float64(cell) + 0.25; dst[n] != want {
						t.Fatalf("cell %d of %s is %v, want %v", n, box, dst[n], want)
					}
					n++
				}
			}
		}
	})
	whole := make([]float64, domain.Cells())
	if err := b.ReadField("a", whole); err != nil {
		t.Fatal(err)
	}
	for c, v := range whole {
		if v != float64(c) {
			t.Fatalf("cell %d is %v", c, v)
		}
	}
}

func TestReadBoxReadsLongPieces(t *testing.T) {
	// A row has 16 KiB, a plane 512 KiB, the field 2 MiB.
	size := [3]int{2048, 32, 4}
	dir := testBundle{size: size, fields: []string{"a"}}.write(t)
	for _, c := range []struct {
		name  string
		box   grid.Box
		reads int
		bytes int
	}{
		{"the whole field is read in pieces of a MiB", grid.Box{Size: size}, 2, 2 << 20},
		{"whole planes are one piece", grid.Box{Low: [3]int{0, 0, 1}, Size: [3]int{2048, 32, 2}}, 1, 1 << 20},
		{"whole rows are a piece in each plane", grid.Box{Low: [3]int{0, 8, 0}, Size: [3]int{2048, 16, 4}}, 4, 4 * 256 << 10},
		{"a box that is a bit smaller is read over its gaps", grid.Box{Low: [3]int{1, 0, 0}, Size: [3]int{2046, 32, 1}}, 1, 512<<10 - 16},
		{"columns are read over their gaps", grid.Box{Low: [3]int{5, 0, 0}, Size: [3]int{1, 32, 1}}, 1, 31*16<<10 + 8},
		{"a cell is read alone", grid.Box{Low: [3]int{5, 6, 2}, Size: [3]int{1, 1, 1}}, 1, 8},
		{"cells far apart are read alone", grid.Box{Low: [3]int{5, 6, 0}, Size: [3]int{1, 1, 4}}, 4, 32},
		{"nothing is not read", grid.Box{}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := &readTrace{FS: vfs.OS}
			b, err := openBundle(trace, dir)
			if err != nil {
				t.Fatal(err)
			}
			dst := make([]float64, c.box.Cells())
			err = b.ReadBox("a", c.box, dst)
			if err := errors.Join(err, b.Close()); err != nil {
				t.Fatal(err)
			}
			if trace.reads != c.reads || trace.bytes != c.bytes {
				t.Errorf("%d reads of %d bytes, want %d of %d", trace.reads, trace.bytes, c.reads, c.bytes)
			}
			n := 0
			for k := range c.box.Size[2] {
				for j := range c.box.Size[1] {
					for i := range c.box.Size[0] {
						if want := float64(c.box.Low[0] + i + 2048*(c.box.Low[1]+j+32*(c.box.Low[2]+k))); dst[n] != want {
							t.Fatalf("cell %d is %v, want %v", n, dst[n], want)
						}
						n++
					}
				}
			}
		})
	}
}

func TestReadBoxRefuses(t *testing.T) {
	b := openTestBundle(t, plainBundle.write(t))
	for _, c := range []struct {
		name string
		id   string
		box  grid.Box
		n    int
		want string
		is   error
	}{
		{"a field that isn't there", "psi", grid.Box{Size: [3]int{1, 1, 1}}, 1, `no such field: "psi" is not among`, ErrNoField},
		{"a path", "../metadata.json", grid.Box{Size: [3]int{1, 1, 1}}, 1, "no such field", ErrNoField},
		{"a box that reaches out", "phi", grid.Box{Low: [3]int{4, 0, 0}, Size: [3]int{2, 1, 1}}, 2, `read [4:6, 0:1, 0:1] of field "phi": outside of the domain [0:5, 0:4, 0:3]`, nil},
		{"a box below 0", "phi", grid.Box{Low: [3]int{0, -1, 0}, Size: [3]int{1, 1, 1}}, 1, "outside of the domain", nil},
		{"a box at the end of the integers", "phi", grid.Box{Low: [3]int{math.MaxInt, 0, 0}, Size: [3]int{1, 1, 1}}, 1, "outside of the domain", nil},
		{"a short destination", "phi", grid.Box{Size: [3]int{2, 2, 2}}, 7, "dst has 7 elements, the box 8 cells", nil},
		{"a long destination", "phi", grid.Box{Size: [3]int{2, 2, 2}}, 9, "dst has 9 elements, the box 8 cells", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := b.ReadBox(c.id, c.box, make([]float64, c.n))
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	dir := plainBundle.write(t)
	for _, c := range []struct {
		name    string
		errno   syscall.Errno
		damaged bool
	}{
		{"an unreadable block is damage", syscall.EIO, true},
		{"a stale handle is not", syscall.ESTALE, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := &readTrace{FS: vfs.OS}
			b, err := openBundle(trace, dir)
			if err != nil {
				t.Fatal(err)
			}
			trace.err = c.errno
			_, serr := b.Stats(context.Background(), "phi", nil)
			for i, err := range []error{
				b.ReadField("phi", make([]float64, 60)),
				b.ReadBox("phi", grid.Box{Size: [3]int{2, 2, 1}}, make([]float64, 4)),
				b.Verify(context.Background(), nil),
				serr,
			} {
				if !errors.Is(err, c.errno) || errors.Is(err, ErrDamaged) != c.damaged {
					t.Errorf("%d: got %v", i, err)
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReadBoxOfAFileThatBecameShorter(t *testing.T) {
	dir := plainBundle.write(t)
	b := openTestBundle(t, dir)
	if _, err := b.Field("phi"); err != nil { // opens the file
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "fields", "phi.bin"), 477); err != nil {
		t.Fatal(err)
	}
	err := b.ReadField("phi", make([]float64, 60))
	checkDamage(t, err, dir, "fields/phi.bin", "the file became shorter", io.ErrUnexpectedEOF)
	if err := b.ReadBox("phi", grid.Box{Size: [3]int{5, 4, 2}}, make([]float64, 40)); err != nil {
		t.Errorf("what is there still: %v", err)
	}
}

func TestConcurrentReads(t *testing.T) {
	b := openTestBundle(t, plainBundle.write(t))
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			dst := make([]float64, 60)
			if err := b.ReadField(b.Fields()[g%2], dst); err != nil || dst[59] != 59+0.25*float64(g%2) {
				t.Errorf("got %v, %v", dst[59], err)
			}
			if err := b.Verify(context.Background(), nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestStats(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name  string
		cells []float64
		want  Stats
	}{
		{"plain values", []float64{3, -1, 4, 2}, Stats{4, 0, -1, 4, 2}},
		{"NaNs are counted and left out", []float64{nan, 1, math.Float64frombits(0xfff0000000000001), 3}, Stats{4, 2, 1, 3, 2}},
		{"NaNs only", []float64{nan, nan}, Stats{2, 2, nan, nan, nan}},
		{"a small value between large ones survives", []float64{1e100, 8, -1e100, 8}, Stats{4, 0, -1e100, 1e100, 4}},
		{"a sum that would overflow", []float64{math.MaxFloat64, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}, Stats{4, 0, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64}},
		{"huge values that cancel", []float64{math.MaxFloat64, -math.MaxFloat64, 1, 1}, Stats{4, 0, -math.MaxFloat64, math.MaxFloat64, 0.5}},
		{"denormals", []float64{5e-324, 15e-324}, Stats{2, 0, 5e-324, 15e-324, 1e-323}},
		{"an infinity", []float64{inf, 1}, Stats{2, 0, 1, inf, inf}},
		{"a negative infinity", []float64{-inf, nan}, Stats{2, 1, -inf, -inf, -inf}},
		{"both infinities", []float64{-inf, inf}, Stats{2, 0, -inf, inf, nan}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openTestBundle(t, testBundle{
				size: [3]int{len(c.cells), 1, 1}, fields: []string{"a"},
				value: func(_ int, cell int64) float64 { return c.cells[cell] },
			}.write(t))
			got, err := b.Stats(context.Background(), "a", nil)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
	t.Run("a field of several pieces", func(t *testing.T) {
		b := openTestBundle(t, testBundle{size: [3]int{512, 512, 2}, fields: []string{"a"}}.write(t))
		got, err := b.Stats(context.Background(), "a", nil)
		if want := (Stats{1 << 19, 0, 0, 1<<19 - 1, (1<<19 - 1) / 2.}); err != nil || got != want {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	})
	t.Run("a field that isn't there", func(t *testing.T) {
		if _, err := openTestBundle(t, plainBundle.write(t)).Stats(context.Background(), "psi", nil); !errors.Is(err, ErrNoField) {
			t.Errorf("got %v", err)
		}
	})
}
