package acp

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// clientName is who we are, to an agent.
const clientName = "turnkeeper"

// abilities are what an agent has said it can do.
type abilities struct {
	version             string // of the program
	load, resume, close bool
	list, fork          bool
	queues              bool // takes a prompt while another one runs
	steers              bool // takes a message for the turn that runs
	signIns             []acp.AuthMethod
}

// offers are the choices that the session has.
type offers struct {
	modes  *acp.ModeState
	config []acp.ConfigOption
}

// hello negotiates the version. An agent that has only another one says so in its answer,
// or by an error that names what it has.
func (r *runtime) hello(w *serial.Waiter, version int) {
	me := &acp.Implementation{Name: clientName, Title: "Turnkeeper", Version: "1"}
	forms := &acp.Elicitations{Form: &acp.Empty{}, URL: &acp.Empty{}}
	hello := acp.InitializeRequest{
		ProtocolVersion: version, ClientInfo: me, Info: me,
		ClientCapabilities: &acp.ClientCapabilities{
			FS: &acp.FileSystem{ReadTextFile: true, WriteTextFile: true}, Terminal: true,
			Subagents: &acp.Empty{}, Elicitation: forms, Session: &acp.ClientExtras{Notices: &acp.Empty{}},
		},
		Capabilities: &acp.ClientCapabilitiesV2{Elicitation: forms},
	}
	r.send(acp.MethodInitialize, hello, handshakeBound, func(a wire.Answer) {
		var got acp.InitializeResponse
		if err := a.Decode(&got); err != nil {
			if version == acp.V1 && offersV2(err) {
				r.hello(w, acp.V2)
				return
			}
			r.Finish(w, r.callError("start up", err))
			return
		}
		if got.ProtocolVersion != acp.V1 && got.ProtocolVersion != acp.V2 {
			r.Finish(w, agent.Errorf(agent.CodeProviderUnavailable, "%s speaks version %d of the protocol, which is not known here", r.o.Title, got.ProtocolVersion))
			return
		}
		r.version = got.ProtocolVersion
		r.able = abilitiesOf(&got)
		r.attach(w)
	})
}

// offersV2 reports whether an agent that refused version 1 has said that it has 2.
func offersV2(err error) bool {
	var refused *wire.Error
	var data struct {
		Supported []int `json:"supported"`
	}
	return errors.As(err, &refused) && decode(refused.Data, &data) == nil && slices.Contains(data.Supported, acp.V2)
}

func abilitiesOf(got *acp.InitializeResponse) abilities {
	a := abilities{signIns: got.AuthMethods}
	if who := cmp.Or(got.AgentInfo, got.Info); who != nil {
		a.version = who.Version
	}
	var extra struct {
		Steering struct {
			Supported bool `json:"supported"`
		} `json:"steering"`
	}
	a.steers = acp.MetaOf(got.Meta, &extra) && extra.Steering.Supported
	if got.ProtocolVersion == acp.V2 { // a matter of course there
		a.resume, a.close, a.list, a.queues = true, true, true, true
		if c := got.Capabilities; c != nil && c.Session != nil {
			a.fork = c.Session.Fork != nil
		}
		return a
	}
	if c := got.AgentCapabilities; c != nil {
		a.load = c.LoadSession
		if s := c.SessionCapabilities; s != nil {
			a.resume, a.close = s.Resume != nil, s.Close != nil
			a.list, a.fork = s.List != nil, s.Fork != nil
		}
	}
	return a
}

