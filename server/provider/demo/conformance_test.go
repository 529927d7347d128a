package demo_test

import (
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
	"github.com/turnkeeper/turnkeeper/server/provider/providertest"
)

func TestConformance(t *testing.T) {
	providertest.Run(t, providertest.Harness{
		Bubble: true,
		New: func(t *testing.T, name string) providertest.Play {
			scripts := []*demo.Script{parse(t, "again.", "root\n  say [root] again\n")}
			scripts = append(scripts, parse(t, "case", conformance[name]))
			return providertest.Play{
				Adapter: demo.New(demo.Options{Speed: 1, Scripts: scripts}),
				Root:    agent.Session{Scenario: "case"},
			}
		},
	})
}

func parse(t *testing.T, id, text string) *demo.Script {
	t.Helper()
	s, err := demo.Parse(id, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	plainCase = `
root
  say [root] hello
  tool shell true
    > fine
  say [root] done
`
	busyCase = `
root
  spawn one
  spawn two
  join
  say [root] done
agent one
  say [one] hi
  wait 5s
agent two
  say [two] hi
  wait 5s
`
	childCase = `
root
  spawn one
  join
  say [root] done
agent one
  say [one] hi
  wait 5s
`
	askCase = `
root
  spawn one
  join
agent one
  say [one] hi
  ask approval Run it?
    command go test ./...
    allow Yes
      say [one] ran
    deny No
      say [one] skipped
`
	backgroundCase = `
root
  spawn one
  end
agent one
  say [one] hi
  wait 5s
guidance
  say [root] noted
`
)

// conformance holds the script of each case.
var conformance = map[string]string{
	"plain": plainCase, "unknown-answer": plainCase, "resume": plainCase, "canceled-open": plainCase,
	"child":      childCase,
	"duplicates": "every fact twice" + childCase,
	"two-in-order": `
root
  spawn one
  spawn two
  join
  say [root] done
agent one
  say [one] hi
  wait 3s
  say [one] bye
agent two
  say [two] hi
  wait 6s
  say [two] bye
`,
	"two-in-reverse": `
root
  spawn one
  spawn two
  join
  say [root] done
agent one
  say [one] hi
  wait 6s
  say [one] bye
agent two
  say [two] hi
  wait 3s
  say [two] bye
`,
	"nested": `
root
  spawn one
  join
agent one
  say [one] hi
  spawn nested foreground
agent nested
  say [nested] hi
  wait 5s
`,
	"root-first": backgroundCase, "guide-children": backgroundCase,
	"failing-child": `
root
  spawn one
  join
  say [root] done
agent one
  say [one] hi
  wait 2s
  fail Out of credit.
`,
	"approval-accept": askCase, "approval-decline": askCase, "cancel-asking": askCase,
	"root-approval": `
root
  say [root] hello
  ask approval Run it?
    command go test ./...
    allow Yes
      say [root] ran
    deny No
`,
	"withdrawn": `
root
  spawn one
  join
agent one
  say [one] hi
  ask approval Run it?
    command go test ./...
    withdraw 3s
    allow Yes
    deny No
  say [one] went on
`,
	"cancel-root": busyCase, "cancel-child": busyCase, "close": busyCase, "forget": busyCase,
	"cancel-settled-child": `
root
  spawn one
  say [root] hello
  wait 5s
agent one
  say [one] hi
`,
	"spawn-after-cancel": `
ignores cancel
root
  spawn one
  spawn two
  wait 2s
  spawn stray
  join
agent one
  say [one] hi
  wait 5s
agent two
  say [two] hi
  wait 5s
agent stray
  say [stray] hi
`,
	"unasked": `
root
  say [root] done
  end
  wait 3s
  unasked
    say [root] by the way
`,
	"unasked-after-cancel": `
ignores cancel
root
  say [root] hello
  wait 5s
  end
  wait 15s
  unasked
    say [root] by the way
`,
	"steer": `
root
  say [root] hello
  wait 5s
guidance
  say [root] noted
`,
	"death-root": `
root
  say [root] hello
  wait 1s
  die
`,
	"death-children": `
root
  spawn one
  end
agent one
  say [one] hi
  wait 3s
  die
`,
	"death-asking": `
root
  spawn one
  wait 6s
  die
agent one
  say [one] hi
  ask approval Run it?
    command go test ./...
    allow Yes
`,
	"death-idle": plainCase + `
  end
  wait 3s
  die
`,
	"late": `
root
  spawn one
  say [root] hello
agent one
  say [one] hi
  end
  say [one] late
  fail After the end.
`,
	"garbage": `
root
  say [root] hello
  garbage
  tool shell true
    > fine
  garbage
  say [root] done
`,
	"early": `
root
  spawn one late 2s
  join
  say [root] done
agent one
  say [one] hi
  wait 5s
`,
	"orphan": `
root
  orphan stray
  say [root] hello
  wait 2s
agent stray
  say [stray] hi
`,
}
