package agent

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// The entities of nearly every event and every list are encoded by hand as well:
// encoding/json takes two to three times as long, and a large tree has thousands of
// them. A test compares every field with encoding/json, so that a new one cannot be
// forgotten here.

// object is the text of a JSON object that is being written.
type object struct {
	b      []byte
	second int64 // of a time that begins at b[at], 0 before any
	at     int
}

func (o *object) key(k string) {
	if o.b[len(o.b)-1] != '{' {
		o.b = append(append(o.b, ',', '"'), k...)
	} else {
		o.b = append(append(o.b, '"'), k...)
	}
	o.b = append(o.b, '"', ':')
}

func (o *object) str(k, v string) {
	o.key(k)
	o.b = AppendString(o.b, v)
}

// opt is str for a field that is left out when empty.
func (o *object) opt(k, v string) {
	if v != "" {
		o.str(k, v)
	}
}

func (o *object) num(k string, v int64) {
	o.key(k)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) bool(k string, v bool) {
	o.key(k)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) time(k string, v time.Time) {
	o.key(k)
	o.b = append(o.b, '"')
	if n := len(o.b); o.second != 0 && v.Unix() == o.second && v.Location() == time.UTC {
		o.b = append(o.b, o.b[o.at:o.at+wholeSeconds]...) // its beginning was written before
		o.b = appendFraction(o.b, v.Nanosecond())
	} else {
		o.b = v.AppendFormat(o.b, time.RFC3339Nano)
		if v.Location() == time.UTC && len(o.b) >= n+wholeSeconds && o.b[n+4] == '-' {
			o.second, o.at = v.Unix(), n
		}
	}
	o.b = append(o.b, '"')
}

// wholeSeconds is the length of a time up to its fraction.
const wholeSeconds = len("2006-01-02T15:04:05")

// appendFraction ends a time in UTC: the fraction of the second without zeros at its end.
func appendFraction(b []byte, nanos int) []byte {
	if nanos != 0 {
		var d [9]byte
		for i := len(d) - 1; i >= 0; i-- {
			d[i] = byte('0' + nanos%10)
			nanos /= 10
		}
		end := len(d)
		for d[end-1] == '0' {
			end--
		}
		b = append(append(b, '.'), d[:end]...)
	}
	return append(b, 'Z')
}

func (o *object) optTime(k string, v *time.Time) {
	if v != nil {
		o.time(k, *v)
	}
}

// open begins an object as a field, end ends it.
func (o *object) open(k string) {
	o.key(k)
	o.b = append(o.b, '{')
}

func (o *object) end() { o.b = append(o.b, '}') }

func (o *object) usage(k string, u Usage) {
	if u == (Usage{}) { // of most turns, and of all before they end
		o.key(k)
		o.b = append(o.b, `{"inputTokens":0,"cachedInputTokens":0,"outputTokens":0,"reasoningTokens":0,"costMicros":0}`...)
		return
	}
	o.open(k)
	o.num("inputTokens", u.InputTokens)
	o.num("cachedInputTokens", u.CachedInputTokens)
	o.num("outputTokens", u.OutputTokens)
	o.num("reasoningTokens", u.ReasoningTokens)
	o.num("costMicros", u.CostMicros)
	o.end()
}

func (o *object) err(k string, e *Error) {
	if e != nil {
		o.open(k)
		o.str("code", string(e.Code))
		o.str("message", e.Message)
		o.end()
	}
}

func (o *object) turn(t *Turn) {
	o.str("id", string(t.ID))
	o.str("agentSessionId", string(t.SessionID))
	o.str("rootTurnId", string(t.RootTurnID))
	o.str("trigger", string(t.Trigger))
	o.str("phase", string(t.Phase))
	o.opt("outcome", string(t.Outcome))
	o.err("error", t.Error)
	o.opt("nativeId", t.NativeID)
	if p := t.ProviderTurn; p != nil {
		o.open("providerTurn")
		o.str("id", string(p.ID))
		o.opt("nativeId", p.NativeID)
		o.str("phase", p.Phase)
		o.opt("outcome", string(p.Outcome))
		o.optTime("endedAt", p.EndedAt)
		o.end()
	}
	o.usage("usage", t.Usage)
	o.time("createdAt", t.CreatedAt)
	o.optTime("startedAt", t.StartedAt)
	o.optTime("settledAt", t.SettledAt)
}

