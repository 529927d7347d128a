package claude

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// inquiry is one request of the binary that a person must answer.
type inquiry struct {
	id      string       // of the control request: the only thing that its answer is known by
	agentID string       // the child that asks, by its task id; "" is the root
	call    agent.CallID // the tool call that waits; "" for an elicitation
	tool    string       // "" for an elicitation
	// unowned: the wire does not say which agent asks (decisions.md 19).
	unowned bool
	// interaction says what is asked; its ids and its owner are the caller's to fill in.
	interaction agent.Interaction
	// reply is the wire form of an answer. Error: CodeInvalidAnswer, and then another
	// answer may do.
	reply func(agent.Response) (any, error)
}

// permissionRequest asks whether a tool may run.
type permissionRequest struct {
	ToolName    string             `json:"tool_name"`
	DisplayName string             `json:"display_name"`
	Title       string             `json:"title"`
	Description string             `json:"description"`
	Input       json.RawMessage    `json:"input"`
	Suggestions []permissionUpdate `json:"permission_suggestions"`
	// OnlyOnce: nothing may be offered that would allow more than this one call.
	OnlyOnce    bool   `json:"suppress_always_allow_rule"`
	BlockedPath string `json:"blocked_path"`
	Reason      string `json:"decision_reason"`
	ToolUseID   string `json:"tool_use_id"`
	AgentID     string `json:"agent_id"`
}

// permissionUpdate changes what is allowed from now on. It goes back as it came.
type permissionUpdate struct {
	raw         json.RawMessage
	Type        string           `json:"type"` // addRules, replaceRules, removeRules, setMode, addDirectories, removeDirectories
	Rules       []permissionRule `json:"rules"`
	Behavior    string           `json:"behavior"`
	Mode        string           `json:"mode"`
	Directories []string         `json:"directories"`
	Destination string           `json:"destination"`
}

type permissionRule struct {
	ToolName string `json:"toolName"`
	Content  string `json:"ruleContent"`
}

func (u *permissionUpdate) UnmarshalJSON(b []byte) error {
	type plain permissionUpdate
	if err := json.Unmarshal(b, (*plain)(u)); err != nil {
		return err
	}
	u.raw = append(json.RawMessage(nil), b...)
	return nil
}

// keepWithin makes an update hold for the session where it would be written to a file that
// the binary does not read: else it would ask again at once.
func (u *permissionUpdate) keepWithin(sources []string) {
	source, inFile := strings.CutSuffix(u.Destination, "Settings") // userSettings …
	if sources == nil || !inFile || slices.Contains(sources, source) {
		return
	}
	if raw, err := withMember(u.raw, "destination", "session"); err == nil {
		u.raw, u.Destination = raw, "session"
	}
}

func (u permissionUpdate) MarshalJSON() ([]byte, error) { return u.raw, nil }

// allowAnswer lets the tool run.
type allowAnswer struct {
	Behavior           string             `json:"behavior"`
	UpdatedInput       json.RawMessage    `json:"updatedInput"`
	UpdatedPermissions []permissionUpdate `json:"updatedPermissions,omitempty"`
	ToolUseID          string             `json:"toolUseID,omitempty"`
}

// denyAnswer refuses it; the model reads the message.
type denyAnswer struct {
	Behavior  string `json:"behavior"`
	Message   string `json:"message"`
	Interrupt bool   `json:"interrupt,omitempty"`
	ToolUseID string `json:"toolUseID,omitempty"`
}

func (p *permissionRequest) allow(updates []permissionUpdate) allowAnswer {
	input := p.Input
	if len(input) == 0 || string(input) == "null" {
		input = json.RawMessage(`{}`)
	}
	return allowAnswer{Behavior: "allow", UpdatedInput: input, UpdatedPermissions: updates, ToolUseID: p.ToolUseID}
}

func (p *permissionRequest) deny(message string, stop bool) denyAnswer {
	return denyAnswer{Behavior: "deny", Message: message, Interrupt: stop, ToolUseID: p.ToolUseID}
}

// inquire reads a request of the binary, which reads the given setting sources (nil: all).
// Error: its members have another shape, and it must be refused.
func inquire(f *requestFrame, sources []string) (*inquiry, error) {
	if f.subtype() == reqElicit {
		return inquireForm(f)
	}
	var p permissionRequest
	if err := json.Unmarshal(f.Request, &p); err != nil {
		return nil, fmt.Errorf("claude: %s: %w", reqCanUseTool, err)
	}
	if p.ToolName == "" {
		return nil, fmt.Errorf("claude: %s without a tool", reqCanUseTool)
	}
	for n := range p.Suggestions {
		p.Suggestions[n].keepWithin(sources)
	}
	q := &inquiry{id: f.RequestID, agentID: p.AgentID, call: agent.CallID(p.ToolUseID), tool: p.ToolName}
	q.interaction.Options = []agent.Option{}
	q.interaction.Detail = agent.Detail{CallID: q.call, Reason: p.Reason}
	switch p.ToolName {
	case toolAsk:
		q.askQuestions(&p)
	case toolExitPlan:
		q.askPlan(&p)
	default:
		q.askPermission(&p)
	}
	return q, nil
}

// Ids of options.
const (
	optionAllow  = "allow"
	optionAlways = "always" // what is suggested, but for modes
	optionMode   = "mode:"  // and a mode
	optionDeny   = "deny"
	optionStop   = "stop"
)

// choice is one option with its wire form; text is what the person wrote.
type choice struct {
	agent.Option
	answer func(text string) any
}

