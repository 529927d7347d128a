package acpagent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// card is the tool call that a line begins or patches on a stream, nil if none.
func (l line) card(session string) *acp.ToolCall {
	if c, ok := l.note.Update.Variant.(*acp.ToolCall); ok && l.note.SessionID == session {
		return c
	}
	return nil
}

// Row 38: without the opt-in children are tool cards of the root, their questions the root's,
// and a stop of the root still stops them. Nothing names a subagent.
func TestWithoutOptInChildrenAreCards(t *testing.T) {
	w := newWorld(t, newFake())
	e := w.newEditor(acp.V1, editorOptions{flat: true})
	session, prompt, root := e.work()
	alpha, beta := root.spawn("alpha"), root.spawn("beta")
	alpha.say("alpha has found it")
	alpha.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c1", Name: "bash", Title: "go vet", Status: agent.MessageCompleted, Output: "ok"})
	alpha.end(agent.OutcomeCompleted)
	begun := func(title string) func(line) bool {
		return func(l line) bool {
			c := l.card(session)
			return c != nil && l.note.Update.Kind == acp.UpdateToolCall && c.Title.Or("") == title
		}
	}
	ended := func(a *fakeAgent, status acp.ToolStatus) func(line) bool {
		return func(l line) bool {
			c := l.card(session)
			return c != nil && strings.HasPrefix(c.ToolCallID, string(a.session)) && c.Status.Or("") == status && l.note.Update.Kind == acp.UpdateToolCallUpdate
		}
	}
	e.order(0, begun("alpha"), begun("alpha: go vet"), ended(alpha, acp.ToolCompleted))
	e.from(0, "what it said", func(l line) bool { return l.card(session) != nil && strings.Contains(l.raw, "alpha has found it") })

	beta.ask("Run it?")
	req := e.await("the question", isRequest(acp.MethodRequestPermission))
	if !strings.Contains(req.raw, `"sessionId":"`+session+`"`) || !strings.Contains(req.raw, "beta: Run it?") {
		t.Errorf("asked %s", req.raw)
	}
	e.cancel(string(beta.session)) // no grant without subagents
	e.fence()
	none(t, "a stop", w.fake.cancels)
	e.cancel(session)
	stop := receive(t, "the stop", w.fake.cancels)
	if !stop.targets()[beta.turn] {
		t.Fatalf("stopped %+v", stop.Cancel)
	}
	e.from(0, "the withdrawal", isWithdrawal(req))
	stop.confirm(root, beta)
	e.order(0, ended(beta, acp.ToolFailed), isAnswer(prompt))
	e.ended(session, prompt, acp.StopCancelled)
	e.refused(wire.CodeInvalidRequest, acp.MethodLoadSession, map[string]any{"sessionId": string(beta.session), "cwd": w.dir, "mcpServers": []any{}})
	delete(e.setupAt, string(rune('0'+e.lastID)))

	other := w.newEditor(acp.V1, editorOptions{flat: true})
	loading := other.load(session, w.dir)
	other.answered(loading)
	other.order(0, begun("alpha"), isAnswer(loading))
	for _, one := range []*editor{e, other} {
		for _, l := range one.all() {
			if strings.Contains(l.raw, "subagent_update") || strings.Contains(l.raw, "session_message") || l.note.SessionID != "" && l.note.SessionID != session {
				t.Errorf("an editor that did not ask for subagents was told: %s", l.raw)
			}
		}
	}
}

