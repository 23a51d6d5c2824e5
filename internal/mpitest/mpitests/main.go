// Mpitests prints the tests and examples that can differ with MPI, as a pattern for
// go test -run, and with -packages the packages that have some. The arguments are
// packages of this module; without any these are all.
//
//	go test -run "$(go run ./internal/mpitest/mpitests)" $(go run ./internal/mpitest/mpitests -packages)
//
// It takes those from which names lead to package mpitest or mpi, or to comm.World, those in
// files that are built with the tag mpi alone, and all of packages that call package mpi. Where two things have one name, it follows both: a test
// too many costs a little time.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/fieldstone-io/fieldstone"

func main() {
	asPackages := flag.Bool("packages", false, "print the packages with such tests")
	flag.Parse()
	names, packages, err := choose(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mpitests:", err)
		os.Exit(1)
	}
	if *asPackages {
		fmt.Println(strings.Join(packages, "\n"))
		return
	}
	fmt.Printf("^(%s)$\n", strings.Join(names, "|"))
}

// choose returns the names of tests, and the packages that have them.
func choose(patterns []string) (names, packages []string, err error) {
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Imports"}, patterns...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]bool{}
	for list := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Dir, ImportPath string
			Imports         []string
		}
		if err := list.Decode(&p); errors.Is(err, io.EOF) {
			return slices.Sorted(maps.Keys(found)), packages, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			return nil, nil, err
		}
		t := newTests()
		for _, file := range files {
			if err := t.read(file); err != nil {
				return nil, nil, err
			}
		}
		calls := p.ImportPath == module+"/internal/mpi" || slices.Contains(p.Imports, module+"/internal/mpi")
		chosen := t.chosen(calls)
		for _, name := range chosen {
			found[name] = true
		}
		if len(chosen) > 0 {
			packages = append(packages, p.ImportPath)
		}
	}
}

// tests are the declarations of a package's tests.
type tests struct {
	leads   map[string]map[string]bool // from a declared name to the names in it
	differs map[string]bool            // the names that lead to MPI themselves
}

func newTests() *tests {
	return &tests{leads: map[string]map[string]bool{}, differs: map[string]bool{}}
}

// read adds the declarations of a file. Those of both of a package's names, with _test
// and without, are taken together, as are those of all systems.
func (t *tests) read(name string) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	tagged := onlyWithMPI(file)
	for _, decl := range file.Decls {
		for _, name := range declared(decl) {
			if t.leads[name] == nil {
				t.leads[name] = map[string]bool{}
			}
			ast.Inspect(decl, func(n ast.Node) bool { return t.note(name, n) })
			if tagged {
				t.differs[name] = true
			}
		}
	}
	return nil
}

// note adds one node of a declaration, and reports whether those in it count.
func (t *tests) note(name string, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Ident:
		t.leads[name][n.Name] = true
	case *ast.SelectorExpr:
		if x, ok := n.X.(*ast.Ident); ok {
			// What every test of this module says of the types in its arguments is no call.
			call := x.Name == "mpitest" && n.Sel.Name != "T"
			call = call || x.Name == "mpi" || x.Name == "comm" && slices.Contains([]string{"World", "FromFortran", "Finalize"}, n.Sel.Name)
			t.differs[name] = t.differs[name] || call
		}
		// A method, or a name of another package. Methods are declared with a dot.
		t.leads[name]["."+n.Sel.Name] = true
		ast.Inspect(n.X, func(n ast.Node) bool { return n == nil || t.note(name, n) })
		return false
	}
	return true
}

// declared are the names of a declaration; those of methods begin with a dot. Imports have none.
func declared(decl ast.Decl) (names []string) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			return []string{"." + d.Name.Name}
		}
		if d.Name.Name != "init" {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}

// onlyWithMPI reports whether a file is built with the tag mpi, and never without.
func onlyWithMPI(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if group.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				return false
			}
			is := func(mpi, others bool) bool {
				return expr.Eval(func(tag string) bool { return tag == "mpi" && mpi || tag != "mpi" && others })
			}
			return (is(true, true) || is(true, false)) && !is(false, true) && !is(false, false)
		}
	}
	return false
}

// chosen are the tests, or all of them, from which names lead to MPI.
func (t *tests) chosen(all bool) (names []string) {
	for name := range t.leads {
		if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Example") || name == "TestMain" {
			continue
		}
		if all || t.reaches(name, map[string]bool{}) {
			names = append(names, name)
		}
	}
	return names
}

func (t *tests) reaches(name string, seen map[string]bool) bool {
	if t.differs[name] {
		return true
	}
	seen[name] = true
	for next := range t.leads[name] {
		if _, here := t.leads[next]; here && !seen[next] && t.reaches(next, seen) {
			return true
		}
	}
	return false
}
