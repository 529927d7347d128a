package codex

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// Requests of the server that a person can answer.
const (
	askCommand = "item/commandExecution/requestApproval"
	askChange  = "item/fileChange/requestApproval"
	askInput   = "item/tool/requestUserInput"
	askPermit  = "item/permissions/requestApproval"
	askElicit  = "mcpServer/elicitation/request"
)

// question is one open request of the server. Its wire id lives here and nowhere
// else: the server counts from 0 in each process, so it names nothing outside of it.
type question struct {
	request agent.RequestID
	wireID  wire.RawID
	method  string
	thread  *thread         // that the request names
	session agent.SessionID // whose question it is
	turn    *turn
	// answer writes the person's answer, where it is no choice of decisions.
	answer func(agent.Response) (any, error)
	// decisions are the answers offered, by option id, as they go on the wire.
	decisions map[string]json.RawMessage
	roles     map[string]string // role → option id, the first of each
	only      string            // the question's id, if there is exactly one
	gone      bool              // nobody may answer it any more
}

type approvalParams struct {
	ItemID             string            `json:"itemId"`
	Command            string            `json:"command"`
	CommandActions     []commandAction   `json:"commandActions"`
	Cwd                string            `json:"cwd"`
	Reason             string            `json:"reason"`
	GrantRoot          string            `json:"grantRoot"`
	AvailableDecisions []json.RawMessage `json:"availableDecisions"`
	Questions          []inputQuestion   `json:"questions"`
}

type inputQuestion struct {
	ID       string        `json:"id"`
	Header   string        `json:"header"`
	Question string        `json:"question"`
	Options  []inputOption `json:"options"`
}

type inputOption struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

// ask turns a request of an owned thread into an interaction of exactly the turn that
// it names.
func (r *runtime) ask(t *thread, f frame) {
	u := t.turns[f.TurnID]
	if u == nil && t.pending != nil && t != r.root {
		u = t.pending
	}
	of, owner := t, agent.OwnerExact
	if u == nil && f.method == askElicit && f.TurnID == "" {
		of, u, owner = r.elicited(t)
	}
	if u == nil || u.dropped {
		r.refuseUnowned(f)
		return
	}
	var p approvalParams
	if err := json.Unmarshal(f.params, &p); err != nil {
		r.Diagnose(provider.Malformed, f.method, t.id)
		r.refuse(f, wire.CodeInvalidParams, "parameters cannot be read")
		return
	}
	q := &question{request: r.Mint.Request(), wireID: f.id, method: f.method, thread: t, session: of.session, turn: u}
	i := agent.Interaction{
		SessionID: of.session, TurnID: u.id, RequestID: q.request, Owner: owner, ProviderTurnID: cmp.Or(f.TurnID, u.native),
		Kind: agent.InteractionApproval, Options: []agent.Option{},
		Detail: agent.Detail{Reason: p.Reason, CallID: agent.CallID(p.ItemID)},
	}
	switch known, err := q.describe(&i, p, f.params); {
	case !known:
		r.Diagnose(provider.Refused, f.method, t.id)
		r.refuse(f, wire.CodeMethodNotFound, "this client does not answer "+f.method)
		return
	case err != nil:
		r.Diagnose(provider.Malformed, f.method, t.id)
		r.refuse(f, wire.CodeInvalidParams, "parameters cannot be read")
		return
	}
	applied, ok := r.Apply(agent.InteractionAsked{Interaction: i})
	if !ok || applied.Verdict == agent.VerdictRefused || applied.Verdict == agent.VerdictLate {
		r.refuse(f, wire.CodeInvalidRequest, "this turn is being stopped")
		return
	}
	r.asked[q.request] = q
}

// describe says what is asked and what can be answered; known is false for a request that
// nobody here can answer.
func (q *question) describe(i *agent.Interaction, p approvalParams, params json.RawMessage) (known bool, err error) {
	switch q.method {
	case askCommand:
		i.Title = show.Bounded("Run "+plainCommand(&threadItem{Command: p.Command, CommandActions: p.CommandActions}), show.TitleLength)
		i.Detail.Command, i.Detail.Cwd = p.Command, p.Cwd
		i.Options = q.offer(p.AvailableDecisions)
	case askChange:
		i.Title = "Change files"
		if it := q.turn.items[p.ItemID]; it != nil {
			i.Detail.Diff = it.diff
		}
		if p.GrantRoot != "" {
			i.Detail.Text = "Asks to write anywhere below " + p.GrantRoot + " for the rest of the session."
		}
		i.Options = q.offer(p.AvailableDecisions)
	case askInput:
		i.Kind = agent.InteractionQuestion
		i.Title, i.Detail.Questions = questionsOf(p.Questions)
		if len(p.Questions) == 1 {
			q.only = p.Questions[0].ID
		}
	case askPermit:
		return true, q.askPermission(i, params)
	case askElicit:
		return true, q.askElicitation(i, params)
	default:
		return false, nil
	}
	return true, nil
}

// offer lists the decisions as options. Declining, and allowing for the session, are
// taken by the server even where it does not list them (f-v1-child-approval, f5-…): a
// person must be able to say no without ending the turn, and yes once for all.
func (q *question) offer(listed []json.RawMessage) []agent.Option {
	q.decisions, q.roles = map[string]json.RawMessage{}, map[string]string{}
	if len(listed) == 0 {
		listed = []json.RawMessage{[]byte(`"accept"`), []byte(`"acceptForSession"`), []byte(`"decline"`), []byte(`"cancel"`)}
	}
	var options []agent.Option
	add := func(raw json.RawMessage) {
		o := optionOf(raw)
		if o.ID == "" || q.decisions[o.ID] != nil {
			return
		}
		q.decisions[o.ID] = raw
		if q.roles[o.Role] == "" {
			q.roles[o.Role] = o.ID
		}
		options = append(options, o)
	}
	for _, raw := range listed {
		if bytes.Equal(raw, []byte(`"cancel"`)) {
			add([]byte(`"decline"`)) // before the stronger no
		}
		add(raw)
		if bytes.Equal(raw, []byte(`"accept"`)) {
			add([]byte(`"acceptForSession"`))
		}
	}
	add([]byte(`"decline"`))
	return options
}

