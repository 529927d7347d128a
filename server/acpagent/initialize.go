package acpagent

import (
	"context"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// initialize settles the version, and with it whether children are sessions: always in
// version 2, where the editor asked for it in version 1.
func (c *conn) initialize(r *request, f wire.Frame) {
	p, err := decode[acp.InitializeRequest](f)
	version := acp.V1
	if p.ProtocolVersion >= acp.V2 {
		version = acp.V2
	}
	c.mu.Lock()
	switch {
	case err != nil:
	case c.spoken != 0:
		err = errTwice
	default:
		c.spoken = version
		c.understand(p)
	}
	c.mu.Unlock()
	r.run(func(context.Context) (any, error) {
		if err != nil {
			return nil, err
		}
		return c.card(version), nil
	})
}

// understand notes what the editor can do.
func (c *conn) understand(p acp.InitializeRequest) {
	if c.spoken == acp.V2 {
		c.subagent, c.notices = true, true
		c.forms = p.Capabilities != nil && p.Capabilities.Elicitation != nil && p.Capabilities.Elicitation.Form != nil
		return
	}
	can := p.ClientCapabilities
	if can == nil {
		return
	}
	c.subagent = can.Subagents != nil
	c.notices = can.Session != nil && can.Session.Notices != nil
	c.forms = can.Elicitation != nil && can.Elicitation.Form != nil
}

// card is who we are.
func (c *conn) card(version int) acp.InitializeResponse {
	me := &acp.Implementation{Name: "turnkeeper", Title: "Turnkeeper", Version: c.opt.Version}
	if version == acp.V2 {
		return acp.InitializeResponse{
			ProtocolVersion: acp.V2, Info: me,
			Capabilities: &acp.AgentCapabilitiesV2{Session: &acp.SessionCapabilities{
				Prompt: &acp.PromptCapabilitiesV2{EmbeddedContext: &acp.Empty{}},
				Delete: &acp.Empty{}, Title: &acp.Empty{},
			}},
		}
	}
	return acp.InitializeResponse{
		ProtocolVersion: acp.V1, AgentInfo: me,
		AgentCapabilities: &acp.AgentCapabilities{
			LoadSession:        true,
			PromptCapabilities: &acp.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: &acp.SessionCapabilities{
				List: &acp.Empty{}, Resume: &acp.Empty{}, Close: &acp.Empty{}, Delete: &acp.Empty{}, Title: &acp.Empty{},
			},
		},
	}
}
