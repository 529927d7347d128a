package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

const module = "github.com/turnkeeper/turnkeeper"

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pkg is the part of `go list -json` that the rules look at.
type pkg struct {
	Dir          string
	ImportPath   string
	Doc          string
	Imports      []string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
}

func (p pkg) local() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// packages lists this module's, once.
func packages(t *testing.T) []pkg {
	t.Helper()
	list, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	out, err := goTool("list", "-json=Dir,ImportPath,Doc,Imports,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	if err != nil {
		return nil, err
	}
	var list []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
})

// goTool runs the go command at the module's root and returns what it printed.
func goTool(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.New("go " + strings.Join(args, " ") + ": " + err.Error() + ": " + stderr.String())
	}
	return out, nil
}

// root is the module's directory: tests run in their package's.
func root() string { return filepath.Join("..", "..") }

// file is one parsed source file.
type file struct {
	path string
	fset *token.FileSet
	ast  *ast.File
}

func parse(t *testing.T, path string) file {
	t.Helper()
	fset := token.NewFileSet()
	tree, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file{path, fset, tree}
}

// files parses the package's own sources, generated ones left out.
func (p pkg) files(t *testing.T) []file { return p.parseAll(t, p.GoFiles) }

// testFiles parses the package's tests.
func (p pkg) testFiles(t *testing.T) []file {
	return append(p.parseAll(t, p.TestGoFiles), p.parseAll(t, p.XTestGoFiles)...)
}

func (p pkg) parseAll(t *testing.T, names []string) []file {
	t.Helper()
	var out []file
	for _, name := range names {
		if f := parse(t, filepath.Join(p.Dir, name)); !ast.IsGenerated(f.ast) {
			out = append(out, f)
		}
	}
	return out
}

func (f file) imports(path string) bool {
	for _, spec := range f.ast.Imports {
		if spec.Path.Value == `"`+path+`"` {
			return true
		}
	}
	return false
}

// selectors are the places that say x.name.
func (f file) selectors(x, name string) []token.Position {
	var out []token.Position
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			if id, ok := sel.X.(*ast.Ident); ok && id.Name == x {
				out = append(out, f.fset.Position(n.Pos()))
			}
		}
		return true
	})
	return out
}