// offer lists choices and answers with them.
func (q *inquiry) offer(choices []choice) {
	for _, c := range choices {
		q.interaction.Options = append(q.interaction.Options, c.Option)
	}
	q.reply = func(r agent.Response) (any, error) {
		role := map[string]string{"accept": agent.RoleAllow, "decline": agent.RoleDeny, "cancel": agent.RoleAbort}[r.Action]
		for _, c := range choices {
			if r.OptionID == c.ID || r.OptionID == "" && role != "" && role == c.Role {
				return c.answer(strings.TrimSpace(r.Text)), nil
			}
		}
		return nil, agent.Errorf(agent.CodeInvalidAnswer, "%q is not one of the choices offered", show.Bounded(cmp.Or(r.OptionID, r.Action), show.TitleLength))
	}
}

// askPermission describes a request to run a tool.
func (q *inquiry) askPermission(p *permissionRequest) {
	i, text := &q.interaction, describeCall(p.ToolName, p.Input)
	i.Kind = agent.InteractionApproval
	i.Title = show.Title(cmp.Or(p.Title, text.title))
	switch {
	case p.ToolName == "Bash", p.ToolName == "PowerShell", p.ToolName == "Monitor":
		i.Detail.Command = text.input
		i.Title = show.Title(cmp.Or(p.Title, "Run "+show.Title(text.input)))
	case text.diff != "":
		i.Detail.Diff = show.Output(text.diff)
	case launchesAgent(p.ToolName):
		i.Detail.Text = text.input
	case text.input != "":
		i.Detail.Text = "```json\n" + text.input + "\n```"
	}
	var notes []string
	if d := strings.TrimSpace(p.Description); d != "" && d != i.Title && !launchesAgent(p.ToolName) {
		notes = append(notes, show.Input(d))
	}
	if p.BlockedPath != "" && text.diff == "" {
		notes = append(notes, "It reaches `"+show.Bounded(p.BlockedPath, show.TitleLength)+"`.")
	}
	if len(notes) > 0 {
		i.Detail.Text = strings.TrimSpace(strings.Join(notes, "\n\n") + "\n\n" + i.Detail.Text)
	}
	q.offer(append(p.allowing(), p.refusing()...))
}

// allowing are the ways to say yes: to this call, and what the binary suggests to allow
// from now on. A mode is a choice of its own, because it allows much more.
func (p *permissionRequest) allowing() []choice {
	yes := func(updates ...permissionUpdate) func(string) any {
		return func(string) any { return p.allow(updates) }
	}
	out := []choice{{agent.Option{ID: optionAllow, Label: "Allow", Role: agent.RoleAllow}, yes()}}
	if p.OnlyOnce {
		return out
	}
	var rules []permissionUpdate
	var words []string
	var modes []choice
	for _, s := range p.Suggestions {
		if s.Type != "setMode" {
			rules, words = append(rules, s), append(words, s.words())
			continue
		}
		o := agent.Option{ID: optionMode + s.Mode, Label: modeLabel(s.Mode) + scope(s.Destination), Role: agent.RoleAllowAlways}
		modes = append(modes, choice{o, yes(s)})
	}
	if len(rules) > 0 {
		all := strings.Join(words, ", and ")
		out = append(out, choice{agent.Option{
			ID: optionAlways, Label: show.Bounded("Always allow "+all, show.TitleLength), Role: agent.RoleAllowAlways, Description: show.Input(all),
		}, yes(rules...)})
	}
	return append(out, modes...)
}

// refusing are the ways to say no.
func (p *permissionRequest) refusing() []choice {
	no := func(stop bool) func(string) any {
		return func(text string) any { return p.deny(cmp.Or(text, "The user declined this."), stop) }
	}
	return []choice{
		{agent.Option{ID: optionDeny, Label: "Decline", Role: agent.RoleDeny, Description: "The agent goes on without it"}, no(false)},
		{agent.Option{ID: optionStop, Label: "Decline and stop", Role: agent.RoleAbort, Description: "Stops the agent that asks"}, no(true)},
	}
}

// words say what an update allows: "touch x.txt (in the local settings of this project)".
func (u permissionUpdate) words() string {
	var what []string
	for _, r := range u.Rules {
		name := toolName(r.ToolName)
		switch {
		case r.Content == "":
			what = append(what, name)
		case r.ToolName == "Bash":
			what = append(what, strconv.Quote(r.Content))
		default:
			what = append(what, name+" "+r.Content)
		}
	}
	for _, d := range u.Directories {
		what = append(what, "work in "+d)
	}
	text := strings.Join(what, ", ")
	if u.Behavior != "" && u.Behavior != "allow" || strings.HasPrefix(u.Type, "remove") || text == "" {
		text = strings.TrimSpace(u.Type + " " + u.Behavior + " " + text) // nothing that was seen; say it as it is
	}
	return text + scope(u.Destination)
}

// scope says where an update is kept.
func scope(destination string) string {
	switch destination {
	case "session":
		return " for this session"
	case "localSettings":
		return " (local settings of this project)"
	case "projectSettings":
		return " (settings of this project)"
	case "userSettings":
		return " (your settings)"
	}
	return ""
}

func modeLabel(mode string) string {
	switch mode {
	case modeAcceptEdits:
		return "Allow, and accept all edits"
	case modeBypass:
		return "Allow, and ask for nothing"
	case modeDefault:
		return "Allow, and ask as usual"
	}
	return "Allow, in the mode " + mode
}
