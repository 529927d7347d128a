package hub

import (
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// endTexts lets go of streaming text that e makes needless: its message has ended and
// the event carries it whole, or its session was deleted.
func (s *space) endTexts(e *agent.Event) {
	if s.texts.newest == nil {
		return
	}
	switch e.Kind {
	case agent.MessageUpdated, agent.MessageCreated:
		if !s.texts.of(e.SessionID) {
			return
		}
		var m struct {
			ID     agent.MessageID     `json:"id"`
			Status agent.MessageStatus `json:"status"`
		}
		if json.Unmarshal(e.Data, &m) != nil || !m.Status.Ended() {
			return
		}
		if t := s.texts.byID[m.ID]; t != nil {
			s.texts.drop(t)
		}
	case agent.SessionDeleted:
		s.texts.dropWhere(func(t *text) bool { return t.session == e.SessionID || t.root == e.SessionID })
	case agent.SessionCreated, agent.SessionUpdated, agent.TurnCreated, agent.TurnUpdated,
		agent.InteractionCreated, agent.InteractionUpdated, agent.OperationUpdated, agent.ProcessUpdated:
	}
}
