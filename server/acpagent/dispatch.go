package acpagent

import (
	"context"
	"encoding/json"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// handle is one frame's turn in the order of the wire. What a frame changes at once (which
// grants count, which prompts are on their way) changes here; everything that takes time is
// done elsewhere.
func (c *conn) handle(f wire.Frame) {
	if f.Kind == wire.KindNotification {
		switch f.Method {
		case acp.MethodCancel:
			c.cancel(f.Params)
		case wire.CancelMethod:
			c.withdraw(f.Params)
		}
		return
	}
	r, ok := c.accept(f.ID)
	if !ok {
		return
	}
	if err := c.admit(f); err != nil {
		r.run(func(context.Context) (any, error) { return nil, err })
		return
	}
	c.dispatch(r, f)
}

// admit refuses what no method may do: anything before initialize, and anything with a
// child, be the method known or not.
func (c *conn) admit(f wire.Frame) error {
	if c.version() == 0 && f.Method != acp.MethodInitialize {
		return errUninitialized
	}
	var about acp.SessionRef
	if json.Unmarshal(f.Params, &about) == nil && c.isChild(about.SessionID) {
		return errChild
	}
	return nil
}

func (c *conn) dispatch(r *request, f wire.Frame) {
	switch f.Method {
	case acp.MethodInitialize:
		c.initialize(r, f)
	case acp.MethodAuthenticate, acp.MethodLogin:
		r.run(func(context.Context) (any, error) { return acp.Empty{}, nil }) // the daemon's agents are signed in by themselves
	case acp.MethodNewSession:
		c.newSession(r, f)
	case acp.MethodLoadSession, acp.MethodResumeSession:
		c.setUp(r, f)
	case acp.MethodListSessions:
		c.listSessions(r, f)
	case acp.MethodCloseSession:
		c.closeSession(r, f)
	case acp.MethodDeleteSession:
		c.deleteSession(r, f)
	case acp.MethodSetTitle:
		c.setTitle(r, f)
	case acp.MethodPrompt:
		c.prompt(r, f)
	case acp.MethodSetMode:
		c.setMode(r, f)
	case acp.MethodSetConfigOption:
		c.setOption(r, f)
	default:
		r.run(func(ctx context.Context) (any, error) {
			if err := c.refuseChild(ctx, f); err != nil {
				return nil, err
			}
			return nil, &wire.Error{Code: wire.CodeMethodNotFound, Message: "there is no method " + f.Method}
		})
	}
}

// refuseChild finds out whether a session that was not met here is a child.
func (c *conn) refuseChild(ctx context.Context, f wire.Frame) error {
	var about acp.SessionRef
	if json.Unmarshal(f.Params, &about) != nil || about.SessionID == "" || c.session(about.SessionID) != nil {
		return nil
	}
	d, err := c.api.find(ctx, about.SessionID, "")
	if err == nil && !d.Session.IsRoot() {
		return errChild
	}
	return nil
}
