package sentinel_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/sentinel"

	// Every package that has sentinel errors, so that what they register is here.
	_ "github.com/fieldstone-io/fieldstone/brick"
	_ "github.com/fieldstone-io/fieldstone/comm"
	_ "github.com/fieldstone-io/fieldstone/device"
	_ "github.com/fieldstone-io/fieldstone/field"
	_ "github.com/fieldstone-io/fieldstone/internal/h5"
	_ "github.com/fieldstone-io/fieldstone/internal/samerun"
	_ "github.com/fieldstone-io/fieldstone/internal/shm"
	_ "github.com/fieldstone-io/fieldstone/internal/vfs"
	_ "github.com/fieldstone-io/fieldstone/internal/xdmf"
	_ "github.com/fieldstone-io/fieldstone/publish"
	_ "github.com/fieldstone-io/fieldstone/record"
	_ "github.com/fieldstone-io/fieldstone/runfile"
)

// An error that no rank can have in common with others is of no use to a caller: every
// sentinel error of every package is registered by it.
func TestEverySentinelErrorIsRegistered(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			// Programs, whose errors end with them, and what is no package of the module.
			if name == "cmd" || name == "bench" || name == "examples" || name == "build" || name == "testdata" || strings.HasPrefix(name, ".") && path != root {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, v := range sentinels(file) {
			found++
			if !isRegistered(v) {
				t.Errorf("%s: %s is not registered with package sentinel (or this test doesn't import its package)", path, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 50 {
		t.Errorf("%d sentinel errors are found: the test doesn't see them", found)
	}
}

// sentinels are the exported error variables that a file makes, with the name of its
// package. One that is another package's is registered there.
func sentinels(file *ast.File) (list []string) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if !strings.HasPrefix(name.Name, "Err") || i < len(v.Values) && isSelector(v.Values[i]) {
					continue
				}
				list = append(list, file.Name.Name+"."+name.Name)
			}
		}
	}
	return list
}

func isSelector(e ast.Expr) bool {
	_, ok := e.(*ast.SelectorExpr)
	return ok
}

func isRegistered(name string) bool { return len(sentinel.Errors([]string{name})) == 1 }

func TestSentinelsAreSeenInEveryFormOfDeclaration(t *testing.T) {
	const source = `package p
var ErrOne = errors.New("one")
var (
	// ErrTwo has a comment.
	ErrTwo, ErrThree = errors.New("two"), fmt.Errorf("three: %w", errors.ErrUnsupported)
	ErrOther = other.ErrOther
	errOwn = errors.New("own")
)
func f() { ErrLocal := errors.New("local"); _ = ErrLocal }
const ErrNumber = 1
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sentinels(file), []string{"p.ErrOne", "p.ErrTwo", "p.ErrThree"}; !slices.Equal(got, want) {
		t.Errorf("sentinels are %q, want %q", got, want)
	}
}

func TestNamesAndErrors(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	sentinel.RegisterAll("sentinel_test", map[string]error{"one": one, "two": two})
	sentinel.Register("sentinel_test.one", one) // the same again

	names := sentinel.Names(fmt.Errorf("read: %w", errors.Join(two, one, &fs.PathError{Op: "open", Path: "f", Err: fs.ErrNotExist})))
	slices.Sort(names)
	if want := []string{"fs.ErrNotExist", "sentinel_test.one", "sentinel_test.two"}; !slices.Equal(names, want) {
		t.Errorf("names are %q, want %q", names, want)
	}
	if got, want := sentinel.Errors(append(names, "sentinel_test.unknown")), []error{fs.ErrNotExist, one, two}; !slices.Equal(got, want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
	if names := sentinel.Names(nil); names != nil {
		t.Errorf("no error has the names %q", names)
	}
	for what, register := range map[string]func(){
		"nil":                  func() { sentinel.Register("sentinel_test.nil", nil) },
		"a name that is taken": func() { sentinel.Register("sentinel_test.one", two) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("registered %s", what)
				}
			}()
			register()
		}()
	}
}
