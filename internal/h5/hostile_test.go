//go:build hdf5

package h5_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fieldstone-io/fieldstone/internal/h5"
)

// readAll reads everything that a file has, as a reader of any file would.
func readAll(name string) (err error) {
	f, err := h5.Open(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// The first error does not keep the rest from being read.
	all := []error{readAttributes(f, "/")}
	all = append(all, f.Walk("/", func(path string, e h5.Entry) error {
		if e.Kind == h5.Group || e.Kind == h5.Dataset {
			all = append(all, readAttributes(f, path))
		}
		if e.Kind == h5.Dataset {
			all = append(all, readDataset(f, path))
		}
		return nil
	}))
	return errors.Join(all...)
}

func readDataset(f *h5.File, path string) error {
	info, err := f.Stat(path)
	if err != nil {
		return err
	}
	if info.Type != h5.String && len(info.Shape) > 0 && info.Filters == 0 {
		f.Pieces(path, 0, info.Shape[0])
	}
	switch info.Type {
	case h5.Bool:
		_, _, err = h5.Read[bool](f, path)
	case h5.Int8, h5.Int16, h5.Int32, h5.Int64, h5.Uint8, h5.Uint16, h5.Uint32:
		_, _, err = h5.ReadAs[int64](f, path)
	case h5.Uint64:
		_, _, err = h5.Read[uint64](f, path)
	case h5.Float32, h5.Float64:
		_, _, err = h5.ReadAs[float64](f, path)
	case h5.String:
		if len(info.Shape) == 1 {
			_, err = f.ReadStrings(path)
		} else {
			_, err = f.ReadString(path)
		}
	default:
		err = errors.New(f.Name() + ": " + path + ": no type that can be read")
	}
	return err
}

func readAttributes(f *h5.File, path string) error {
	names, err := f.Attributes(path)
	for _, name := range names {
		info, e := f.StatAttribute(path, name)
		switch {
		case e != nil:
		case info.Type == h5.String && len(info.Shape) == 1:
			_, e = f.AttributeStrings(path, name)
		case info.Type == h5.String:
			_, e = f.AttributeString(path, name)
		case info.Type == h5.Bool:
			_, _, e = h5.Attribute[bool](f, path, name)
		case info.Type == h5.Int64:
			_, _, e = h5.Attribute[int64](f, path, name)
		default:
			_, _, e = h5.AttributeAs[float64](f, path, name)
		}
		err = errors.Join(err, e)
	}
	return err
}

// sample writes a file with everything in it.
func sample(t testing.TB, name string) {
	t.Helper()
	f, err := h5.Create(name)
	must(t, err)
	must(t, f.SetAttributeString("/", "format_version", "0.0.5"))
	must(t, h5.SetAttribute(f, "/", "clean", []int8{1}))
	must(t, h5.Write(f, "time", []float64{0, 1, 2}, 3))
	must(t, f.SetAttributeString("time", "unit", "s"))
	must(t, h5.CreateDataset[float64](f, "unknowns/x", h5.Layout{Shape: []int{5, 3, 4}, Chunk: []int{1, 3, 4}, Extendible: true}))
	must(t, h5.WriteSlab(f, "unknowns/x", make([]float64, 60), []int{0, 0, 0}, []int{5, 3, 4}))
	must(t, h5.CreateDataset[float32](f, "unknowns/packed", h5.Layout{Shape: []int{40, 4}, Chunk: []int{10, 4}, Deflate: 6}))
	must(t, h5.WriteSlab(f, "unknowns/packed", make([]float32, 160), []int{0, 0}, []int{40, 4}))
	must(t, h5.CreateDataset[float64](f, "unknowns/early", h5.Layout{Shape: []int{2, 8}, Chunk: []int{1, 8}, Early: true}))
	for i := range 12 {
		g := fmt.Sprintf("settings/grids/grid_%d", i)
		must(t, f.WriteString(g+"/name", fmt.Sprint("grid ", i)))
		must(t, h5.Write(f, g+"/faces", []float64{1, 2, 3}, 3))
		must(t, h5.Write(f, g+"/flag", []bool{i%2 == 0}))
		must(t, f.SetAttributeString(g, "kind", "record"))
	}
	must(t, f.WriteStrings("settings/order", []string{"a", "b", "cc"}, h5.Fixed))
	must(t, f.WriteStrings("settings/words", []string{"a", "", "some words"}, h5.Variable))
	must(t, f.CreateStrings("settings/growing", []string{"a", "", "some words"}))
	must(t, f.SetAttributeStrings("settings", "words", []string{"x", "yy"}, h5.Variable))
	must(t, f.SetAttributeStrings("settings", "more", []string{"x", "yy"}, h5.Fixed))
	for i := range 12 {
		must(t, h5.SetAttribute(f, "settings", fmt.Sprint("a", i), []int64{int64(i)}))
	}
	must(t, f.Close())
}

// mutate makes the n-th damaged copy of a file.
func mutate(file []byte, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 17))
	b := append([]byte(nil), file...)
	for range 1 + r.IntN(3) {
		at := r.IntN(len(b))
		switch r.IntN(6) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.IntN(256))
		case 2:
			b[at] = 0xff
		case 3:
			for i := at; i < min(at+1+r.IntN(16), len(b)); i++ {
				b[i] = byte(r.IntN(256))
			}
		case 4:
			for i := at; i < min(at+8, len(b)); i++ {
				b[i] = 0xff * byte(n&1)
			}
		case 5:
			from := r.IntN(len(b))
			copy(b[at:min(at+64, len(b))], b[from:])
		}
	}
	if n%10 == 0 {
		b = b[:r.IntN(len(b))]
	}
	return b
}

