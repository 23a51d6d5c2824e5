package publish

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
)

func faultyFiles(faults []*DamageError) []string {
	files := []string{}
	for _, f := range faults {
		files = append(files, f.File)
	}
	return files
}

func TestFaultsOfAGoodBundle(t *testing.T) {
	for _, noChecksums := range []bool{false, true} {
		tb := plainBundle
		tb.noChecksums = noChecksums
		dir := tb.write(t)
		info, faults, err := Faults(context.Background(), dir, nil)
		if err != nil || len(faults) > 0 {
			t.Errorf("without checksums: %t: %v, %v", noChecksums, faults, err)
		}
		if want, err := Inspect(dir); err != nil || info.Bytes != want.Bytes || info.Checksums != want.Checksums || info.Sidecar != want.Sidecar ||
			!slices.Equal(info.Metadata.Fields, want.Metadata.Fields) {
			t.Errorf("without checksums: %t: got %+v, Inspect has %+v, %v", noChecksums, info, want, err)
		}
	}
}

// Faults finds what Inspect and Verify find.
func TestFaultsFindEachDamage(t *testing.T) {
	for _, c := range structureDamages {
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			c.damage(t, dir)
			want := []string{c.file}
			if errors.Is(c.is, ErrVersion) || errors.Is(c.is, ErrNotABundle) {
				if _, faults, err := Faults(context.Background(), dir, nil); !errors.Is(err, c.is) || len(faults) > 0 {
					t.Errorf("got %v, %v", faults, err)
				}
				return
			}
			_, faults, err := Faults(context.Background(), dir, nil)
			if err != nil || !slices.Equal(faultyFiles(faults), want) {
				t.Fatalf("got %v, %v; want faults of %q", faults, err, want)
			}
			if c.file == want[0] {
				checkDamage(t, faults[0], dir, c.file, c.want, c.is)
			}
		})
	}
	for _, c := range contentDamages {
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			c.damage(t, dir)
			_, faults, err := Faults(context.Background(), dir, nil)
			if err != nil || !slices.Contains(faultyFiles(faults), c.file) {
				t.Fatalf("got %v, %v; want a fault of %s", faults, err, c.file)
			}
			for _, f := range faults {
				checkDamage(t, f, dir, f.File, "checksum differs: ", ErrChecksum)
			}
		})
	}
}

func TestFaultsGoOnAfterTheFirst(t *testing.T) {
	for _, c := range []struct {
		name    string
		damages []func(*testing.T, string)
		want    []string
	}{
		{"both fields", []func(*testing.T, string){edit("fields/phi.bin", flip(3)), edit("fields/T µ.bin", remove)},
			[]string{"fields/T µ.bin", "fields/phi.bin"}},
		{"everything", []func(*testing.T, string){
			edit(metadataFile, flip(0)), edit(sidecarFile, flip(2)), edit("fields/phi.bin", flip(3)), edit("fields/T µ.bin", flip(5)),
		}, []string{metadataFile, sidecarFile, "fields/T µ.bin", "fields/phi.bin"}},
		{"another grid in the metadata does not make good fields bad",
			[]func(*testing.T, string){edit(metadataFile, instead("[5, 4, 3]", "[5, 4, 4]")), edit("fields/phi.bin", flip(3))},
			[]string{metadataFile, "fields/phi.bin"}},
		{"the checksums and a field's size", []func(*testing.T, string){
			edit(checksumsFile, func([]byte) []byte { return []byte("?\n") }), edit("fields/phi.bin", func(d []byte) []byte { return d[1:] }),
		}, []string{checksumsFile, "fields/phi.bin"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := plainBundle.write(t)
			for _, damage := range c.damages {
				damage(t, dir)
			}
			_, faults, err := Faults(context.Background(), dir, nil)
			if err != nil || !slices.Equal(faultyFiles(faults), c.want) {
				t.Errorf("got %v, %v; want faults of %q", faults, err, c.want)
			}
		})
	}
}

func TestFaultsOfWhatCannotBeJudged(t *testing.T) {
	version3 := testBundle{size: [3]int{5, 4, 3}, fields: []string{"phi"}, noChecksums: true}.write(t)
	edit(metadataFile, instead(`"format_version": 2`, `"format_version": 3`))(t, version3)
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		dir  string
		want error
	}{
		{"nothing there", context.Background(), filepath.Join(t.TempDir(), "nowhere"), fs.ErrNotExist},
		{"an empty directory", context.Background(), t.TempDir(), ErrNotABundle},
		{"a later version", context.Background(), version3, ErrVersion},
		{"cancelled", cancelled, plainBundle.write(t), context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, faults, err := Faults(c.ctx, c.dir, nil); !errors.Is(err, c.want) || len(faults) > 0 {
				t.Errorf("got %v, %v; want %v", faults, err, c.want)
			}
		})
	}
}

func TestFaultsReportProgress(t *testing.T) {
	dir := testBundle{size: [3]int{512, 512, 1}, fields: []string{"a", "b"}}.write(t)
	edit("fields/a.bin", flip(0))(t, dir)
	const field = 512 * 512 * 8
	var last int64
	files := make(map[string]bool)
	if _, _, err := Faults(context.Background(), dir, func(file string, done, total int64) {
		if total != 2*field || done <= last || done > total {
			t.Errorf("%s: %d of %d after %d", file, done, total, last)
		}
		last = done
		files[file] = true
	}); err != nil {
		t.Fatal(err)
	}
	if last != 2*field || !files["fields/a.bin"] || !files["fields/b.bin"] {
		t.Errorf("ended at %d after %v", last, files)
	}
}
