package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// prompt is one open request of the agent with whose question it is. Its id on the wire,
// which may be 0, lives here and in the interaction's correlation, and names nothing else.
type prompt struct {
	id      wire.RawID
	request agent.RequestID
	lane    *lane
	turn    *turn
	gone    bool // it is answered, or nobody may answer it any more
	given   bool // a person's answer is on its way
	elicits string
	none    any // the answer that says that nobody answers
	answer  func(agent.Response) (any, error)
}

// request handles what the agent asks of us.
func (r *runtime) request(f wire.Frame) {
	switch f.Method {
	case acp.MethodRequestPermission:
		r.permission(f)
	case acp.MethodElicit:
		r.elicit(f)
	case acp.MethodReadTextFile, acp.MethodWriteTextFile, acp.MethodCreateTerminal, acp.MethodTerminalOutput,
		acp.MethodReleaseTerminal, acp.MethodWaitForTerminal, acp.MethodKillTerminal:
		r.serve(f)
	default:
		r.Diagnose(provider.Refused, f.Method, "")
		r.refuse(f.ID, wire.CodeMethodNotFound, "not served by this client")
	}
}

// decline answers a request that nobody will be asked about (decisions.md 25).
func (r *runtime) decline(f wire.Frame) {
	switch f.Method {
	case acp.MethodRequestPermission:
		r.reply(f.ID, acp.NotAsked())
	case acp.MethodElicit:
		r.reply(f.ID, acp.ElicitResponse{Action: "cancel"})
	default:
		r.refuse(f.ID, wire.CodeInvalidRequest, "no such session here")
	}
}

// permission turns a request into an interaction of exactly the session that it names.
func (r *runtime) permission(f wire.Frame) {
	var q acp.PermissionRequest
	if err := decode(f.Params, &q); err != nil || q.SessionID == "" || len(q.Options) == 0 {
		r.Diagnose(provider.Malformed, f.Method, string(f.ID))
		r.refuse(f.ID, wire.CodeInvalidParams, "a permission needs a session and options")
		return
	}
	l := r.byID[q.SessionID]
	if l == nil {
		if !r.hold(q.SessionID, f.Method, held{request: &f}) {
			r.decline(f)
		}
		return
	}
	p := &prompt{id: f.ID, lane: l, none: acp.NotAsked(), answer: func(a agent.Response) (any, error) { return permit(q.Options, a) }}
	r.ask(f, p, describePermission(&q))
}

// permit is the wire form of an answer to a permission.
func permit(options []acp.PermissionOption, a agent.Response) (any, error) {
	if slices.ContainsFunc(options, func(o acp.PermissionOption) bool { return o.OptionID == a.OptionID }) {
		return acp.Selected(a.OptionID), nil
	}
	if a.OptionID == "" && a.Action == "cancel" {
		return acp.NotAsked(), nil
	}
	return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", cmp.Or(a.OptionID, a.Action))
}

// describePermission is what a person reads of a permission.
func describePermission(q *acp.PermissionRequest) agent.Interaction {
	i := agent.Interaction{Kind: agent.InteractionApproval, Title: q.Title}
	i.Detail.Reason = show.Input(q.Description)
	if s := q.Subject; s != nil {
		i.Detail.Command, i.Detail.Cwd, i.Detail.CallID = s.Command, s.Cwd, agent.CallID(s.ToolCallID)
	}
	if c := q.Call(); c != nil {
		describeSubject(&i, c)
	}
	i.Title = show.Title(cmp.Or(i.Title, "Permission"))
	for _, o := range q.Options {
		i.Options = append(i.Options, agent.Option{ID: o.OptionID, Label: o.Name, Role: roleOf(o.Kind)})
	}
	return i
}

// describeSubject adds what the tool call that is asked about tells.
func describeSubject(i *agent.Interaction, c *acp.ToolCall) {
	var in struct {
		Command json.RawMessage `json:"command"`
		Cwd     string          `json:"cwd"`
		Plan    string          `json:"plan"`
	}
	if len(c.RawInput) > 0 {
		_ = decode(c.RawInput, &in) // of another shape: it is shown as it is
	}
	i.Title = cmp.Or(i.Title, c.Title.Or(""), c.Name.Or(""))
	i.Detail.CallID = agent.CallID(c.ToolCallID)
	i.Detail.Command = show.Input(cmp.Or(i.Detail.Command, commandOf(in.Command)))
	i.Detail.Cwd = cmp.Or(i.Detail.Cwd, in.Cwd)
	i.Detail.Diff = show.Output(diffOf(c.Content.Or(nil)))
	var words []string
	for _, part := range c.Content.Or(nil) {
		if part.Content != nil {
			words = append(words, part.Content.Words())
		}
	}
	i.Detail.Text = show.Input(strings.Join(words, "\n"))
	if c.Kind.Or("") == "switch_mode" {
		i.Kind = agent.InteractionPlan
		i.Detail.Text = cmp.Or(i.Detail.Text, show.Input(in.Plan))
	}
	if i.Detail.Text == "" && i.Detail.Command == "" && i.Detail.Diff == "" && len(c.RawInput) > 0 {
		i.Detail.Text = show.Input(show.JSON(c.RawInput))
	}
}

