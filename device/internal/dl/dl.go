// Package dl calls C functions of libraries that are found when the program
// runs, so that neither a C compiler nor the library is needed to build it.
//
// Arguments are integers and pointers, at most eleven; results are C ints. A
// pointer to Go memory is converted in the argument itself,
// uintptr(unsafe.Pointer(p)): then what it points to lies on the heap and stays
// until the function returns, see the methods' directive.
package dl

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/fieldstone-io/fieldstone/device"
)

// Library is a loaded library. It stays loaded.
type Library struct {
	name   string
	handle uintptr
}

// Open returns the first of the named libraries that the program has loaded already, or
// otherwise the first one that can be loaded: there must not be two versions of a
// driver in a process. A name with a slash is the file of that name, others are looked
// for by the system's loader. The error is device.ErrUnavailable, with the loader's
// reason for each name.
func Open(names ...string) (*Library, error) {
	for _, name := range names {
		if handle, ok := opened(name); ok {
			return &Library{name, handle}, nil
		}
	}
	var reasons []string
	for _, name := range names {
		handle, err := open(name)
		if err == nil {
			return &Library{name, handle}, nil
		}
		reasons = append(reasons, err.Error())
	}
	return nil, fmt.Errorf("%w: %s", device.ErrUnavailable, strings.Join(reasons, "; "))
}

// InFolders returns the files that names without a slash have in some folders, for those
// where loaders don't look.
func InFolders(names []string, folders ...string) []string {
	var files []string
	for _, folder := range folders {
		for _, name := range names {
			files = append(files, filepath.Join(folder, name))
		}
	}
	return files
}

// Name returns the name by which the library was found.
func (l *Library) Name() string { return l.name }

// Func is a C function.
type Func uintptr

// Func returns the first of the named functions that the library has. The
// error is device.ErrUnavailable.
func (l *Library) Func(names ...string) (Func, error) {
	for _, name := range names {
		if f, err := symbol(l.handle, name); err == nil {
			return Func(f), nil
		}
	}
	return 0, fmt.Errorf("%w: %s lacks %s", device.ErrUnavailable, l.name, strings.Join(names, " and "))
}

// Bind sets each function of a table to the library's function of that name.
func (l *Library) Bind(table map[string]*Func) error {
	for name, f := range table {
		var err error
		if *f, err = l.Func(name); err != nil {
			return err
		}
	}
	return nil
}

// words are the arguments of a call, on the heap, and in the last place what the
// function returns through a pointer.
type words [maxArgs + 1]uintptr

const maxArgs = 11

var pool = sync.Pool{New: func() any { return new(words) }}

func call(f Func, args ...uintptr) uintptr {
	w := pool.Get().(*words)
	defer pool.Put(w)
	return invoke(f, w[:copy(w[:], args)])
}

// Out calls a function that has, before the given arguments, a pointer to a
// place for one word, or less, and returns what the function put there.
//
//go:uintptrescapes
func (f Func) Out(args ...uintptr) (value uintptr, result int32) {
	w := pool.Get().(*words)
	defer pool.Put(w)
	out := &w[maxArgs]
	*out = 0
	w[0] = uintptr(unsafe.Pointer(out))
	result = int32(invoke(f, w[:1+copy(w[1:maxArgs], args)]))
	return *out, result
}

// Text calls a function that returns a C string, which must be one for ever.
func (f Func) Text(a uintptr) string { return Text(call(f, a)) }

// Text returns a copy of the C string at an address that isn't Go's.
func Text(address uintptr) string {
	p := *(*unsafe.Pointer)(unsafe.Pointer(&address))
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// Call0 calls a function without arguments.
func (f Func) Call0() int32 { return int32(call(f)) }

// Call1 calls a function with one argument.
//
//go:uintptrescapes
func (f Func) Call1(a uintptr) int32 { return int32(call(f, a)) }

// Call2 calls a function with two arguments.
//
//go:uintptrescapes
func (f Func) Call2(a, b uintptr) int32 { return int32(call(f, a, b)) }

// Call3 calls a function with three arguments.
//
//go:uintptrescapes
func (f Func) Call3(a, b, c uintptr) int32 { return int32(call(f, a, b, c)) }

// Call4 calls a function with four arguments.
//
//go:uintptrescapes
func (f Func) Call4(a, b, c, d uintptr) int32 { return int32(call(f, a, b, c, d)) }

// Call5 calls a function with five arguments.
//
//go:uintptrescapes
func (f Func) Call5(a, b, c, d, e uintptr) int32 { return int32(call(f, a, b, c, d, e)) }

// Call11 calls a function with eleven arguments.
//
//go:uintptrescapes
func (f Func) Call11(a, b, c, d, e, g, h, i, j, k, l uintptr) int32 {
	return int32(call(f, a, b, c, d, e, g, h, i, j, k, l))
}
