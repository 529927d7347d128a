package command_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func codeOf(err error) agent.Code {
	var e *agent.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func TestInputIsChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		send := func(m agent.NewMessage) error {
			m.Session = "root"
			_, err := d.Send(t.Context(), "ws", m)
			return err
		}
		create := func(n agent.NewSession) error {
			n.Workspace = "ws"
			_, err := d.CreateSession(t.Context(), n)
			return err
		}
		workspace := func(name, path string) error {
			_, err := d.CreateWorkspace(t.Context(), name, path)
			return err
		}
		for name, err := range map[string]error{
			"blank message":        send(agent.NewMessage{Text: " \n"}),
			"huge message":         send(agent.NewMessage{Text: strings.Repeat("x", 1<<20+1)}),
			"client id with space": send(agent.NewMessage{Text: "x", ClientMessageID: "a b"}),
			"no provider":          create(agent.NewSession{}),
			"unknown provider":     create(agent.NewSession{Provider: "nope"}),
			"title of two lines":   create(agent.NewSession{Provider: "demo", Title: "a\nb"}),
			"relative cwd":         create(agent.NewSession{Provider: "demo", Cwd: "src"}),
			"cwd that is not":      create(agent.NewSession{Provider: "demo", Cwd: "/no/such/place"}),
			"control in scenario":  create(agent.NewSession{Provider: "demo", Scenario: "a\x00"}),
			"unknown scenario":     create(agent.NewSession{Provider: "demo", Scenario: "unknown"}),
			"blank first message":  create(agent.NewSession{Provider: "demo", Message: &agent.NewMessage{}}),
			"relative workspace":   workspace("", "here"),
			"workspace that's not": workspace("", "/no/such/place"),
		} {
			if codeOf(err) != agent.CodeInvalid {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(d.store.created)+len(d.store.submitted) != 0 {
			t.Error("something wrong was stored")
		}
	})
}

// The same key is answered from storage, also when the request could no longer be taken: its
// provider or its directory is gone.
func TestRepeatedCreationNeedsNothingToBeThereStill(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.store.reply = agent.Submitted{Session: agent.Session{ID: "root"}, Repeated: true}
		gone := agent.NewSession{Workspace: "ws", Key: "k", Provider: "nope", Cwd: "/no/such/place", Title: " t "}
		if _, err := d.CreateSession(t.Context(), gone); codeOf(err) != agent.CodeInvalid {
			t.Errorf("the first time: %v", err)
		}
		d.store.created = []agent.NewSession{gone}
		sub, err := d.CreateSession(t.Context(), gone)
		if err != nil || sub.Session.ID != "root" || !sub.Repeated {
			t.Errorf("again: %+v, %v", sub, err)
		}
	})
}

func TestCreateSessionIsDurableFirstAndStartsOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.store.reply = agent.Submitted{Session: agent.Session{ID: "root"}, Message: &agent.Message{}, Delivery: agent.DeliveryStarted}
		n := agent.NewSession{Workspace: "ws", Provider: "demo", Message: &agent.NewMessage{Text: "Go."}}
		if _, err := d.CreateSession(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d.live.count("start") != 1 || !d.store.created[0].Capabilities.Guide || d.store.created[0].Cwd != "/" {
			t.Errorf("started %d times, stored %+v", d.live.count("start"), d.store.created)
		}
		d.store.reply.Repeated = true
		_, _ = d.CreateSession(t.Context(), n)
		synctest.Wait()
		if d.live.count("start") != 1 {
			t.Error("a repeated request started again")
		}
	})
}

func TestMessagesToAChildAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.store.sessions["kid"] = agent.Session{ID: "kid", Kind: agent.KindChild}
		_, err := d.Send(t.Context(), "ws", agent.NewMessage{Session: "kid", Text: "x"})
		if codeOf(err) != agent.CodeChildInput {
			t.Errorf("Send = %v", err)
		}
		_, err = d.Send(t.Context(), "ws", agent.NewMessage{Session: "none", Text: "x"})
		if codeOf(err) != agent.CodeNotFound {
			t.Errorf("Send = %v", err)
		}
	})
}

func TestCancelRingsAndRefusesWhatTheProviderCannot(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		if _, _, err := d.Cancel(t.Context(), "ws", "root", "t", "web"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d.live.count("cancel") != 1 {
			t.Error("the worker was not woken")
		}
		d.store.sessions["root"] = agent.Session{ID: "root", Kind: agent.KindRoot}
		kid := agent.Session{ID: "kid", Kind: agent.KindChild}
		kid.RootSessionID = "root"
		d.store.sessions["kid"] = kid
		d.store.turns["kt"] = agent.Turn{ID: "kt", SessionID: "kid", RootTurnID: "t", Phase: agent.PhaseRunning}
		if _, _, err := d.Cancel(t.Context(), "ws", "kid", "kt", "web"); codeOf(err) != agent.CodeCancelUnsupported {
			t.Errorf("Cancel = %v", err)
		}
	})
}

func TestAnswerIsDeliveredInTheBackground(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		if _, _, err := d.Answer(t.Context(), "ws", agent.NewAnswer{Response: agent.Response{OptionID: "allow"}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d.live.count("answer") != 1 {
			t.Error("the answer was not delivered")
		}
		if _, _, err := d.Answer(t.Context(), "ws", agent.NewAnswer{Response: agent.Response{Action: "maybe"}}); codeOf(err) != agent.CodeInvalid {
			t.Errorf("Answer = %v", err)
		}
	})
}

func TestDeleteStopsWhatRan(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		d.store.deleted = []agent.Deleted{
			{Root: agent.Session{ID: "root"}, Sessions: []agent.SessionID{"kid"}},
			{Root: agent.Session{ID: "root"}, WasRoot: true, Sessions: []agent.SessionID{"root"}},
		}
		for range 3 { // the third deletes nothing, and is fine
			if err := d.DeleteSession(t.Context(), "ws", "x"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if d.live.count("forget") != 1 || d.live.count("close") != 1 {
			t.Errorf("calls %v", d.live.seen())
		}
	})
}

func TestTitles(t *testing.T) {
	inBubble(t, func(t *testing.T, d *desk) {
		name, empty := "  New name ", " "
		s, err := d.UpdateSession(t.Context(), "ws", "root", agent.SessionPatch{Title: &name})
		if err != nil || s.Title != "New name" {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := d.UpdateSession(t.Context(), "ws", "root", agent.SessionPatch{Title: &empty}); codeOf(err) != agent.CodeInvalid {
			t.Errorf("%v", err)
		}
		if w, err := d.CreateWorkspace(t.Context(), "", t.TempDir()+"/."); err != nil || w.Name == "" || strings.HasSuffix(w.Path, ".") {
			t.Errorf("%+v, %v", w, err)
		}
	})
}
