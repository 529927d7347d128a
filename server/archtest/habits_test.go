package archtest

import (
	"go/ast"
	"strings"
	"testing"
)

// A package without a comment tells nobody what it owns and what it must not know.
func TestEveryPackageHasAComment(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && len(p.GoFiles) > 0 && !strings.HasSuffix(p.local(), "/dbgen") {
			t.Errorf("%s has no package comment", p.local())
		}
	}
}

// hardLimit is the length at which a file has begun to own a second idea.
const hardLimit = 500

func TestFilesAreOfOneIdea(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.files(t) {
			if n := f.fset.File(f.ast.Pos()).LineCount(); n > hardLimit {
				t.Errorf("%s has %d lines; split it before %d", f.path, n, hardLimit)
			}
		}
	}
}

// A test that sleeps is slow when it passes and wrong when it fails, unless its time is
// virtual; one that is skipped says nothing.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.testFiles(t) {
			if p.local() == "server/archtest" {
				continue
			}
			sleeps := f.selectors("time", "Sleep")
			if f.imports("testing/synctest") {
				sleeps = nil
			}
			for _, pos := range sleeps {
				t.Errorf("%s: time.Sleep in a test: use testing/synctest or wait for a signal", pos)
			}
			if f.imports("pgregory.net/rapid") {
				continue // an action that does not apply skips itself: that drops a draw, not a test
			}
			for _, name := range []string{"Skip", "Skipf", "SkipNow"} {
				for _, receiver := range []string{"t", "b", "tb"} {
					for _, pos := range f.selectors(receiver, name) {
						t.Errorf("%s: a skipped test says nothing: make it run or remove it", pos)
					}
				}
			}
		}
	}
}

// Storage must say what it does with every kind of fact: each is a case of a type switch
// there, or the type of an assertion. The linters ask the same of each switch by itself.
func TestStorageKnowsEveryFact(t *testing.T) {
	facts := map[string]bool{}
	handled := map[string]bool{}
	for _, p := range packages(t) {
		switch p.local() {
		case "server/agent":
			for _, f := range p.files(t) {
				for _, d := range f.ast.Decls {
					if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "isFact" {
						facts[receiver(fn)] = true
					}
				}
			}
		case "server/store":
			for _, f := range p.files(t) {
				f.typesAskedFor(handled)
			}
		}
	}
	if len(facts) == 0 {
		t.Fatal("no facts found in server/agent")
	}
	for name := range facts {
		if !handled[name] {
			t.Errorf("server/store does nothing about agent.%s", name)
		}
	}
}

// typesAskedFor adds the names x of every agent.x that a case or an assertion names.
func (f file) typesAskedFor(names map[string]bool) {
	add := func(e ast.Expr) {
		if sel, ok := e.(*ast.SelectorExpr); ok {
			names[sel.Sel.Name] = true
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSwitchStmt:
			for _, clause := range n.Body.List {
				for _, expr := range clause.(*ast.CaseClause).List {
					add(expr)
				}
			}
		case *ast.TypeAssertExpr:
			add(n.Type)
		}
		return true
	})
}

func receiver(fn *ast.FuncDecl) string {
	if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}
