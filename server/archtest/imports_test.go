package archtest

import (
	"slices"
	"strings"
	"testing"
)

// rule is the import column of docs/architecture.md for one package.
type rule struct {
	pkg string   // path below the module; "x/*" stands for each package directly below x
	may []string // packages of this module; "*" for all
	why string   // what a forbidden import would break
}

// rules is first match. A package that none matches fails the test: add a line.
var rules = []rule{
	{"server/agent", nil, "the domain is read first and enumerated in memory: it must stand alone"},
	{"server/agent/orders", []string{"server/agent"}, "every legal order of events is made from the domain alone, so that memory and storage can be held to the same ones"},
	{"db", nil, "opening a file must not depend on what is stored in it"},
	{"db/dbgen", []string{"server/agent"}, "generated rows know the domain's types and nothing else"},
	{"server/store", []string{"server/agent", "db", "db/dbgen"}, "a transaction that called live, hub or api could not be retried or tested alone"},
	{"server/acp", nil, "messages of the Agent Client Protocol are data, for the client and the agent alike"},
	{"server/acpagent", []string{"server/acp", "server/agent", "server/provider/wire", "clientgen/goclient"}, "editors are served like any other client, and nothing of storage or a provider is within reach"},
	{"server/hub", []string{"server/agent"}, "fan-out must not be able to write, nor to wait for storage's caller"},
	{"server/provider", []string{"server/agent"}, "the contract knows no provider"},
	{"server/provider/proc", nil, "processes are started and ended the same way for everyone"},
	{"server/provider/wire", nil, "lines and JSON-RPC are the same for everyone"},
	{"server/provider/show", nil, "what a tool did reads alike for everyone"},
	{"server/provider/form", []string{"server/agent", "server/provider/show"}, "a form of an MCP server is the same for everyone"},
	{"server/provider/serial", nil, "one thing at a time is the same for everyone"},
	{"server/provider/runner", []string{"server/agent", "server/provider", "server/provider/serial", "server/provider/wire"}, "how a process and its runtime end together is the same for everyone"},
	{"server/provider/tape", []string{"server/agent"}, "a recording's processes are played to any adapter"},
	{"server/provider/providertest", []string{"server/agent", "server/provider"}, "one conformance suite must not favour an adapter"},
	{"server/provider/modeltest", nil, "a scripted model plays the other side for the real program, and must not share an adapter's mistakes"},
	{"server/provider/realtest", []string{"server/agent", "server/command", "server/live", "server/provider", "server/provider/modeltest", "server/provider/providertest", "server/replay", "server/store"}, "a real program is held against the whole of the daemon that does not listen, whatever its provider"},
	{"server/provider/modeltest/modelserver", []string{"server/provider/modeltest", "server/provider/codex/codextest", "server/provider/claude/claudetest"}, "it is the scripted models with a door, and knows no daemon"},
	{"server/provider/codex/codextest", []string{"server/provider/modeltest"}, "it plays the other side for the real program, and must not share the adapter's mistakes"},
	{"server/provider/claude/claudetest", []string{"server/provider/modeltest"}, "it plays the other side for the real program, and must not share the adapter's mistakes"},
	{"server/provider/acp", []string{"server/acp", "server/agent", "server/provider", "server/provider/form", "server/provider/proc", "server/provider/runner", "server/provider/serial", "server/provider/show", "server/provider/tape", "server/provider/wire"}, "as any adapter; the messages are shared with the agent's side"},
	{"server/provider/*", []string{"server/agent", "server/provider", "server/provider/form", "server/provider/proc", "server/provider/runner", "server/provider/serial", "server/provider/show", "server/provider/tape", "server/provider/wire"}, "adapters never import one another, and reach storage through their Sink alone"},
	{"server/live", []string{"server/agent", "server/provider"}, "the actor orders facts for any adapter and any recorder"},
	{"server/command", []string{"server/agent"}, "what a person wants is decided without storage or provider code; it declares the interfaces it needs"},
	{"server/replay", []string{"server/agent", "server/command", "server/live", "server/provider", "server/provider/acp", "server/provider/claude", "server/provider/codex", "server/provider/wire", "server/store"}, "a replay is the real adapter and the real store, and nothing that listens"},
	{"server/api", []string{"server/agent", "server/command", "server/hub", "server/provider", "web"}, "the API reads through an interface and changes through commands, so that it opens nothing to print its own description"},
	{"server/config", nil, "what was set is decided before anything exists"},
	{"server/daemon", []string{"*"}, "the composition root imports all, and only the command line imports it"},
	{"server/cli", []string{"server/acpagent", "server/daemon", "server/api", "server/config", "server/replay", "clientgen/goclient"}, "the command line is a client like any other"},
	{"server/cmd/turnkeeper", []string{"server/cli"}, "main only hands over"},
	{"server/bench/*", []string{"*"}, "measures anything, is imported by nothing"},
	{"server/archtest", nil, "looks at sources, not at code"},
	{"clientgen/goclient", nil, "a client must not need the server's packages"},
	{"web", nil, "it embeds files"},
}

func ruleOf(path string) (rule, bool) {
	for _, r := range rules {
		if r.pkg == path {
			return r, true
		}
		if parent, ok := strings.CutSuffix(r.pkg, "/*"); ok {
			if rest, below := strings.CutPrefix(path, parent+"/"); below && !strings.Contains(rest, "/") {
				return r, true
			}
		}
	}
	return rule{}, false
}

func TestImports(t *testing.T) {
	for _, p := range packages(t) {
		path := p.local()
		r, ok := ruleOf(path)
		if !ok {
			t.Errorf("%s is in no rule: say in server/archtest what it may import, and why", path)
			continue
		}
		for _, imp := range p.Imports {
			local, ours := strings.CutPrefix(imp, module+"/")
			if !ours || slices.Contains(r.may, local) || slices.Contains(r.may, "*") {
				continue
			}
			t.Errorf("%s imports %s, which it may not: %s", path, local, r.why)
		}
	}
}

// Only the daemon may be imported by the command line alone; a bench is imported by nobody.
func TestComposersAreNotImported(t *testing.T) {
	for _, p := range packages(t) {
		for _, imp := range p.Imports {
			local, ours := strings.CutPrefix(imp, module+"/")
			if ours && local == "server/daemon" && p.local() != "server/cli" || strings.HasPrefix(local, "server/bench") {
				t.Errorf("%s imports %s, which composes and is not composed", p.local(), local)
			}
		}
	}
}

// pure are the standard packages without a clock, a context or I/O.
var pure = []string{
	"bytes", "cmp", "encoding/json", "errors", "fmt", "iter", "maps", "math", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8",
}

// What the rules decide must follow from their arguments alone: otherwise walking every
// order of events in memory would prove nothing about the daemon.
func TestTheDomainIsPure(t *testing.T) {
	for _, p := range packages(t) {
		if p.local() != "server/agent" {
			continue
		}
		for _, imp := range p.Imports {
			if !slices.Contains(pure, imp) {
				t.Errorf("server/agent imports %s, which is not among the pure standard packages", imp)
			}
		}
		for _, f := range p.files(t) {
			for _, name := range []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"} {
				for _, pos := range f.selectors("time", name) {
					t.Errorf("%s: time.%s: the domain has no clock", pos, name)
				}
			}
		}
	}
}