// What one client does the others see: the web view, and a second editor.
func TestSeveralClientsOfOneSession(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		var page agent.MessagePage
		w.web("GET", w.path(session)+"/messages", nil, &page)
		if len(page.Items) == 0 || page.Items[0].Content != "go" {
			t.Errorf("the web view sees %+v", page.Items)
		}
		other := w.newEditor(version, editorOptions{})
		other.answered(other.load(session, w.dir))
		root.end(agent.OutcomeCompleted)
		e.ended(session, prompt, acp.StopEndTurn)

		at := e.since()
		w.web("POST", w.path(session)+"/messages", map[string]any{"clientMessageId": "w1", "content": []map[string]string{{"type": "text", "text": "from the web"}}}, nil)
		second := root.r.main(receive(t, "the turn", w.fake.starts))
		second.say("an answer for all")
		second.end(agent.OutcomeCompleted)
		for _, one := range []*editor{e, other} {
			one.order(0, isText(session, "from the web"), isText(session, "an answer for all"))
		}
		if version == acp.V2 {
			e.from(at, "idle again", func(l line) bool {
				s, ok := l.note.Update.Variant.(*acp.StateUpdate)
				return ok && s.State == acp.StateIdle
			})
		}
		next := e.prompt(session, "from the editor")
		third := root.r.main(receive(t, "the turn", w.fake.starts))
		other.from(0, "the other editor's prompt", isText(session, "from the editor"))
		if version == acp.V1 {
			e.absent(0, "an echo of its own prompt", isText(session, "from the editor"))
		}
		w.web("POST", w.path(session)+"/turns/"+string(third.turn)+"/cancel", nil, nil)
		receive(t, "the stop", w.fake.cancels).confirm(third)
		if version == acp.V1 {
			e.ended(session, next, acp.StopCancelled)
		}
		e.must(acp.MethodSetTitle, map[string]string{"sessionId": session, "title": "A better name"}, nil)
		if d := w.detail(session); d.Session.Title != "A better name" {
			t.Errorf("the web view sees %q", d.Session.Title)
		}
		other.from(0, "the title", func(l line) bool {
			u, ok := l.note.Update.Variant.(*acp.SessionInfoUpdate)
			return ok && u.Title.Or("") == "A better name"
		})
	})
}

// A second prompt joins the turn that runs, and both end with it.
func TestPromptThatGuides(t *testing.T) {
	w := newWorld(t, newFake())
	e := w.newEditor(acp.V1, editorOptions{})
	session, first, root := e.work()
	second := e.prompt(session, "and be quick")
	e.fence()
	for len(w.detail(session).Session.ActiveTurn.ID) > 0 {
		var page agent.MessagePage
		w.web("GET", w.path(session)+"/messages", nil, &page)
		if len(page.Items) == 2 {
			break
		}
	}
	root.end(agent.OutcomeCompleted)
	e.ended(session, first, acp.StopEndTurn)
	e.ended(session, second, acp.StopEndTurn)
}

// A turn that fails is no stop of a kind: the prompt is answered with the reason.
func TestFailedTurn(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		e := newWorld(t, newFake()).newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		root.end(agent.OutcomeFailed)
		if version == acp.V2 {
			e.ended(session, prompt, acp.StopError)
			return
		}
		if l := e.response(prompt); l.Error == nil || l.Error.Message != "the model is overloaded" || !strings.Contains(string(l.Error.Data), "provider_refused") {
			t.Errorf("answered %s", l.raw)
		}
	})
}

