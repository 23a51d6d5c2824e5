//go:build amd64 || arm64

package dl_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
	"github.com/fieldstone-io/fieldstone/device/internal/dl"
)

func open(t testing.TB) *dl.Library {
	t.Helper()
	l, err := dl.Open("libfieldstone.so.none", "libc.so.6")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func find(t testing.TB, name string) dl.Func {
	t.Helper()
	f, err := open(t).Func(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOpenTakesTheFirstThatIsThere(t *testing.T) {
	if name := open(t).Name(); name != "libc.so.6" {
		t.Errorf("opened %q", name)
	}
	_, err := dl.Open("libfieldstone.so.1", "libfieldstone.so.0")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libfieldstone.so.1: ") || !strings.Contains(err.Error(), "; libfieldstone.so.0: ") {
		t.Errorf("error %v", err)
	}
}

// What is loaded comes before what could be.
func TestOpenTakesWhatIsLoaded(t *testing.T) {
	other := another(t)
	l, err := dl.Open(other, "libc.so.6")
	if err != nil || l.Name() != "libc.so.6" {
		t.Fatalf("opened %v, %v", l, err)
	}
	if l, err = dl.Open(other); err != nil || l.Name() != other {
		t.Fatalf("opened %v, %v", l, err)
	}
	if l, err = dl.Open("libfieldstone.so.1", other, "libc.so.6"); err != nil || l.Name() != other {
		t.Errorf("opened %v, %v", l, err)
	}
}

// another returns a copy of a library, which isn't loaded.
func another(t *testing.T) string {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		f := strings.Fields(line)
		if path := f[len(f)-1]; filepath.Base(path) == "libc.so.6" {
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "libm.so.6"))
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(t.TempDir(), "libanother.so")
			if err := os.WriteFile(copied, data, 0o666); err != nil {
				t.Fatal(err)
			}
			return copied
		}
	}
	t.Fatal("the C library isn't loaded")
	return ""
}

func TestInFolders(t *testing.T) {
	got := dl.InFolders([]string{"a", "b"}, "/x", "/y/")
	if want := []string{"/x/a", "/x/b", "/y/a", "/y/b"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFuncTakesTheFirstThatIsThere(t *testing.T) {
	l := open(t)
	f, err := l.Func("no_such_function", "abs")
	if err != nil {
		t.Fatal(err)
	}
	minus := int32(-7)
	if got := f.Call1(uintptr(minus)); got != 7 {
		t.Errorf("abs(-7) is %d", got)
	}
	_, err = l.Func("no_such_function", "nor_this")
	if !errors.Is(err, device.ErrUnavailable) || !strings.Contains(err.Error(), "libc.so.6 lacks no_such_function and nor_this") {
		t.Errorf("error %v", err)
	}
	var known, unknown dl.Func
	if err := l.Bind(map[string]*dl.Func{"abs": &known}); err != nil || known == 0 {
		t.Errorf("bind: %v", err)
	}
	if err := l.Bind(map[string]*dl.Func{"no_such_function": &unknown}); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("bind: %v", err)
	}
}

func TestCalls(t *testing.T) {
	if got := find(t, "getpid").Call0(); got <= 0 {
		t.Errorf("getpid() is %d", got)
	}
	a, b := []byte("abcd"), []byte("abce")
	compare := func(n uintptr) int32 {
		return find(t, "memcmp").Call3(uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0])), n)
	}
	if compare(3) != 0 || compare(4) >= 0 {
		t.Errorf("memcmp is %d and %d", compare(3), compare(4))
	}
	// Eleven arguments, of which five are on the stack.
	var text [64]byte
	format := []byte("%d %d %d %d %d %d %d %d\x00")
	n := find(t, "snprintf").Call11(uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), uintptr(unsafe.Pointer(&format[0])), 1, 2, 3, 4, 5, 6, 7, 8)
	if got := string(text[:n]); got != "1 2 3 4 5 6 7 8" {
		t.Errorf("printed %q", got)
	}
}

func TestOut(t *testing.T) {
	// An address that was given to C comes back, aligned.
	p, c := find(t, "posix_memalign").Out(64, 1000)
	if c != 0 || p == 0 || p%64 != 0 {
		t.Errorf("posix_memalign: %#x, code %d", p, c)
	}
	find(t, "free").Call1(p)
}

func TestText(t *testing.T) {
	if got := find(t, "strerror").Text(12); got != "Cannot allocate memory" {
		t.Errorf("strerror(12) is %q", got)
	}
	if got := dl.Text(0); got != "" {
		t.Errorf("no text is %q", got)
	}
}

func BenchmarkCall(b *testing.B) {
	f := find(b, "labs")
	b.ReportAllocs()
	for b.Loop() {
		f.Call1(5)
	}
}
