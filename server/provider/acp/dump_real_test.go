//go:build providers

package acp_test

import ("testing"; "fmt"; "github.com/turnkeeper/turnkeeper/server/agent"; . "github.com/turnkeeper/turnkeeper/server/provider/modeltest")

func TestDump(t *testing.T) {
	for _, p := range []program{codexACP(1), claudeACP(1)} {
		s := p.start(t, Script{"root": {{Say("Hello from the script.")}, {Say("t")}, {Say("t")}},"aside":{{Say("x")},{Say("x")}}}, p.full)
		s.Say("Say hello")
		s.Settles(agent.OutcomeCompleted)
		s.Say("And again"); s.Said(s.Root, "t"); s.Settles(agent.OutcomeCompleted); s.End()
		for _, n := range []string{"root","aside"} {
			for _, r := range s.Model.Requests(n) { b := string(r.Body); if len(b) > 1500 { b = b[:700]+" ....... "+b[len(b)-800:] }; fmt.Println(n, r.Thread, r.Header, len(r.Body), b) }
		}
	}
}