// commandOf is a command line: a text, or its words.
func commandOf(raw json.RawMessage) string {
	var words []string
	if decode(raw, &words) == nil {
		return strings.Join(words, " ")
	}
	var line string
	_ = decode(raw, &line) // anything else is no command
	return line
}

func roleOf(kind string) string {
	switch kind {
	case acp.AllowOnce:
		return agent.RoleAllow
	case acp.AllowAlways:
		return agent.RoleAllowAlways
	case acp.RejectOnce, acp.RejectAlways:
		return agent.RoleDeny
	}
	return agent.RoleOther
}

// ask records the question of a lane. Where no turn of it runs that could wait for an
// answer, nobody is asked.
func (r *runtime) ask(f wire.Frame, p *prompt, i agent.Interaction) {
	if slices.ContainsFunc(r.asked, func(o *prompt) bool { return o.id == f.ID }) {
		r.Diagnose(provider.Ignored, f.Method, "asked before: "+string(f.ID))
		return
	}
	l := p.lane
	u := l.live
	if l.isRoot() {
		u = r.shownIn(l)
	}
	if u == nil && !l.isRoot() && l.last() == nil && !l.shut && r.hold(l.id, f.Method, held{request: &f}) {
		return // until its work begins
	}
	if u == nil || u.dropped || u.closed || u.ended || l.shut {
		r.Diagnose(provider.Refused, f.Method, l.id)
		r.reply(f.ID, p.none)
		return
	}
	p.turn, p.request = u, r.Mint.Request()
	i.SessionID, i.TurnID, i.RequestID, i.ProviderTurnID = l.session, u.id, p.request, string(f.ID)
	i.Owner = cmp.Or(i.Owner, agent.OwnerExact)
	if i.Options == nil {
		i.Options = []agent.Option{}
	}
	applied, ok := r.Apply(agent.InteractionAsked{Interaction: i})
	if !ok || applied.Verdict == agent.VerdictRefused || applied.Verdict == agent.VerdictLate {
		r.Diagnose(provider.Refused, f.Method, l.id)
		r.reply(f.ID, p.none)
		return
	}
	r.asked = append(r.asked, p)
}

// withdrawn handles the agent's word that a request is not to be answered any more. Like
// every request it has one answer: that nobody has given one.
func (r *runtime) withdrawn(id wire.RawID) {
	at := slices.IndexFunc(r.asked, func(p *prompt) bool { return p.id == id })
	if at < 0 {
		r.withdrawHeld(id)
		return
	}
	r.endAsk(r.asked[at], agent.AskWithdraw)
}

// withdrawHeld drops a request that has waited for its owner.
func (r *runtime) withdrawHeld(id wire.RawID) {
	for _, owner := range slices.Sorted(maps.Keys(r.early)) {
		r.early[owner] = slices.DeleteFunc(r.early[owner], func(h held) bool {
			if h.request == nil || h.request.ID != id {
				return false
			}
			r.decline(*h.request)
			return true
		})
	}
}

// endAsk ends a question for good, and answers it if nobody has.
func (r *runtime) endAsk(p *prompt, step agent.InteractionStep) {
	r.asked = without(r.asked, p)
	r.unanswered(p)
	if p.given { // the agent may go on, and end, before its taking has been noted here
		step = agent.AskResolved
	}
	r.Apply(agent.InteractionEnded{Session: p.lane.session, Turn: p.turn.id, Request: p.request, Step: step})
}

// unanswered answers a request with that nobody answers, unless it has its answer.
func (r *runtime) unanswered(p *prompt) {
	if !p.gone {
		p.gone = true
		r.reply(p.id, p.none)
	}
}

// withdrawOf ends what is still asked in a turn that has ended.
func (r *runtime) withdrawOf(u *turn) {
	for _, p := range slices.Clone(r.asked) {
		if p.turn == u {
			r.endAsk(p, agent.AskWithdraw)
		}
	}
}

// Answer implements provider.Runtime.
func (r *runtime) Answer(_ context.Context, a provider.Answer) error {
	var p *prompt
	var payload any
	var err error
	r.Do(func() {
		at := slices.IndexFunc(r.asked, func(o *prompt) bool { return o.request == a.Interaction.RequestID })
		if at >= 0 {
			p = r.asked[at]
		}
		gone := r.gone()
		switch {
		case gone != nil:
			err = gone
		case p == nil || p.gone || p.turn.closed || p.turn.ended:
			err = agent.Errorf(agent.CodeInteractionGone, "the question is no longer open at %s", r.o.Title)
		default:
			payload, err = p.answer(a.Response)
			p.gone = err == nil // one answer, whatever becomes of it on its way
			p.given = p.gone
		}
	})
	if err != nil {
		return err
	}
	err = r.peer.Reply(p.id, payload)
	if err == nil {
		r.Do(func() { r.asked = without(r.asked, p) })
		return nil
	}
	r.Unwritten(err)
	if errors.Is(err, wire.ErrMessageTooLong) { // nothing was written: another answer may do
		r.Do(func() { p.gone, p.given = p.turn.closed || p.turn.ended, false })
	}
	return r.callError("take the answer", err)
}