func (o *object) session(s *Session) {
	o.str("id", string(s.ID))
	o.str("workspaceId", string(s.WorkspaceID))
	o.str("kind", string(s.Kind))
	o.str("provider", s.Provider)
	o.str("title", s.Title)
	o.str("cwd", s.Cwd)
	o.opt("model", s.Model)
	o.opt("agentType", s.AgentType)
	o.opt("prompt", s.Prompt)
	o.opt("permissionMode", s.PermissionMode)
	o.opt("scenario", s.Scenario)
	if s.Pinned {
		o.bool("pinned", true)
	}
	o.opt("parentAgentSessionId", string(s.ParentSessionID))
	o.opt("parentTurnId", string(s.ParentTurnID))
	o.opt("parentToolCallId", string(s.ParentToolCallID))
	o.opt("rootAgentSessionId", string(s.RootSessionID))
	o.opt("rootTurnId", string(s.RootTurnID))
	o.opt("providerSessionId", s.ProviderSessionID)
	o.open("handles")
	o.opt("threadId", s.Handles.ThreadID)
	o.opt("taskId", s.Handles.TaskID)
	o.opt("agentId", s.Handles.AgentID)
	o.opt("agentPath", s.Handles.AgentPath)
	o.opt("parentToolUseId", s.Handles.ParentToolUseID)
	o.end()
	if s.ActiveTurn != nil {
		o.open("activeTurn")
		o.turn(s.ActiveTurn)
		o.end()
	}
	if s.LatestTurn != nil {
		o.open("latestTurn")
		o.turn(s.LatestTurn)
		o.end()
	}
	o.num("pendingInteractionCount", int64(s.PendingInteractionCount))
	o.num("activeChildCount", int64(s.ActiveChildCount))
	o.str("attention", string(s.Attention))
	c := &s.Capabilities
	o.open("capabilities")
	o.bool("cancel", c.Cancel)
	o.bool("childCancel", c.ChildCancel)
	o.bool("guide", c.Guide)
	o.bool("guideWhileChildrenRun", c.GuideWhileChildrenRun)
	o.bool("confirmsCancel", c.ConfirmsCancel)
	o.bool("confirmsChildCancel", c.ConfirmsChildCancel)
	o.bool("resume", c.Resume)
	o.end()
	o.usage("usage", s.Usage)
	o.usage("usageWithChildren", s.UsageWithChildren)
	o.time("createdAt", s.CreatedAt)
	o.time("updatedAt", s.UpdatedAt)
}

// AppendTurn appends t as JSON.
func AppendTurn(b []byte, t *Turn) []byte {
	o := object{b: append(b, '{')}
	o.turn(t)
	return append(o.b, '}')
}

// AppendSession appends s as JSON.
func AppendSession(b []byte, s *Session) []byte {
	o := object{b: append(b, '{')}
	o.session(s)
	return append(o.b, '}')
}

// AppendMessage appends m as JSON.
func AppendMessage(b []byte, m *Message) []byte {
	o := object{b: append(b, '{')}
	o.str("id", string(m.ID))
	o.str("agentSessionId", string(m.SessionID))
	o.str("turnId", string(m.TurnID))
	o.num("seq", m.Seq)
	o.str("role", string(m.Role))
	o.str("kind", string(m.Kind))
	o.str("content", m.Content)
	o.str("status", string(m.Status))
	o.opt("callId", string(m.CallID))
	o.opt("name", m.Name)
	o.opt("title", m.Title)
	o.opt("input", m.Input)
	o.opt("output", m.Output)
	o.opt("childSessionId", string(m.ChildSessionID))
	o.time("createdAt", m.CreatedAt)
	o.time("updatedAt", m.UpdatedAt)
	return append(o.b, '}')
}

// AppendOperation appends p as JSON.
func AppendOperation(b []byte, p *Operation) []byte {
	o := object{b: append(b, '{')}
	o.str("id", string(p.ID))
	o.str("agentSessionId", string(p.SessionID))
	o.opt("turnId", string(p.TurnID))
	o.str("kind", string(p.Kind))
	o.str("status", string(p.Status))
	o.num("attempts", int64(p.Attempts))
	o.key("targets")
	o.b = append(o.b, '[')
	for i := range p.Targets {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = append(o.b, '{')
		o.target(&p.Targets[i])
		o.end()
	}
	o.b = append(o.b, ']')
	o.opt("messageId", string(p.MessageID))
	o.opt("requestId", string(p.RequestID))
	o.err("error", p.Error)
	o.time("createdAt", p.CreatedAt)
	o.time("updatedAt", p.UpdatedAt)
	o.optTime("deadline", p.Deadline)
	return append(o.b, '}')
}

func (o *object) target(t *Target) {
	o.str("agentSessionId", string(t.SessionID))
	o.str("turnId", string(t.TurnID))
	o.str("state", string(t.State))
	o.opt("evidence", t.Evidence)
}

// AppendString appends s as a JSON string. Bytes that are no UTF-8 become U+FFFD, and the two
// line separators that JavaScript once choked on are escaped, both as encoding/json does.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= 0x20 && c != '"' && c != '\\' {
				i++
				continue
			}
			b = append(b, s[from:i]...)
			switch c {
			case '"', '\\':
				b = append(b, '\\', c)
			case '\b':
				b = append(b, '\\', 'b')
			case '\f':
				b = append(b, '\\', 'f')
			case '\n':
				b = append(b, '\\', 'n')
			case '\r':
				b = append(b, '\\', 'r')
			case '\t':
				b = append(b, '\\', 't')
			default:
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			b = append(append(b, s[from:i]...), `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			b = append(append(b, s[from:i]...), '\\', 'u', '2', '0', '2', hex[r&0xf])
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	return append(append(b, s[from:]...), '"')
}