// Tool calls with their changes as diffs, plans as plans, thoughts as thoughts, and what a
// turn used at its end.
func TestToolCallsDiffsPlansAndUsage(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session, prompt, root := e.work()
		root.put(agent.Message{Role: agent.RoleAssistant, Kind: agent.MessageThinking, Status: agent.MessageCompleted, Content: "let me see"})
		call := root.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c1", Name: "bash", Title: "go test", Input: `{"command":"go test"}`, Status: agent.MessageStreaming})
		call.Status, call.Output = agent.MessageCompleted, "ok"
		root.put(call)
		root.put(agent.Message{
			Role: agent.RoleTool, Kind: agent.MessageToolCall, CallID: "c2", Name: "Edit", Title: "Edit a.go", Status: agent.MessageCompleted,
			Output: "--- a" + w.dir + "/a.go\n+++ b" + w.dir + "/a.go\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n--- /dev/null\n+++ b/sub/new.go\n+fresh\n",
		})
		root.put(agent.Message{Role: agent.RoleTool, Kind: agent.MessageToolCall, Name: "plan", Title: "Plan: 1 of 3 steps done", Status: agent.MessageCompleted, Output: "[x] one\n[>] two\n[ ] three\n"})
		root.put(agent.Message{Role: agent.RoleSystem, Kind: agent.MessageNotice, Status: agent.MessageCompleted, Content: "The model was changed\nto a smaller one"})
		root.r.apply(agent.UsageReported{Session: root.session, Turn: root.turn, Usage: agent.Usage{InputTokens: 100, CachedInputTokens: 40, OutputTokens: 7}})
		root.end(agent.OutcomeCompleted)
		end := e.ended(session, prompt, acp.StopEndTurn)
		if l := e.all()[end]; !strings.Contains(l.raw, `"totalTokens":107`) {
			t.Errorf("the usage is missing: %s", l.raw)
		}
		e.from(0, "the thought", func(l line) bool { return l.note.Update.Kind == acp.UpdateThoughtChunk })
		first, _ := e.from(0, "the call", func(l line) bool { c := l.card(session); return c != nil && c.ToolCallID == "c1" })
		if c := first.card(session); c.Kind.Or("") != acp.ToolExecute || c.Status.Or("") != acp.ToolRunning || string(c.RawInput) != `{"command":"go test"}` {
			t.Errorf("the call began as %s", first.raw)
		}
		e.from(0, "its result", func(l line) bool {
			c := l.card(session)
			return c != nil && c.ToolCallID == "c1" && c.Status.Or("") == acp.ToolCompleted && strings.Contains(l.raw, "\"text\":\"```\\nok\\n```\"")
		})
		edit, _ := e.from(0, "the edit", func(l line) bool { c := l.card(session); return c != nil && c.ToolCallID == "c2" })
		checkEdit(t, version, w.dir, edit.card(session))
		plan, _ := e.from(0, "the plan", func(l line) bool {
			return l.note.Update.Kind == acp.UpdatePlan || l.note.Update.Kind == acp.UpdatePlanUpdate
		})
		if !strings.Contains(plan.raw, `{"content":"two","priority":"medium","status":"in_progress"}`) {
			t.Errorf("planned %s", plan.raw)
		}
	})
}

func checkEdit(t *testing.T, version int, dir string, c *acp.ToolCall) {
	t.Helper()
	content := c.Content.Or(nil)
	if len(content) != 2 || c.Kind.Or("") != acp.ToolEdit || len(c.Locations.Or(nil)) != 2 {
		t.Fatalf("%d changes, kind %q", len(content), c.Kind.Or(""))
	}
	if version == acp.V1 {
		if d := content[0]; d.Path != dir+"/a.go" || *d.OldText != "same\nold\n" || *d.NewText != "same\nnew\n" {
			t.Errorf("changed %s", d.Raw)
		}
		if d := content[1]; d.Path != dir+"/sub/new.go" || d.OldText != nil || *d.NewText != "fresh\n" {
			t.Errorf("made %s", d.Raw)
		}
		return
	}
	if d := content[0]; len(d.Changes) != 1 || d.Changes[0].Operation != "modify" || d.Changes[0].Path != dir+"/a.go" || d.Patch == nil {
		t.Errorf("changed %s", d.Raw)
	}
	if d := content[1]; d.Changes[0].Operation != "add" || d.Changes[0].Path != dir+"/sub/new.go" || d.Patch != nil {
		t.Errorf("made %s", d.Raw)
	}
}

