package acpagent

import (
	"cmp"
	"context"
	"slices"

	"github.com/turnkeeper/turnkeeper/clientgen/goclient"
	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// askKey is a question's identity.
type askKey struct {
	session agent.SessionID
	turn    agent.TurnID
	request agent.RequestID
}

func keyOf(i agent.Interaction) askKey { return askKey{i.SessionID, i.TurnID, i.RequestID} }

// ask is a question that the editor was asked and that is open here.
type ask struct {
	about  agent.Interaction
	method string
	params any
	id     wire.RawID
	known  chan struct{} // closed when id is set
}

// interaction is what became known of a question.
func (v *view) interaction(s *session, i agent.Interaction) {
	n := v.nodes[string(i.SessionID)]
	if n == nil {
		return // nobody of ours; it never becomes the root's
	}
	if i.Status != agent.InteractionPending {
		if !i.Status.Open() {
			delete(n.pending, i.RequestID)
			v.closeCard(s, n, i)
		}
		s.close(keyOf(i)) // somebody answered, or nobody can any more
		v.sync(s, n)
		return
	}
	n.pending[i.RequestID] = struct{}{}
	v.sync(s, n) // requires_action comes before the question
	if !v.quiet {
		s.ask(v, n, i)
	}
}

// askOpen asks what is open at the daemon and not asked here.
func (s *session) askOpen(ctx context.Context) error {
	ws, id := s.place()
	open, err := s.c.api.interactions(ctx, ws, id)
	if err != nil {
		return err
	}
	for _, i := range open {
		s.view.interaction(s, i)
	}
	return nil
}

// ask puts a question to the person at the editor, on the stream of the agent that asks.
func (s *session) ask(v *view, n *node, i agent.Interaction) {
	method, params := s.question(v, n, i)
	if params == nil {
		v.tellOnly(s, n, i)
		return
	}
	a := &ask{about: i, method: method, params: params, known: make(chan struct{})}
	if s.register(a) {
		s.put(a)
	}
}

// register notes a question as open here; false if it is already.
func (s *session) register(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[keyOf(a.about)] != nil {
		return false
	}
	s.asked[keyOf(a.about)] = a
	return true
}

// put sends a question that was registered.
func (s *session) put(a *ask) {
	var err error
	a.id, err = s.c.peer.Go(a.method, a.params, func(answer wire.Answer) { s.answered(a, answer) })
	close(a.known)
	if err != nil && s.c.ctx.Err() == nil {
		s.forget(a)
		s.c.log.Warn("a question was not asked", "error", err)
	}
}

// askAgain asks what was taken back, or answered, in vain and is still open at the daemon.
// It is registered before the daemon is asked, so that an end in between finds it. Where the
// daemon does not say, it is asked: a person may be asked in vain, but not forgotten.
func (s *session) askAgain(all []*ask) error {
	ws, id := s.place()
	var again []*ask
	for _, old := range all {
		a := &ask{about: old.about, method: old.method, params: old.params, known: make(chan struct{})}
		if s.register(a) {
			again = append(again, a)
		}
	}
	if len(again) == 0 {
		return nil
	}
	open, err := s.c.api.interactions(s.c.ctx, ws, id)
	for _, a := range again {
		if err != nil || slices.ContainsFunc(open, func(i agent.Interaction) bool { return keyOf(i) == keyOf(a.about) }) {
			s.put(a)
			continue
		}
		s.forget(a)
		close(a.known)
	}
	return err
}

// forget closes a question; false if it was closed before.
func (s *session) forget(a *ask) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[keyOf(a.about)] != a {
		return false
	}
	delete(s.asked, keyOf(a.about))
	return true
}

// close takes a question back that is open at the editor.
func (s *session) close(key askKey) {
	s.mu.Lock()
	a := s.asked[key]
	delete(s.asked, key)
	s.mu.Unlock()
	if a != nil {
		s.withdraw(a)
	}
}

func (s *session) withdraw(a *ask) {
	<-a.known
	if a.id == "" {
		return
	}
	if err := s.c.peer.Withdraw(a.id); err != nil && s.c.ctx.Err() == nil {
		s.c.log.Warn("a question was not taken back", "error", err)
	}
}

// answered takes the editor's answer, in the reading goroutine. One that comes after the
// question was taken back or answered elsewhere changes nothing.
func (s *session) answered(a *ask, answer wire.Answer) {
	if !s.forget(a) {
		s.c.log.Debug("a late answer was refused", "request", a.about.RequestID)
		return
	}
	r, err := a.response(answer)
	if s.c.ctx.Err() != nil {
		return
	}
	s.c.work.Go(func() {
		if err != nil { // the editor cannot ask: the web view can
			s.c.log.Warn("the editor did not ask", "error", err)
			return
		}
		ws, _ := s.place()
		err := s.c.api.answer(s.c.ctx, ws, a.about, r)
		if err == nil || s.c.ctx.Err() != nil {
			return
		}
		s.c.log.Info("an answer was not taken", "error", err)
		if err := s.askAgain([]*ask{a}); err != nil {
			s.c.log.Warn("a question was not asked again", "error", err)
		}
	})
}