// signIn names the ways to sign in, as the end of a sentence.
func (a abilities) signIn() string {
	var names []string
	for _, m := range a.signIns {
		names = append(names, m.Name)
	}
	if names == nil {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}

// capabilities are what can be done with the root of this session. Whether one child can be
// stopped alone is told of each child.
func (r *runtime) capabilities() *agent.Capabilities {
	return &agent.Capabilities{
		Cancel: true, ConfirmsCancel: true,
		Guide: r.able.queues || r.able.steers, GuideWhileChildrenRun: true,
		Resume: r.able.resume || r.able.load,
	}
}

// attach begins the session, or takes it up again.
func (r *runtime) attach(w *serial.Waiter) {
	id, cwd := r.params.Root.ProviderSessionID, r.params.Root.Cwd
	if id == "" {
		r.newSession(w)
		return
	}
	method, params := r.able.resumeOf(id, cwd)
	if method == "" {
		method, params = r.able.loadOf(r.version, id, cwd)
	}
	r.takeUp(w, method, params)
}

// newSession begins a new session. What is said of it before the answer is held.
func (r *runtime) newSession(w *serial.Waiter) {
	r.send(acp.MethodNewSession, acp.NewSessionRequest{Cwd: r.params.Root.Cwd, MCPServers: []json.RawMessage{}}, sessionBound, func(a wire.Answer) {
		var got acp.SessionResponse
		if err := a.Decode(&got); err != nil {
			r.Finish(w, r.callError("begin a session", err))
			return
		}
		if got.SessionID == "" {
			r.Finish(w, agent.Errorf(agent.CodeProviderRefused, "%s began a session without a name", r.o.Title))
			return
		}
		r.valid = true
		r.opened(w, got.SessionID, &got)
	})
}

// takeUp resumes or loads the session of before. What the agent repeats is history. Where
// it does not have the session any more, a new one begins and the person is told.
func (r *runtime) takeUp(w *serial.Waiter, method string, params any) {
	id := r.params.Root.ProviderSessionID
	if method == "" {
		r.forgotten(w)
		return
	}
	r.root.id = id
	r.byID[id] = r.root
	epoch := r.beginLoad()
	r.send(method, params, sessionBound, func(a wire.Answer) {
		var got acp.SessionResponse
		err := a.Decode(&got)
		r.endLoad(epoch, err == nil)
		var refused *wire.Error
		switch {
		case err == nil:
			r.opened(w, id, &got)
		case !errors.As(err, &refused) || refused.Code == acp.CodeAuthRequired || busy(refused):
			r.Finish(w, r.callError("take up the session", err))
		case method == acp.MethodResumeSession && r.able.load:
			method, params := r.able.loadOf(r.version, id, r.params.Root.Cwd)
			r.takeUp(w, method, params)
		default:
			r.forgotten(w)
		}
	})
}

// busy reports that another process holds the session: it is not lost.
func busy(e *wire.Error) bool {
	return strings.Contains(string(e.Data), "active_writer") || strings.Contains(e.Message, "active_writer")
}

// forgotten begins anew because the agent has nothing of the session.
func (r *runtime) forgotten(w *serial.Waiter) {
	r.Diagnose(provider.Refused, "resume", r.params.Root.ProviderSessionID)
	delete(r.byID, r.root.id)
	r.root.id = ""
	if last := r.params.Root.LatestTurn; last != nil && len(r.params.ProviderTurns) > 0 {
		r.notice(provider.ForgottenText(r.o.Title))
	}
	r.newSession(w)
}

// resumeOf is the request that takes up a session without its history, "" if there is none.
func (a abilities) resumeOf(id, cwd string) (string, any) {
	if !a.resume {
		return "", nil
	}
	return acp.MethodResumeSession, acp.LoadSessionRequest{SessionID: id, Cwd: cwd, MCPServers: []json.RawMessage{}}
}

// loadOf is the request that repeats the history of a session and tells what is live, or
// the nearest thing to it; "" if there is none.
func (a abilities) loadOf(version int, id, cwd string) (string, any) {
	p := acp.LoadSessionRequest{SessionID: id, Cwd: cwd, MCPServers: []json.RawMessage{}}
	switch {
	case version == acp.V2:
		p.ReplayFrom = &acp.ReplayFrom{Type: acp.ReplayStart}
		return acp.MethodResumeSession, p
	case a.load:
		return acp.MethodLoadSession, p
	}
	return a.resumeOf(id, cwd)
}

// opened takes the answer that begins or takes up the session, and sets what was chosen.
func (r *runtime) opened(w *serial.Waiter, id string, got *acp.SessionResponse) {
	r.offered(got)
	r.Apply(agent.SessionDescribed{Session: r.root.session, ProviderSessionID: id, Capabilities: r.capabilities()})
	r.rootIs(id)
	r.Ready = true
	r.o.learn(r.card())
	r.choose(func(err error) {
		if err != nil {
			r.Ready = false // it never was of use
		}
		r.Finish(w, err)
	})
}

// offered takes over what the session offers.
func (r *runtime) offered(got *acp.SessionResponse) {
	if got.Modes != nil {
		r.offers.modes = got.Modes
	}
	if got.ConfigOptions != nil {
		r.optionsAre(r.root, got.ConfigOptions)
	}
}

// optionsAre takes over the options of a session. The model among them is shown.
func (r *runtime) optionsAre(l *lane, options []acp.ConfigOption) {
	if l.isRoot() {
		r.offers.config = options
	}
	at := slices.IndexFunc(options, func(o acp.ConfigOption) bool { return o.Category == "model" || o.Key() == "model" })
	if at < 0 {
		return
	}
	if model := options[at].Current(); model != "" && model != l.model {
		l.model = model
		if l.known && !l.shut {
			r.Apply(agent.SessionDescribed{Session: l.session, Model: model})
		}
	}
}

// option is one of the session's options by its category or name, nil if there is none.
func (o *offers) option(name string) *acp.ConfigOption {
	at := slices.IndexFunc(o.config, func(c acp.ConfigOption) bool { return c.Category == name })
	if at < 0 {
		at = slices.IndexFunc(o.config, func(c acp.ConfigOption) bool { return c.Key() == name })
	}
	if at < 0 {
		return nil
	}
	return &o.config[at]
}

// card is what the session tells of the agent.
func (r *runtime) card() card {
	c := card{version: r.able.version, modes: values(r.offers.option("mode")), models: values(r.offers.option("model"))}
	if m := r.offers.modes; m != nil {
		c.modes = nil
		for _, mode := range m.AvailableModes {
			c.modes = append(c.modes, mode.ID)
		}
	}
	return c
}

// values are what can be chosen of an option.
func values(o *acp.ConfigOption) []string {
	if o == nil {
		return nil
	}
	var out []string
	for _, choice := range o.Options.Flat() {
		out = append(out, choice.Value)
	}
	return out
}

// choose sets the mode and the model, one after the other. The mode is always set where one
// is known: left to itself, an agent may let a model decide what a person should.
func (r *runtime) choose(done func(error)) {
	mode := cmp.Or(r.params.Root.PermissionMode, r.o.Mode)
	r.setMode(mode, func(err error) {
		if err != nil && r.params.Root.PermissionMode != "" {
			done(err)
			return
		}
		if err != nil {
			r.Diagnose(provider.Refused, acp.MethodSetMode, mode)
		}
		r.setModel(r.params.Root.Model, done)
	})
}

func (r *runtime) setMode(mode string, done func(error)) {
	modes, option := r.offers.modes, r.offers.option("mode")
	switch {
	case mode == "":
		done(nil)
	case modes != nil && slices.ContainsFunc(modes.AvailableModes, func(m acp.Mode) bool { return m.ID == mode }):
		if modes.CurrentModeID == mode {
			done(nil)
			return
		}
		r.setting(acp.MethodSetMode, acp.SetModeRequest{SessionID: r.root.id, ModeID: mode}, "use the mode "+mode, done)
	case option != nil:
		r.setOption(option, mode, "use the mode "+mode, done)
	default:
		done(agent.Errorf(agent.CodeInvalid, "%s has no mode %q", r.o.Title, mode))
	}
}

func (r *runtime) setModel(model string, done func(error)) {
	option := r.offers.option("model")
	switch {
	case model == "", option != nil && option.Current() == model:
		done(nil)
	case option != nil:
		r.setOption(option, model, "use the model "+model, done)
	default:
		done(agent.Errorf(agent.CodeInvalid, "%s offers no choice of model", r.o.Title))
	}
}

func (r *runtime) setOption(o *acp.ConfigOption, value, what string, done func(error)) {
	params := acp.SetConfigOptionRequest{SessionID: r.root.id, ConfigID: o.Key(), Value: value}
	if r.version == acp.V2 {
		params.Type = "id"
	}
	r.setting(acp.MethodSetConfigOption, params, what, done)
}

func (r *runtime) setting(method string, params any, what string, done func(error)) {
	r.send(method, params, settingBound, func(a wire.Answer) {
		if a.Err != nil {
			done(r.callError(what, a.Err))
			return
		}
		var got acp.SetConfigOptionResponse
		if a.Decode(&got) == nil && got.ConfigOptions != nil {
			r.optionsAre(r.root, got.ConfigOptions)
		}
		done(nil)
	})
}

// remember binds what storage knows of the tree, so that a child of an earlier process is
// found again when the agent speaks of it.
func (r *runtime) remember(m agent.Remembered) {
	for _, p := range m.ProviderTurns {
		r.keys.Note(p.Key)
	}
	for _, c := range m.Children {
		l := &lane{
			id: c.Handles.ThreadID, parent: r.root, session: c.ID, title: c.Title, about: c.AgentType, model: c.Model, known: true,
			told: c.Capabilities.ChildCancel,
		}
		if l.id == "" {
			continue
		}
		r.enter(l)
		if last := c.LatestTurn; last != nil {
			l.add(&turn{id: last.ID, begun: true, ended: true})
		}
	}
	for _, c := range m.Children { // parents may come in any order
		if l, p := r.bySession[c.ID], r.bySession[c.ParentSessionID]; l != nil && p != nil {
			l.parent = p
		}
	}
	if last := m.Root.LatestTurn; last != nil {
		r.current = last.ID
		r.root.add(&turn{id: last.ID, begun: true, ended: true})
	}
}
