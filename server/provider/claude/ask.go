package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/form"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// unanswered is what the model reads where a person has left a question open.
const unanswered = "The user did not answer this question."

// askQuestions describes AskUserQuestion. It asks permission like any tool; the answers go
// back within its input, by the text of each question.
func (q *inquiry) askQuestions(p *permissionRequest) {
	asked := readInput(p.Input).Questions
	i := &q.interaction
	i.Kind, i.Title = agent.InteractionQuestion, "A question"
	for n, a := range asked {
		if n == 0 {
			i.Title = show.Title(cmp.Or(a.Header, a.Question, i.Title))
		}
		out := agent.Question{ID: questionID(n), Text: a.Question, Options: []agent.Option{}, Multi: a.MultiSelect}
		for _, o := range a.Options {
			out.Options = append(out.Options, agent.Option{
				ID: o.Label, Label: o.Label, Role: agent.RoleOther, Description: strings.TrimSpace(o.Description + "\n" + show.Input(o.Preview)),
			})
		}
		i.Detail.Questions = append(i.Detail.Questions, out)
	}
	q.reply = func(r agent.Response) (any, error) { return p.answerQuestions(asked, r) }
}

// questionID names a question within its request: its text may be long, and asked twice.
func questionID(n int) string { return "q" + strconv.Itoa(n+1) }

func (p *permissionRequest) answerQuestions(asked []question, r agent.Response) (any, error) {
	if r.Action == "decline" || r.Action == "cancel" || r.OptionID == optionDeny && len(r.Answers) == 0 {
		return p.deny(cmp.Or(strings.TrimSpace(r.Text), "The user does not want to answer."), false), nil
	}
	given := r.Answers
	if lone := cmp.Or(strings.TrimSpace(r.Text), r.OptionID); len(given) == 0 && len(asked) == 1 && lone != "" {
		given = map[string]string{questionID(0): lone}
	}
	for id := range given {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "q"))
		if err != nil || n < 1 || n > len(asked) || questionID(n-1) != id {
			return nil, agent.Errorf(agent.CodeInvalidAnswer, "there is no question %q", show.Bounded(id, show.TitleLength))
		}
	}
	answers, some := map[string]string{}, len(asked) == 0
	for n, a := range asked {
		text := strings.TrimSpace(given[questionID(n)])
		some = some || text != ""
		if was := answers[a.Question]; was != "" && text != "" { // asked twice in the same words
			text = was + ", " + text
		}
		answers[a.Question] = cmp.Or(text, answers[a.Question])
	}
	if !some {
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "no question is answered")
	}
	for text := range answers {
		answers[text] = cmp.Or(answers[text], unanswered)
	}
	input, err := withMember(p.Input, "answers", answers)
	if err != nil {
		return nil, err
	}
	out := p.allow(nil)
	out.UpdatedInput = input
	return out, nil
}

// withMember is an object with one member more; all others stay as they are.
func withMember(object json.RawMessage, name string, value any) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	if len(object) > 0 && string(object) != "null" {
		if err := json.Unmarshal(object, &members); err != nil {
			return nil, fmt.Errorf("claude: input: %w", err)
		}
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("claude: input: %w", err)
	}
	members[name] = raw
	return json.Marshal(members)
}

// askPlan describes the end of plan mode: a yes lets the agent begin, in a mode of the
// person's choice, and a no is what to plan anew.
func (q *inquiry) askPlan(p *permissionRequest) {
	i := &q.interaction
	i.Kind, i.Title = agent.InteractionPlan, "Begin with this plan?"
	i.Detail.Text = show.Output(cmp.Or(readInput(p.Input).Plan, p.Description, "The plan was not written down; it is in the conversation."))
	yes := func(mode string) func(string) any {
		update := permissionUpdate{raw: json.RawMessage(`{"type":"setMode","mode":"` + mode + `","destination":"session"}`)}
		return func(string) any { return p.allow([]permissionUpdate{update}) }
	}
	q.offer([]choice{
		{agent.Option{ID: optionAllow, Label: "Begin, and ask before edits", Role: agent.RoleAllow}, yes(modeDefault)},
		{agent.Option{ID: optionMode + modeAcceptEdits, Label: "Begin, and accept all edits", Role: agent.RoleAllowAlways}, yes(modeAcceptEdits)},
		{
			agent.Option{ID: optionDeny, Label: "Go on planning", Role: agent.RoleDeny, Description: "What you write with it is what the agent plans for"},
			func(text string) any { return p.deny(cmp.Or(text, "The user wants to go on planning."), false) },
		},
		{
			agent.Option{ID: optionStop, Label: "Decline and stop", Role: agent.RoleAbort, Description: "Stops the agent that asks"},
			func(text string) any { return p.deny(cmp.Or(text, "The user declined this."), true) },
		},
	})
}

// elicitation is what an MCP server asks of the person.
type elicitation struct {
	Server      string          `json:"mcp_server_name"`
	Message     string          `json:"message"`
	Mode        string          `json:"mode"` // form, url
	URL         string          `json:"url"`
	Schema      json.RawMessage `json:"requested_schema"`
	Order       []string        `json:"property_order"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
}

type elicitationAnswer struct {
	Action  string         `json:"action"`
	Content map[string]any `json:"content,omitempty"`
}

// inquireForm reads an elicitation. The wire names its server and no agent.
func inquireForm(f *requestFrame) (*inquiry, error) {
	var e elicitation
	if err := json.Unmarshal(f.Request, &e); err != nil {
		return nil, fmt.Errorf("claude: %s: %w", reqElicit, err)
	}
	fields, err := form.Fields(e.Schema)
	if err != nil {
		return nil, fmt.Errorf("claude: %s: %w", reqElicit, err)
	}
	if len(e.Order) > 0 {
		place := func(f form.Field) int {
			if n := slices.Index(e.Order, f.Name); n >= 0 {
				return n
			}
			return len(e.Order)
		}
		slices.SortStableFunc(fields, func(a, b form.Field) int { return cmp.Compare(place(a), place(b)) })
	}
	q := &inquiry{id: f.RequestID, unowned: true}
	i := &q.interaction
	i.Kind = agent.InteractionElicitation
	i.Title = show.Title(cmp.Or(e.Title, e.Server+" asks"))
	i.Detail.Text = show.Input(strings.TrimSpace(cmp.Or(e.Message, e.Description) + "\n\n" + e.URL))
	i.Options = []agent.Option{}
	for _, f := range fields {
		i.Detail.Questions = append(i.Detail.Questions, f.Question())
	}
	if len(fields) == 0 {
		i.Options = append(i.Options, agent.Option{ID: "accept", Label: "Accept", Role: agent.RoleAllow})
	}
	i.Options = append(i.Options,
		agent.Option{ID: "decline", Label: "Decline", Role: agent.RoleDeny},
		agent.Option{ID: "cancel", Label: "Dismiss", Role: agent.RoleOther, Description: "Neither yes nor no"},
	)
	q.reply = func(r agent.Response) (any, error) { return answerForm(fields, r) }
	return q, nil
}

func answerForm(fields []form.Field, r agent.Response) (any, error) {
	switch action := cmp.Or(r.OptionID, r.Action, "accept"); action { // answers alone are a yes
	case "decline", "cancel":
		return elicitationAnswer{Action: action}, nil
	case "accept":
		content, err := form.Content(fields, r)
		if err != nil {
			return nil, err
		}
		return elicitationAnswer{action, content}, nil
	default:
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", show.Bounded(action, show.TitleLength))
	}
}