// The mode and the model are shown with their choices, and can be chosen until the first
// prompt. Who else has the session open is told.
func TestModesAndOptions(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		var r acp.SessionResponse
		e.must(acp.MethodNewSession, map[string]any{"cwd": w.dir, "mcpServers": []any{}, "_meta": map[string]any{"turnkeeper": map[string]string{"permissionMode": "ask"}}}, &r)
		e.roots[r.SessionID] = true
		if (r.Modes != nil) != (version == acp.V1) || r.Modes != nil && (r.Modes.CurrentModeID != "ask" || len(r.Modes.AvailableModes) != 2) {
			t.Fatalf("modes %+v", r.Modes)
		}
		if len(r.ConfigOptions) != 2 || r.ConfigOptions[0].Key() != optionMode || r.ConfigOptions[0].Current() != "ask" || r.ConfigOptions[1].Current() != unset || len(r.ConfigOptions[1].Options) != 3 {
			t.Fatalf("options %+v", r.ConfigOptions)
		}
		other := w.newEditor(version, editorOptions{})
		other.answered(other.load(r.SessionID, w.dir))
		if version == acp.V1 {
			e.must(acp.MethodSetMode, acp.SetModeRequest{SessionID: r.SessionID, ModeID: "auto"}, nil)
			other.from(0, "the mode", func(l line) bool {
				m, ok := l.note.Update.Variant.(*acp.ModeUpdate)
				return ok && m.CurrentModeID == "auto"
			})
			e.refused(wire.CodeInvalidParams, acp.MethodSetMode, acp.SetModeRequest{SessionID: r.SessionID, ModeID: "never"})
		}
		set := func(id string, value any) map[string]any {
			return map[string]any{"sessionId": r.SessionID, "configId": id, "type": "id", "value": value}
		}
		var now acp.SetConfigOptionResponse
		e.must(acp.MethodSetConfigOption, set(optionModel, "small"), &now)
		if len(now.ConfigOptions) != 2 || now.ConfigOptions[1].Current() != "small" {
			t.Errorf("options %+v", now.ConfigOptions)
		}
		other.from(0, "the option", func(l line) bool {
			u, ok := l.note.Update.Variant.(*acp.ConfigUpdate)
			return ok && u.ConfigOptions[1].Current() == "small"
		})
		if d := w.detail(r.SessionID); d.Session.Model != "small" {
			t.Errorf("the web view sees %q", d.Session.Model)
		}
		e.refused(wire.CodeInvalidParams, acp.MethodSetConfigOption, set("colour", "red"))
		e.refused(wire.CodeInvalidParams, acp.MethodSetConfigOption, set(optionModel, "huge"))
		e.refused(wire.CodeInvalidParams, acp.MethodSetConfigOption, set(optionModel, true))
		prompt := e.prompt(r.SessionID, "go")
		runtime := receive(t, "the provider to be opened", w.fake.opened)
		if runtime.model != "small" {
			t.Errorf("opened with model %q", runtime.model)
		}
		root := runtime.main(receive(t, "the turn", w.fake.starts))
		e.refused(wire.CodeInvalidParams, acp.MethodSetConfigOption, set(optionModel, "large"))
		root.end(agent.OutcomeCompleted)
		e.ended(r.SessionID, prompt, acp.StopEndTurn)
	})
}

// What comes before initialize, twice, or with nonsense is refused, and the connection
// lives.
func TestRefusals(t *testing.T) {
	both(t, func(t *testing.T, version int) {
		w := newWorld(t, newFake())
		e := w.newEditor(version, editorOptions{})
		session := e.begin()
		e.refused(wire.CodeInvalidRequest, acp.MethodInitialize, map[string]any{"protocolVersion": version})
		e.refused(wire.CodeInvalidParams, acp.MethodNewSession, map[string]any{"cwd": "relative", "mcpServers": []any{}})
		e.refused(wire.CodeInvalidParams, acp.MethodPrompt, map[string]any{"sessionId": session, "prompt": []any{}})
		e.refused(wire.CodeInvalidParams, acp.MethodPrompt, []any{})
		e.refused(wire.CodeInvalidParams, acp.MethodListSessions, map[string]any{"cursor": "?"})
		e.refused(acp.CodeResourceNotFound, acp.MethodPrompt, map[string]any{"sessionId": "ses_x", "prompt": []any{}})
		e.refused(acp.CodeResourceNotFound, acp.MethodCloseSession, map[string]any{"sessionId": "ses_x"})
		e.refused(wire.CodeMethodNotFound, "session/sing", map[string]any{})
		e.write(json.RawMessage(`{"jsonrpc":"2.0","id":"a string","method":"session/list","params":{}}`))
		e.idFor[`"a string"`] = acp.MethodListSessions
		e.from(0, "the answer", func(l line) bool { return string(l.ID) == `"a string"` && l.Result != nil })
	})
}
