package store

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Times are stored as microseconds since 1970; 0 is none.

func micros(t time.Time) int64 { return t.UnixMicro() }

func timeOf(us int64) time.Time { return time.UnixMicro(us).UTC() }

func timeOrNil(us int64) *time.Time {
	if us == 0 {
		return nil
	}
	t := timeOf(us)
	return &t
}

func errorOf(code agent.Code, text string) *agent.Error {
	if code == "" {
		return nil
	}
	return &agent.Error{Code: code, Message: text}
}

// codeText is errorOf backwards.
func codeText(e *agent.Error) (agent.Code, string) {
	if e == nil {
		return "", ""
	}
	return e.Code, e.Message
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// stateOf is the part of a turn that agent.NextTurn decides about.
func stateOf(r *dbgen.Turn) agent.TurnState {
	return agent.TurnState{Root: r.IsRoot == 1, Phase: r.Phase, Outcome: r.Outcome, Err: errorOf(r.ErrorCode, r.ErrorText)}
}

// applyState is stateOf backwards.
func applyState(r *turnRow, s agent.TurnState) {
	r.Phase, r.Outcome = s.Phase, s.Outcome
	r.ErrorCode, r.ErrorText = codeText(s.Err)
}

func turnOf(r *dbgen.Turn) agent.Turn {
	t := agent.Turn{
		ID: r.ID, SessionID: r.SessionID, RootTurnID: r.RootTurnID, Trigger: r.Cause, Phase: r.Phase, Outcome: r.Outcome,
		Error: errorOf(r.ErrorCode, r.ErrorText), NativeID: r.NativeID, Usage: usageOf(r.Usage),
		CreatedAt: timeOf(r.CreatedAt), StartedAt: timeOrNil(r.StartedAt), SettledAt: timeOrNil(r.SettledAt),
	}
	if r.ProviderID != "" {
		t.ProviderTurn = shownProviderTurn(r)
	}
	return t
}

// shownProviderTurn is the provider turn that spoke last of a root turn. Its phase follows
// from the rest (migration 4).
func shownProviderTurn(r *dbgen.Turn) *agent.ProviderTurn {
	p := &agent.ProviderTurn{ID: r.ProviderID, NativeID: r.ProviderNative, Phase: agent.ProviderRunning, Outcome: r.ProviderOutcome}
	switch {
	case r.ProviderOutcome != "":
		p.Phase, p.EndedAt = agent.ProviderEnded, timeOrNil(r.ProviderUntil)
	case r.ProviderUntil != 0:
		p.Phase = agent.ProviderReserved
	}
	return p
}

// sessionOf is a session with its latest turn, nil before any, and how many turns live
// below it.
func (s *Store) sessionOf(r *dbgen.Session, latest *dbgen.Turn, active int64) agent.Session {
	e := agent.Session{
		ID: r.ID, WorkspaceID: r.WorkspaceID, Kind: r.Kind, Provider: r.Provider, Title: r.Title, Cwd: r.Cwd, Model: r.Model,
		AgentType: r.AgentType, Prompt: r.Prompt, PermissionMode: r.PermissionMode, Scenario: r.Scenario, Pinned: r.Pinned == 1,
		Relation: agent.Relation{
			ParentSessionID: r.ParentID, ParentTurnID: r.ParentTurnID, ParentToolCallID: r.ParentCallID,
			RootSessionID: r.RootID, RootTurnID: r.RootTurnID,
		},
		ProviderSessionID: r.ProviderSessionID, Handles: handlesOf(r.Handles), Capabilities: capabilitiesOf(r.Capabilities),
		PendingInteractionCount: int(r.Pending), ActiveChildCount: int(active),
		Usage: usageOf(r.OwnUsage), UsageWithChildren: usageOf(r.TreeUsage),
		CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
	}
	if latest != nil {
		t := turnOf(latest)
		e.LatestTurn = &t
		if t.Live() {
			e.ActiveTurn = &t
		}
	}
	e.Attention = agent.AttentionOf(e.PendingInteractionCount, e.LatestTurn)
	if e.Attention == agent.AttentionNone && e.ActiveTurn != nil && s.activity.silent(latest, r, s.opt.StallAfter, s.opt.Now()) != 0 {
		e.Attention = agent.AttentionStalled
	}
	return e
}

// usageOf reads the five counts of agent.Usage, in the order of its fields. They are one
// JSON array, because a session has ten of them and mostly all are 0; "" is all 0.
func usageOf(s string) (u agent.Usage) {
	if s == "" {
		return u
	}
	var n [5]int64
	if json.Unmarshal([]byte(s), &n) != nil {
		return u
	}
	return agent.Usage{InputTokens: n[0], CachedInputTokens: n[1], OutputTokens: n[2], ReasoningTokens: n[3], CostMicros: n[4]}
}

func usageText(u agent.Usage) string {
	if u == (agent.Usage{}) {
		return ""
	}
	b := []byte{'['}
	for i, n := range []int64{u.InputTokens, u.CachedInputTokens, u.OutputTokens, u.ReasoningTokens, u.CostMicros} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return string(append(b, ']'))
}

func usageMinus(a, b agent.Usage) agent.Usage {
	return a.Add(agent.Usage{
		InputTokens: -b.InputTokens, CachedInputTokens: -b.CachedInputTokens, OutputTokens: -b.OutputTokens,
		ReasoningTokens: -b.ReasoningTokens, CostMicros: -b.CostMicros,
	})
}

func handlesOf(s string) (h agent.Handles) {
	if s != "" {
		_ = json.Unmarshal([]byte(s), &h)
	}
	return h
}

func handlesText(h agent.Handles) string {
	if h == (agent.Handles{}) {
		return ""
	}
	return text(h)
}

// knownCapabilities remembers the few texts there are: every session event needs them.
var knownCapabilities sync.Map

func capabilitiesOf(s string) (c agent.Capabilities) {
	if s == "" {
		return c
	}
	if known, ok := knownCapabilities.Load(s); ok {
		return known.(agent.Capabilities)
	}
	_ = json.Unmarshal([]byte(s), &c)
	knownCapabilities.Store(s, c)
	return c
}

// messageOf is a message with the text that has streamed so far.
func messageOf(r *dbgen.Message, streamed string) agent.Message {
	return agent.Message{
		ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, Seq: r.Seq, Role: r.Role, Kind: r.Kind,
		Content: r.Body + streamed, Status: r.Status, CallID: r.CallID, Name: r.Name, Title: r.Title, Input: r.Input,
		Output: r.Output, ChildSessionID: r.ChildID, CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
	}
}

func interactionOf(r *dbgen.Interaction) agent.Interaction {
	i := agent.Interaction{
		SessionID: r.SessionID, TurnID: r.TurnID, RequestID: r.RequestID, Kind: r.Kind, Title: r.Title, Options: []agent.Option{},
		Status: r.Status, AnsweredBy: r.AnsweredBy, Response: responseOf(r.Response), Error: errorOf(r.ErrorCode, r.ErrorText),
		ProviderTurnID: r.ProviderTurnID, Owner: r.Owner, CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
	}
	_ = json.Unmarshal([]byte(r.Detail), &i.Detail)
	_ = json.Unmarshal([]byte(r.Options), &i.Options)
	return i
}

func responseOf(s string) *agent.Response {
	if s == "" {
		return nil
	}
	var r agent.Response
	if json.Unmarshal([]byte(s), &r) != nil {
		return nil
	}
	return &r
}

func operationOf(r *dbgen.Operation, targets []dbgen.OperationTarget) agent.Operation {
	o := agent.Operation{
		ID: r.ID, SessionID: r.SessionID, TurnID: r.TurnID, Kind: r.Kind, Status: r.Status, Attempts: int(r.Attempts),
		Targets: make([]agent.Target, len(targets)), MessageID: r.MessageID, RequestID: r.RequestID,
		Error: errorOf(r.ErrorCode, r.ErrorText), CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
		Deadline: timeOrNil(r.Deadline),
	}
	for i, t := range targets {
		o.Targets[i] = agent.Target{SessionID: t.SessionID, TurnID: t.TurnID, State: t.State, Evidence: t.Evidence}
	}
	return o
}

func workspaceOf(r *dbgen.Workspace) agent.Workspace {
	return agent.Workspace{ID: r.ID, Name: r.Name, Path: r.Path, CreatedAt: timeOf(r.CreatedAt)}
}

// marshal encodes as the HTTP API does, without escaping for HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// text is marshal for values of ours, which always encode.
func text(v any) string {
	b, _ := marshal(v)
	return string(b)
}

// keysJSON is a list of keys as json_each takes it.
func keysJSON(keys []int64) string {
	b := make([]byte, 0, 8*len(keys)+2)
	b = append(b, '[')
	for i, k := range keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, k, 10)
	}
	return string(append(b, ']'))
}