const (
	mutants = "FIELDSTONE_H5_MUTANTS"      // FILE FROM TO PROGRESS: the process reads these
	howMany = "FIELDSTONE_H5_MUTANT_COUNT" // of each file, for a long search
)

func TestMain(m *testing.M) {
	if job := os.Getenv(mutants); job != "" {
		os.Exit(readMutants(strings.Fields(job)))
	}
	os.Exit(m.Run())
}

func readMutants(job []string) int {
	file, err := os.ReadFile(job[0])
	if err != nil {
		return 2
	}
	from, _ := strconv.Atoi(job[1])
	to, _ := strconv.Atoi(job[2])
	progress, err := os.Create(job[3])
	if err != nil {
		return 2
	}
	name := job[3] + ".h5"
	for n := from; n < to; n++ {
		if err := os.WriteFile(name, mutate(file, n), 0o600); err != nil {
			return 2
		}
		if _, err := progress.WriteAt(fmt.Appendf(nil, "%10d", n), 0); err != nil {
			return 2
		}
		readAll(name)
		if n := h5.OpenObjects(); n != 0 {
			fmt.Println(n, "objects are open")
			return 3
		}
	}
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil || use.Maxrss > 512<<10 {
		fmt.Println(use.Maxrss, "kB of memory", err)
		return 4
	}
	return 0
}

// Damaged files are read in other processes, so that a crash has a number.
func TestDamagedFilesDoNoHarm(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file.h5")
	sample(t, file)
	must(t, readAll(file))
	total := 300
	if n, err := strconv.Atoi(os.Getenv(howMany)); err == nil {
		total = n
	}
	crashes := 0
	for from := 0; from < total; {
		progress := filepath.Join(dir, "progress")
		n, out, err := watchMutants(file, from, total, progress)
		if err == nil {
			if out != "" {
				t.Errorf("the library printed: %.300s", out)
			}
			break
		}
		crashes++
		t.Errorf("mutant %d: %v: %.2000s", n, err, out)
		from = n + 1
	}
	t.Logf("%d of %d damaged files ended the reader", crashes, total)
}

// watchMutants runs a reader and ends it if a file keeps it busy.
func watchMutants(file string, from, to int, progress string) (at int, out string, err error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", mutants, file, from, to, progress))
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		return to, "", err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for last := ""; ; {
		select {
		case err = <-done:
			b, _ := os.ReadFile(progress)
			at, _ = strconv.Atoi(strings.TrimSpace(string(b)))
			return at, text.String(), err
		case <-time.After(2 * time.Minute):
			b, _ := os.ReadFile(progress)
			if string(b) == last {
				cmd.Process.Signal(syscall.SIGQUIT)
			}
			last = string(b)
		}
	}
}

// FuzzOpen reads whatever bytes a file has. A crash of the library ends the fuzzer,
// too, and leaves the input behind.
func FuzzOpen(f *testing.F) {
	name := filepath.Join(f.TempDir(), "file.h5")
	sample(f, name)
	file, err := os.ReadFile(name)
	must(f, err)
	f.Add(file)
	f.Add(file[:len(file)/2])
	// Bit fields, null dataspaces and other forms that others have.
	foreign, err := os.ReadFile("../../runfile/testdata/golden/foreign-output.0.0.5.h5")
	must(f, err)
	f.Add(foreign)
	f.Add([]byte("\x89HDF\r\n\x1a\n"))
	f.Add([]byte{})
	for n := range 5 {
		f.Add(mutate(file, n))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		name := filepath.Join(t.TempDir(), "file.h5")
		must(t, os.WriteFile(name, b, 0o600))
		if err := readAll(name); err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name the file", err)
		}
		if n := h5.OpenObjects(); n != 0 {
			t.Errorf("%d objects are open", n)
		}
	})
}

// A file that was cut anywhere does not open, or gives an error that names it.
func TestCutFilesAreRefused(t *testing.T) {
	watch(t)
	dir := t.TempDir()
	whole := filepath.Join(dir, "whole.h5")
	sample(t, whole)
	file, err := os.ReadFile(whole)
	must(t, err)
	cut := filepath.Join(dir, "cut.h5")
	for n := 0; n < len(file); n += 1 + n/40 {
		must(t, os.WriteFile(cut, file[:n], 0o600))
		f, err := h5.Open(cut)
		if err == nil {
			f.Close()
		}
		if !errors.Is(err, h5.ErrFormat) || !strings.Contains(err.Error(), cut) {
			t.Fatalf("%d of %d bytes: %v", n, len(file), err)
		}
	}
}