// response reads what the person chose. Nothing chosen is the strongest refusal there is:
// an agent must not be left waiting for a dialogue that was closed.
func (a *ask) response(answer wire.Answer) (goclient.InteractionResponse, error) {
	if a.method == acp.MethodElicit {
		var p acp.ElicitResponse
		if err := answer.Decode(&p); err != nil {
			return goclient.InteractionResponse{}, err
		}
		return a.fromForm(p), nil
	}
	var p acp.PermissionResponse
	if err := answer.Decode(&p); err != nil {
		return goclient.InteractionResponse{}, err
	}
	if p.Outcome.Outcome == "selected" {
		return a.choice(p.Outcome.OptionID), nil
	}
	for _, role := range []string{agent.RoleAbort, agent.RoleDeny} {
		for _, o := range a.about.Options {
			if o.Role == role {
				return a.choice(o.ID), nil
			}
		}
	}
	cancel := goclient.InteractionResponseActionCancel
	return goclient.InteractionResponse{Action: &cancel}, nil
}

// choice answers with an option: of the question itself, or of the one thing it asks.
func (a *ask) choice(option string) goclient.InteractionResponse {
	if qs := a.about.Detail.Questions; len(qs) == 1 && len(a.about.Options) == 0 {
		for _, o := range qs[0].Options {
			if o.ID == option {
				option = byLabel(o)
				break
			}
		}
		return goclient.InteractionResponse{Answers: &map[string]string{qs[0].ID: option}}
	}
	return goclient.InteractionResponse{OptionID: &option}
}

// question is how a question is asked: as a form where the editor has forms and there is
// more to say than a choice; else as a permission, where there is a choice. Nil if neither.
func (s *session) question(v *view, n *node, i agent.Interaction) (string, any) {
	asForm := i.Kind == agent.InteractionQuestion || i.Kind == agent.InteractionElicitation
	if asForm && s.c.hasForms() {
		return acp.MethodElicit, form(v.stream(n), i)
	}
	options := optionsOf(i)
	if len(options) == 0 {
		return "", nil
	}
	call := &acp.ToolCall{
		ToolCallID: cmp.Or(string(i.Detail.CallID), string(i.RequestID)), Title: acp.Some(i.Title),
		Status: acp.Some(acp.ToolPending), Kind: acp.Some(askKind(i)), RawInput: rawInput(i.Detail.Command),
	}
	if content := s.askContent(n, i); len(content) > 0 {
		call.Content = acp.Some(content)
	}
	p := acp.PermissionRequest{SessionID: v.stream(n), Options: options}
	if v.flat && !n.isRoot() {
		call.Title = acp.Some(n.name() + ": " + i.Title)
		call.ToolCallID = n.id + "/" + call.ToolCallID
	}
	if i.Detail.CallID == "" {
		n.cards[i.RequestID] = call.ToolCallID
	}
	if s.c.version() == acp.V2 {
		p.Title, p.Description = i.Title, cmp.Or(i.Detail.Reason, i.Detail.Text)
		p.Subject = &acp.PermissionSubject{Type: "tool_call", ToolCall: call}
	} else {
		p.ToolCall = call
	}
	return acp.MethodRequestPermission, p
}

// closeCard ends the tool call that a question without one of its own brought along, so that
// it does not stand there as pending.
func (v *view) closeCard(s *session, n *node, i agent.Interaction) {
	id, asked := n.cards[i.RequestID]
	if !asked {
		return
	}
	delete(n.cards, i.RequestID)
	status := acp.ToolFailed
	if i.Status == agent.InteractionAnswered {
		status = acp.ToolCompleted
	}
	s.c.say(v.stream(n), acp.UpdateToolCallUpdate, &acp.ToolCall{ToolCallID: id, Status: acp.Some(status)})
}

func (c *conn) hasForms() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.forms
}

// tellOnly says that a question waits which this editor cannot ask.
func (v *view) tellOnly(s *session, n *node, i agent.Interaction) {
	s.c.say(v.stream(n), acp.UpdateAgentChunk, &acp.MessageChunk{
		MessageID: "ask-" + string(i.RequestID),
		Content:   acp.Text("\n\n" + i.Title + "\n\n(This question waits for an answer in Turnkeeper: turnkeeper open)\n"),
	})
}

// askKind is what is asked about.
func askKind(i agent.Interaction) string {
	switch {
	case i.Detail.Diff != "":
		return acp.ToolEdit
	case i.Detail.Command != "":
		return acp.ToolExecute
	case i.Kind == agent.InteractionPlan:
		return "switch_mode"
	}
	return acp.ToolOther
}

// askContent is what a person needs in order to decide.
func (s *session) askContent(n *node, i agent.Interaction) []acp.ToolContent {
	if changes := parseDiff(i.Detail.Diff, n.about.Cwd); len(changes) > 0 {
		return s.changes(changes).blocks
	}
	var out []acp.ToolContent
	for _, text := range []string{fencedCommand(i.Detail.Command), i.Detail.Reason, i.Detail.Text, i.Detail.Diff} {
		if text != "" {
			out = append(out, block(text))
		}
	}
	return out
}

func fencedCommand(command string) string {
	if command == "" {
		return ""
	}
	return fenced(acp.ToolExecute, command)
}

// optionsOf are the choices: the question's own, or those of the one thing it asks.
func optionsOf(i agent.Interaction) []acp.PermissionOption {
	from := i.Options
	if len(from) == 0 && len(i.Detail.Questions) == 1 {
		from = i.Detail.Questions[0].Options
	}
	out := make([]acp.PermissionOption, 0, len(from))
	for _, o := range from {
		out = append(out, acp.PermissionOption{OptionID: o.ID, Name: cmp.Or(o.Label, o.ID), Kind: optionKind(o.Role)})
	}
	return out
}

func optionKind(role string) string {
	switch role {
	case agent.RoleAllowAlways:
		return acp.AllowAlways
	case agent.RoleDeny, agent.RoleAbort:
		return acp.RejectOnce
	}
	return acp.AllowOnce
}
