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

// A test that sleeps is slow when it passes and wrong when it fails; one that is skipped
// says nothing.
func TestTestsNeitherSleepNorSkip(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.testFiles(t) {
			if p.local() == "server/archtest" {
				continue
			}
			for _, pos := range f.selectors("time", "Sleep") {
				t.Errorf("%s: time.Sleep in a test: use testing/synctest or wait for a signal", pos)
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

// Storage must say what every kind of fact does. The switch is found by what it covers, so
// that moving it does not lose the rule.
func TestStorageSwitchesOverEveryFact(t *testing.T) {
	facts := map[string]bool{}
	var store []file
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
			store = p.files(t)
		}
	}
	if len(facts) == 0 {
		t.Fatal("no facts found in server/agent")
	}
	missing := facts
	for _, f := range store {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if sw, ok := n.(*ast.TypeSwitchStmt); ok {
				if left := uncovered(sw, facts); len(left) < len(missing) {
					missing = left
				}
			}
			return true
		})
	}
	for name := range missing {
		t.Errorf("no type switch of server/store covers every fact; the best lacks agent.%s", name)
	}
}

func receiver(fn *ast.FuncDecl) string {
	if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

// uncovered are the facts that no case of the switch names.
func uncovered(sw *ast.TypeSwitchStmt, facts map[string]bool) map[string]bool {
	left := map[string]bool{}
	for name := range facts {
		left[name] = true
	}
	for _, clause := range sw.Body.List {
		for _, expr := range clause.(*ast.CaseClause).List {
			if sel, ok := expr.(*ast.SelectorExpr); ok {
				delete(left, sel.Sel.Name)
			}
		}
	}
	return left
}
