package live

import (
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// maxChunk bounds a chunk in bytes, whatever number of pieces it has.
const maxChunk = 64 << 10

// stream is one message whose text is on its way. Its text up to start is committed or
// on its way to be; pending is shown already and not committed yet.
type stream struct {
	session agent.SessionID
	turn    agent.TurnID
	message agent.MessageID
	start   int64 // where pending begins, in bytes from the message's start
	pending strings.Builder
	pieces  int
}

// Text implements provider.Sink: it shows the text at once and commits it with what
// follows it closely.
func (s *sink) Text(session agent.SessionID, turn agent.TurnID, message agent.MessageID, text string) error {
	defer s.hold()()
	if err := s.refuses(); err != nil {
		return err
	}
	switch {
	case text == "":
		return nil
	case s.a.dropped(session, turn, message):
		s.a.diagnose(provider.Diagnostic{Kind: provider.Late, Method: "root output after cancel"})
		return nil
	}
	st := s.streams[message]
	if st == nil { // its MessagePut was late or refused, or it has ended
		s.a.diagnose(provider.Diagnostic{Kind: provider.Late, Method: "text", Detail: string(message)})
		return nil
	}
	s.last = s.a.l.Clock.Now()
	s.a.l.Deltas(agent.Delta{
		WorkspaceID: s.a.workspace, RootSessionID: s.a.root,
		SessionID: session, MessageID: message, Offset: st.start + int64(st.pending.Len()), Text: text,
	})
	st.pending.WriteString(text)
	st.pieces++
	if st.pieces >= s.a.l.TextDeltas || st.pending.Len() >= maxChunk {
		return s.flushOne(st)
	}
	if s.stop == nil {
		s.stop = s.a.l.Clock.AfterFunc(s.a.l.TextDelay, s.flushLate)
	}
	return nil
}

// follow keeps up with a message from its first report to its last.
func (s *sink) follow(m agent.Message, v agent.Verdict) {
	st := s.streams[m.ID]
	switch {
	case v == agent.VerdictRefused, v == agent.VerdictLate: // no text can be added
		delete(s.streams, m.ID)
	case m.Status.Ended() && m.Status != "":
		delete(s.streams, m.ID)
	case st == nil && m.Status == agent.MessageStreaming:
		s.streams[m.ID] = &stream{session: m.SessionID, turn: m.TurnID, message: m.ID, start: int64(len(m.Content))}
	case st != nil && m.Content != "":
		st.start = int64(len(m.Content)) // it replaced what was appended
	}
}

// unfollow forgets what a turn that has settled left streaming; storage ended it too.
func (s *sink) unfollow(turn agent.TurnID) {
	for id, st := range s.streams {
		if st.turn == turn {
			delete(s.streams, id)
		}
	}
}

// flushLate commits the text that waited for its chunk long enough.
func (s *sink) flushLate() {
	defer s.hold()()
	s.stop = nil
	if !s.over {
		_ = s.flush(func(*stream) bool { return true }) // a failure ends the runtime
	}
}

// flushBefore commits the text that must stand before a fact: that of its session, and
// of every session where the fact may end a root turn and with it every message.
func (s *sink) flushBefore(f agent.Fact) error {
	switch f := f.(type) {
	case agent.TurnSettled, agent.ProviderTurnEnded, agent.SessionLost:
		return s.flush(func(*stream) bool { return true })
	case agent.MessagePut:
		if m := f.Message; m.Content != "" && s.streams[m.ID] != nil {
			st := s.streams[m.ID] // its whole text comes: the pieces need not be written too
			st.start += int64(st.pending.Len())
			st.drop()
		}
	case agent.SessionDescribed, agent.ProviderTurnStarted, agent.ChildStarted, agent.TurnStarted, agent.TextAppended,
		agent.InteractionAsked, agent.InteractionEnded, agent.UsageReported:
	}
	owner := f.Owner()
	return s.flush(func(st *stream) bool { return st.session == owner })
}

// flush commits the pending text of the streams that which picks.
func (s *sink) flush(which func(*stream) bool) error {
	left := false
	for _, st := range s.streams {
		switch {
		case st.pieces == 0:
		case !which(st):
			left = true
		default:
			if err := s.flushOne(st); err != nil {
				return err
			}
		}
	}
	if !left {
		s.stopTimer()
	}
	return nil
}

func (s *sink) flushOne(st *stream) error {
	f := agent.TextAppended{Session: st.session, Turn: st.turn, Message: st.message, Offset: st.start, Text: st.pending.String()}
	st.start += int64(st.pending.Len())
	st.drop()
	_, err := s.commit(f)
	return err
}

func (st *stream) drop() {
	st.pending.Reset()
	st.pieces = 0
}

func (s *sink) stopTimer() {
	if s.stop != nil {
		s.stop()
		s.stop = nil
	}
}
