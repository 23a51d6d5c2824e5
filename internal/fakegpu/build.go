//go:build linux && (amd64 || arm64)

package fakegpu

import (
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

//go:embed csrc include
var sources embed.FS

// Libraries says where the fake drivers are.
type Libraries struct {
	// Dir has them under all the names that programs look for. With it in
	// LD_LIBRARY_PATH a program finds the fakes before the real ones.
	Dir string
	// CUDA and HIP are the files. HIP is of the newest version.
	CUDA, HIP string
	// Kernels are the libraries of the kernels that were compiled for the host.
	// Programs that find the fakes in Dir use them by themselves.
	Kernels []string
}

// Environment returns the variables that let a program find the fakes.
func (l Libraries) Environment() []string {
	path := l.Dir
	if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
		path += ":" + old
	}
	return []string{"LD_LIBRARY_PATH=" + path}
}

// Versions of HIP that there is a fake runtime of, oldest first.
var hipVersions = []string{"5", "6", "7"}

func newestHIP() string { return hipVersions[len(hipVersions)-1] }

var coreFiles = []string{
	"access", "code_object", "context", "control", "copy", "event", "fault", "host", "host_kernels",
	"memory", "module", "object", "ptx_parse", "ptx_run", "queue", "report", "settings",
}

var cudaFiles = []string{"cuda", "cuda_memory", "cuda_work"}

// What takes time in tests.
var fastFiles = []string{"access", "copy", "ptx_run"}

// Beside these there is hip.c, which is compiled for each version.
var hipFiles = []string{"hip_memory", "hip_work"}

var cFlags = []string{
	"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wmissing-prototypes",
	"-fPIC", "-fvisibility=hidden", "-ffp-contract=off", "-Icsrc", "-Iinclude",
}

// What makes a compiler call a function of csrc/kernel_glue.c before each load and
// store of a kernel.
var kernelFlags = []string{
	"-std=c++17", "-x", "c++", "-O2", "-Wall", "-fPIC", "-shared", "-ffp-contract=off",
	"-fsanitize=kernel-address", "--param", "asan-instrumentation-with-call-threshold=0",
	"--param", "asan-stack=0", "--param", "asan-globals=0",
}

// Build compiles the fake drivers, and the sources of kernels for the host, which stand
// in for those of HIP's code objects. What was compiled before isn't compiled again.
// Without a compiler the test is skipped, or fails if FIELDSTONE_REQUIRE_FAKEGPU is set.
func Build(tb testing.TB, kernels ...string) Libraries {
	tb.Helper()
	l, err := Make(kernels...)
	if errors.Is(err, exec.ErrNotFound) && os.Getenv("FIELDSTONE_REQUIRE_FAKEGPU") == "" {
		tb.Skipf("the fake GPU needs a C compiler: %v", err)
	}
	if err != nil {
		tb.Fatalf("build the fake GPU: %v", err)
	}
	return l
}

// Make is Build for programs that aren't tests. The error is exec.ErrNotFound where
// there is no compiler.
func Make(kernels ...string) (Libraries, error) {
	base, err := cached("driver", baseKey, buildBase)
	if err != nil || len(kernels) == 0 {
		return libraries(base, nil), err
	}
	var built []string
	for _, source := range kernels {
		dir, err := cached("kernels", func() (string, error) { return kernelKey(source) }, func(dir string) error { return buildKernel(dir, source) })
		if err != nil {
			return Libraries{}, err
		}
		built = append(built, filepath.Join(dir, kernelLibrary(source)))
	}
	dir, err := cached("with", func() (string, error) { return strings.Join(append(built, base), "\n"), nil }, func(dir string) error { return link(dir, base, built) })
	return libraries(dir, built), err
}

func libraries(dir string, kernels []string) Libraries {
	return Libraries{Dir: dir, CUDA: filepath.Join(dir, "libcuda.so.1"), HIP: filepath.Join(dir, "libamdhip64.so."+newestHIP()), Kernels: kernels}
}

// link makes a folder with the drivers and the kernels that they take from beside them.
func link(dir, base string, kernels []string) error {
	entries, err := os.ReadDir(base)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "lib") {
			if err := os.Symlink(filepath.Join(base, e.Name()), filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	list := strings.Join(kernels, "\n") + "\n"
	return os.WriteFile(filepath.Join(dir, "kernels"), []byte(list), 0o666)
}

// ---- the drivers ----

// Kernels need GCC, for its instrumentation.
const (
	cCompiler   = "gcc"
	cxxCompiler = "g++"
)

func baseKey() (string, error) {
	version, err := compilerVersion(cCompiler)
	if err != nil {
		return "", err
	}
	key := strings.Join(slices.Concat([]string{version}, cFlags, hipVersions), "\n")
	err = fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := sources.ReadFile(name)
		key += fmt.Sprintf("\n%s %d\n%s", name, len(data), data)
		return err
	})
	return key, err
}

var versions sync.Map // of compilers

func compilerVersion(compiler string) (string, error) {
	if v, ok := versions.Load(compiler); ok {
		return v.(string), nil
	}
	out, err := exec.Command(compiler, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", compiler, err)
	}
	versions.Store(compiler, string(out))
	return string(out), nil
}

