package acpagent

import (
	"encoding/json"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/demo"
)

// play prompts a session of the built-in provider and answers whatever it asks with the
// first choice, until the turn has ended.
func (e *editor) play(scenario string) {
	e.t.Helper()
	var r acp.SessionResponse
	e.must(acp.MethodNewSession, map[string]any{"cwd": e.w.dir, "mcpServers": []any{}, "_meta": map[string]any{"turnkeeper": map[string]string{"provider": "demo", "scenario": scenario}}}, &r)
	e.mu.Lock()
	e.roots[r.SessionID] = true
	e.mu.Unlock()
	at := e.since()
	prompt := e.prompt(r.SessionID, "Go.")
	for {
		l, i := e.from(at, "the end of "+scenario, func(l line) bool {
			s, ok := l.note.Update.Variant.(*acp.StateUpdate)
			ended := l.Method == "" && string(l.ID) == prompt && e.version == acp.V1 || ok && l.note.SessionID == r.SessionID && s.State == acp.StateIdle
			return ended || isRequest(acp.MethodRequestPermission)(l) || isRequest(acp.MethodElicit)(l)
		})
		at = i + 1
		switch l.Method {
		case acp.MethodRequestPermission:
			var p acp.PermissionRequest
			if err := json.Unmarshal(l.Params, &p); err != nil {
				e.t.Fatal(err)
			}
			e.answer(l, acp.Selected(p.Options[0].OptionID))
		case acp.MethodElicit:
			e.answer(l, acp.ElicitResponse{Action: "decline"})
		default:
			return
		}
	}
}

// Every scenario of the built-in provider, as an editor with and without subagents sees it:
// what must hold in every conversation holds, and the schemas take every line.
func TestScenarios(t *testing.T) {
	for name, o := range map[string]editorOptions{"subagents": {forms: true}, "flat": {flat: true}} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, version int) {
				if o.flat && version == acp.V2 {
					return // it always has them
				}
				w := newWorld(t, newFake(), demo.New(demo.Options{Speed: 50}))
				e := w.newEditor(version, o)
				played := []string{
					"plain", "three-reviewers", "nested", "failing-child", "root-first", "shell", "continuation", "silent-continuation",
					"death", "death-after-root", "duplicates", "early", "late", "fifty", "withdrawn", "unasked",
				}
				for _, scenario := range played {
					e.play(scenario)
				}
				var l acp.ListSessionsResponse
				e.must(acp.MethodListSessions, map[string]any{}, &l)
				if len(l.Sessions) != len(played) {
					t.Errorf("%d sessions", len(l.Sessions))
				}
				for _, s := range l.Sessions {
					e.answered(e.load(s.SessionID, w.dir))
				}
			})
		})
	}
}
