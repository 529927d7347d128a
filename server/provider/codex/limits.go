package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

// noteLimits tells of the account's limits, of no thread: every model call of any agent
// repeats it.
const noteLimits = "account/rateLimits/updated"

type limitsParams struct {
	RateLimits struct {
		Reached   string       `json:"rateLimitReachedType"`
		Primary   *limitWindow `json:"primary"`
		Secondary *limitWindow `json:"secondary"`
	} `json:"rateLimits"`
}

type limitWindow struct {
	UsedPercent int   `json:"usedPercent"`
	ResetsAt    int64 `json:"resetsAt"` // s since 1970, 0 if not told
}

// rateLimits says once, in the root turn that runs, that a limit is reached: whatever
// fails or waits then is no fault of the agents. It is never the end of a turn: Codex tells
// that itself.
func (r *runtime) rateLimits(f frame) {
	var p limitsParams
	if err := json.Unmarshal(f.params, &p); err != nil {
		r.Diagnose(provider.Malformed, f.method, "")
		return
	}
	reached := p.RateLimits.Reached
	if reached == r.limit || r.root == nil {
		return
	}
	u := r.root.active
	if reached != "" && u == nil {
		return // said again with the next call
	}
	r.limit = reached
	if reached == "" || u.dropped {
		return
	}
	text := "Codex: " + strings.ReplaceAll(reached, "_", " ") + "."
	var resets int64
	for _, w := range []*limitWindow{p.RateLimits.Primary, p.RateLimits.Secondary} {
		if w != nil && w.UsedPercent >= 100 {
			resets = max(resets, w.ResetsAt)
		}
	}
	if resets > 0 {
		text = fmt.Sprintf("%s It is lifted at %s.", text, time.Unix(resets, 0).UTC().Format("2006-01-02 15:04 UTC"))
	}
	r.putItem(r.root, u, &item{role: agent.RoleSystem, kind: agent.MessageNotice}, agent.Message{Content: text, Status: agent.MessageCompleted})
}
