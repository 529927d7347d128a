package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// TurnKeys names the provider turns of one session where the provider has no name for
// them yet. The zero value begins at the first; it is for one goroutine.
type TurnKeys struct{ last int }

const turnKeyPrefix = "pt-"

// Next is a key that none before it was.
func (k *TurnKeys) Next() agent.ProviderTurnID {
	k.last++
	return agent.ProviderTurnID(fmt.Sprintf("%s%d", turnKeyPrefix, k.last))
}

// Note keeps keys unique across processes of one session: it takes one of an earlier.
func (k *TurnKeys) Note(key agent.ProviderTurnID) {
	var n int
	if _, err := fmt.Sscanf(strings.TrimPrefix(string(key), turnKeyPrefix), "%d", &n); err == nil {
		k.last = max(k.last, n)
	}
}

// Forgotten is the notice that an agent starts anew because its provider, named as people
// know it, no longer has the conversation. False if there was nothing to remember.
func Forgotten(p OpenParams, name string, id agent.MessageID) (agent.MessagePut, bool) {
	had := func(t agent.RememberedProviderTurn) bool { return t.NativeID != "" }
	if p.Root.LatestTurn == nil || !slices.ContainsFunc(p.ProviderTurns, had) {
		return agent.MessagePut{}, false
	}
	return agent.MessagePut{Message: agent.Message{
		ID: id, SessionID: p.Root.ID, TurnID: p.Root.LatestTurn.ID, Role: agent.RoleSystem, Kind: agent.MessageNotice,
		Status:  agent.MessageCompleted,
		Content: ForgottenText(name),
	}}, true
}

// ForgottenText is what that notice says.
func ForgottenText(name string) string {
	return name + " no longer has this conversation. The agent begins anew and remembers nothing of what was said before."
}
