package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// providerNames are the words that stand for one provider.
var providerNames = []string{"codex", "claude", "acp", "demo"}

// mayName says where an identifier may carry a provider's name, and why.
var mayName = map[string]string{
	"server/acp":                 "the protocol's messages bear its name, and no agent's",
	"server/acpagent":            "it serves that protocol",
	"server/config":              "a person sets where the program of one provider is",
	"server/daemon/adapters.go":  "the one table from names to constructors",
	"server/replay/providers.go": "a recording is of one provider: the table from names to the adapter that reads it",
	"server/bench":               "a yardstick may be about one provider",
}

// A provider that is known outside its package decides things there, and the next one
// then needs the same exception.
func TestProvidersAreNamedInTheirOwnPackagesOnly(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.local(), "server/provider/") || strings.HasPrefix(p.local(), "clientgen/") {
			continue
		}
		for _, f := range p.files(t) {
			place := p.local() + "/" + f.path[strings.LastIndexByte(f.path, '/')+1:]
			if allowedToName(place) {
				continue
			}
			ast.Inspect(f.ast, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && slices.ContainsFunc(words(id.Name), func(w string) bool { return slices.Contains(providerNames, w) }) {
					t.Errorf("%s: identifier %s names a provider; only server/provider/<x> and %v may", f.fset.Position(id.Pos()), id.Name, keysOf(mayName))
				}
				return true
			})
		}
	}
}

func allowedToName(place string) bool {
	for where := range mayName {
		if place == where || strings.HasPrefix(place, where+"/") {
			return true
		}
	}
	return false
}

func keysOf(m map[string]string) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// words splits an identifier at its capitals and underscores: openACPAgent is open, acp,
// agent.
func words(identifier string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			out = append(out, strings.ToLower(string(word)))
			word = nil
		}
	}
	runes := []rune(identifier)
	for i, r := range runes {
		starts := unicode.IsUpper(r) && (i == 0 || !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if r == '_' || starts {
			flush()
		}
		if r != '_' {
			word = append(word, r)
		}
	}
	flush()
	return out
}

func TestWords(t *testing.T) {
	for in, want := range map[string][]string{
		"openACPAgent": {"open", "acp", "agent"}, "codexBin": {"codex", "bin"}, "Capacity": {"capacity"},
		"CODEX_BIN": {"codex", "bin"}, "demo": {"demo"}, "backpressure": {"backpressure"},
	} {
		if got := words(in); !slices.Equal(got, want) {
			t.Errorf("words(%s) = %v, want %v", in, got, want)
		}
	}
}