// optionOf names one decision for people. An object has one member, its name.
func optionOf(raw json.RawMessage) agent.Option {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		switch word {
		case "accept":
			return agent.Option{ID: word, Label: "Allow", Role: agent.RoleAllow}
		case "acceptForSession":
			return agent.Option{ID: word, Label: "Allow for this session", Role: agent.RoleAllowAlways}
		case "decline":
			return agent.Option{ID: word, Label: "Decline", Role: agent.RoleDeny, Description: "The agent goes on without it"}
		case "cancel":
			return agent.Option{ID: word, Label: "Decline and stop", Role: agent.RoleAbort, Description: "Stops the turn that asks"}
		}
		return agent.Option{ID: word, Label: word, Role: agent.RoleOther}
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || len(object) != 1 {
		return agent.Option{}
	}
	for name, value := range object {
		switch name {
		case "acceptWithExecpolicyAmendment":
			var a struct {
				Words []string `json:"execpolicy_amendment"`
			}
			_ = json.Unmarshal(value, &a) // without the words the label still says what it is
			return agent.Option{
				ID: name, Label: "Allow, and from now on without asking", Role: agent.RoleAllowAlways,
				Description: show.Bounded(strings.Join(a.Words, " "), show.TitleLength),
			}
		default:
			return agent.Option{ID: name, Label: name, Role: agent.RoleOther, Description: show.Bounded(show.JSON(value), show.TitleLength)}
		}
	}
	return agent.Option{}
}

func questionsOf(asked []inputQuestion) (title string, out []agent.Question) {
	for _, a := range asked {
		q := agent.Question{ID: a.ID, Text: a.Question, Options: []agent.Option{}}
		for _, o := range a.Options {
			q.Options = append(q.Options, agent.Option{ID: o.Label, Label: o.Label, Role: agent.RoleOther, Description: o.Description})
		}
		out = append(out, q)
	}
	title = "A question"
	if len(asked) > 0 && asked[0].Header != "" {
		title = asked[0].Header
	}
	return show.Bounded(title, show.TitleLength), out
}

// Answer implements provider.Runtime.
func (r *runtime) Answer(_ context.Context, a provider.Answer) error {
	var q *question
	var result any
	var err error
	r.Do(func() {
		q = r.asked[a.Interaction.RequestID]
		gone := r.gone()
		switch {
		case gone != nil:
			err = gone
		case q == nil || q.gone || q.turn.closed:
			err = agent.Errorf(agent.CodeInteractionGone, "the question is no longer open at Codex")
		default:
			result, err = q.reply(a.Response)
			q.gone = err == nil // one answer, whatever becomes of it on its way
		}
	})
	if err != nil {
		return err
	}
	if err := r.peer.Reply(q.wireID, result); err != nil {
		r.Unwritten(err)
		reason := callError("take the answer", err)
		if reason.Code != agent.CodeProviderGone { // nothing was written: another answer may do
			r.Do(func() { q.gone = q.turn.closed || q.turn.ended })
		}
		return reason
	}
	return nil
}

// reply is the wire form of a person's answer.
func (q *question) reply(a agent.Response) (any, error) {
	switch {
	case q.method == askInput:
		return q.replyInput(a), nil
	case q.answer != nil:
		return q.answer(a)
	}
	id := a.OptionID
	if id == "" {
		id = q.roles[map[string]string{"accept": agent.RoleAllow, "decline": agent.RoleDeny, "cancel": agent.RoleAbort}[a.Action]]
	}
	decision, ok := q.decisions[id]
	if !ok {
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", id)
	}
	return map[string]json.RawMessage{"decision": decision}, nil
}

type inputAnswer struct {
	Answers []string `json:"answers"`
}

// replyInput answers questions; one that is left out is declined.
func (q *question) replyInput(a agent.Response) any {
	answers := map[string]inputAnswer{}
	for id, text := range a.Answers {
		answers[id] = inputAnswer{[]string{text}}
	}
	if free := a.Text + a.OptionID; free != "" && q.only != "" && len(answers) == 0 {
		answers[q.only] = inputAnswer{[]string{free}}
	}
	return map[string]any{"answers": answers}
}

// resolved handles serverRequest/resolved: the request is over, by an answer of ours,
// of another client, or because its turn ended. It may come before or after either.
func (r *runtime) resolved(t *thread, f frame) {
	var p resolvedParams
	if err := json.Unmarshal(f.params, &p); err != nil {
		r.Diagnose(provider.Malformed, f.method, t.id)
		return
	}
	for id, q := range r.asked {
		if q.thread == t && string(q.wireID) == string(p.RequestID) {
			delete(r.asked, id)
			r.Apply(agent.InteractionEnded{Session: q.session, Turn: q.turn.id, Request: q.request, Step: agent.AskResolved})
			return
		}
	}
}

// withdrawAsked makes questions unanswerable. They are kept until the server says that
// they are over, so that its word finds them; storage has withdrawn them with their
// turn.
func (r *runtime) withdrawAsked(these func(*question) bool) {
	for _, q := range r.asked {
		if these(q) {
			q.gone = true
		}
	}
}
