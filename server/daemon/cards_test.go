package daemon

import (
	"context"
	"errors"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

type probed struct {
	provider.Adapter
	info provider.Info
}

func (p probed) Probe(context.Context) provider.Info { return p.info }

// A session with a provider that cannot be used is refused with the reason, before
// anything is stored.
func TestCardRefusesWhatCannotBeUsed(t *testing.T) {
	able := agent.Capabilities{Cancel: true}
	c := newCards(map[string]provider.Adapter{
		"here":    probed{info: provider.Info{DisplayName: "Here", Found: true, Capabilities: able}},
		"missing": probed{info: provider.Info{DisplayName: "Missing", Reason: "it is not installed"}},
	})
	if got, err := c.capabilities(t.Context(), "here"); err != nil || got != able {
		t.Errorf("a usable provider: %+v, %v", got, err)
	}
	for name, want := range map[string]*agent.Error{
		"missing": agent.Errorf(agent.CodeProviderUnavailable, "Missing cannot be used: it is not installed"),
		"nobody":  agent.Errorf(agent.CodeInvalid, "there is no provider %q", "nobody"),
	} {
		_, err := c.capabilities(t.Context(), name)
		var got *agent.Error
		if !errors.As(err, &got) || got.Code != want.Code || got.Message != want.Message {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}
