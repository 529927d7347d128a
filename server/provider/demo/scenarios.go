package demo

import (
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed scenarios/*.txt
var files embed.FS

// defaultScenario is played where nobody chose.
const defaultScenario = "plain"

// shown lists the scenarios that people are offered, in that order. The others are
// for tests.
var shown = []string{"plain", "three-reviewers", "nested", "failing-child", "root-first", "shell", "continuation", "never-cancels"}

// builtIn parses the built-in scenarios once. A mistake in one is a mistake in this
// program; the test of this package finds it.
var builtIn = sync.OnceValue(func() map[string]*Script {
	scripts := map[string]*Script{}
	entries, err := files.ReadDir("scenarios")
	if err != nil {
		panic(err)
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), ".txt")
		text, err := files.ReadFile("scenarios/" + e.Name())
		if err != nil {
			panic(err)
		}
		if scripts[id], err = Parse(id, string(text)); err != nil {
			panic(fmt.Sprintf("demo: %v", err))
		}
	}
	return scripts
})

// BuiltIn lists the ids of the built-in scenarios, those for tests included.
func BuiltIn() []string { return slices.Sorted(maps.Keys(builtIn())) }

// named finds the scenario that a message asks for: its text is the id, or has an id of
// several words in it (a plain word may just be a word).
func (a *Adapter) named(text string) *Script {
	if s := a.scripts[strings.TrimSpace(strings.ToLower(text))]; s != nil {
		return s
	}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	}) {
		if s := a.scripts[word]; s != nil && strings.Contains(word, "-") {
			return s
		}
	}
	return nil
}