func buildBase(dir string) error {
	if err := os.CopyFS(dir, sources); err != nil {
		return err
	}
	if err := compileAll(dir, objects()); err != nil {
		return err
	}
	if err := linkLibrary(dir, "libcuda.so.1", slices.Concat(coreFiles, cudaFiles)); err != nil {
		return err
	}
	for _, v := range hipVersions {
		if err := linkLibrary(dir, "libamdhip64.so."+v, slices.Concat(coreFiles, hipFiles, []string{"hip" + v})); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink("libcuda.so.1", filepath.Join(dir, "libcuda.so")),
		os.Symlink("libamdhip64.so."+newestHIP(), filepath.Join(dir, "libamdhip64.so")))
}

// object is what a file is compiled to: name.o.
type object struct {
	name, source string
	flags        []string
}

func objects() []object {
	var all []object
	for _, name := range slices.Concat(coreFiles, cudaFiles, hipFiles) {
		o := object{name: name, source: "csrc/" + name + ".c"}
		if slices.Contains(fastFiles, name) {
			o.flags = []string{"-O2"}
		}
		all = append(all, o)
	}
	for _, v := range hipVersions {
		all = append(all, object{name: "hip" + v, source: "csrc/hip.c", flags: []string{"-DHIP_VERSION=" + v}})
	}
	return all
}

func compileAll(dir string, objects []object) error {
	errs := make([]error, len(objects))
	var wg sync.WaitGroup
	limit := make(chan struct{}, 4)
	for i, o := range objects {
		wg.Go(func() {
			limit <- struct{}{}
			defer func() { <-limit }()
			errs[i] = run(dir, cCompiler, slices.Concat(cFlags, o.flags, []string{"-c", o.source, "-o", o.name + ".o"})...)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func linkLibrary(dir, name string, files []string) error {
	args := []string{"-shared", "-o", name, "-Wl,-soname," + name, "-Wl,-z,defs"}
	for _, f := range files {
		args = append(args, f+".o")
	}
	return run(dir, cCompiler, append(args, "-ldl", "-lpthread", "-lm")...)
}

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// ---- kernels ----

func kernelLibrary(source string) string {
	return strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)) + ".so"
}

// The project's own headers of kernels are found from any folder of its module.
func includeDirs(source string) ([]string, error) {
	dir, err := filepath.Abs(filepath.Dir(source))
	if err != nil {
		return nil, err
	}
	dirs := []string{filepath.Join(dir, "include")}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return append(dirs, filepath.Join(dir, "device", "internal", "kernels", "include")), nil
		}
	}
	return dirs, nil
}

func kernelKey(source string) (string, error) {
	dirs, err := includeDirs(source)
	if err != nil {
		return "", err
	}
	version, err := compilerVersion(cxxCompiler)
	if err != nil {
		return "", err
	}
	glue, err := sources.ReadFile("csrc/kernel_glue.c")
	if err != nil {
		return "", err
	}
	key := strings.Join(slices.Concat([]string{version, string(glue), filepath.Base(source)}, kernelFlags), "\n")
	files := []string{source}
	for _, dir := range dirs {
		headers, err := filepath.Glob(filepath.Join(dir, "*.h"))
		if err != nil {
			return "", err
		}
		files = append(files, headers...)
	}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		key += fmt.Sprintf("\n%d\n%s", len(data), data)
	}
	return key, nil
}

func buildKernel(dir, source string) error {
	dirs, err := includeDirs(source)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	if err := os.CopyFS(dir, sources); err != nil {
		return err
	}
	glue := slices.Concat(cFlags, []string{"-c", "csrc/kernel_glue.c", "-o", "glue.o"})
	if err := run(dir, cCompiler, glue...); err != nil {
		return err
	}
	args := slices.Concat(kernelFlags)
	for _, d := range dirs {
		args = append(args, "-I"+d)
	}
	return run(dir, cxxCompiler, append(args, path, "-x", "none", "glue.o", "-o", kernelLibrary(source))...)
}

// ---- the cache ----

// cached returns the folder for a key, which make fills if it isn't there yet. Other
// processes that want the same wait for it.
func cached(kind string, key func() (string, error), make func(dir string) error) (string, error) {
	k, err := key()
	if err != nil {
		return "", err
	}
	root, err := cacheRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, fmt.Sprintf("%s-%x", kind, sha256.Sum256([]byte(k)))[:len(kind)+1+24])
	if exists(dir) {
		now := time.Now()
		return dir, os.Chtimes(dir, now, now)
	}
	unlock, err := lock(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(dir) {
		return dir, nil
	}
	prune(root)
	return dir, fill(dir, make)
}

// prune removes what nobody has used for a month. What can't be removed is left to the
// next time.
func prune(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > 30*24*time.Hour {
			os.RemoveAll(filepath.Join(root, e.Name()))
		}
	}
}

func fill(dir string, make func(dir string) error) error {
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := make(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil && !exists(dir) {
		return err
	}
	return nil
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

func cacheRoot() (string, error) {
	root, err := os.UserCacheDir()
	if err != nil {
		root = os.TempDir()
	}
	root = filepath.Join(root, "fieldstone", "fakegpu")
	return root, os.MkdirAll(root, 0o777)
}

func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
