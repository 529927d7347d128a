package hub

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func deleted(id, root agent.SessionID) agent.Event {
	return agent.Event{Kind: agent.SessionDeleted, SessionID: id, RootSessionID: root, Data: []byte(`{}`)}
}

func says(session, root agent.SessionID, text string) agent.Delta {
	return agent.Delta{WorkspaceID: ws, RootSessionID: root, SessionID: session, MessageID: agent.MessageID("m_" + session), Text: text}
}

// late returns what a client gets that comes now, from the log's beginning or from now on.
func (f fixture) late(t *testing.T, after *int64) []frame {
	t.Helper()
	s, _, err := f.Subscribe(t.Context(), Request{Workspace: ws, After: after})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return drain(t, s)
}

// A tree of a root, a child and one below that, beside another root; each says something.
// Storage tells one deletion for each session that goes.
func TestTextOfADeletedTreeIsGivenToNobody(t *testing.T) {
	const root, child, nested, other = "root", "child", "nested", "other"
	for _, c := range []struct {
		name string
		gone []agent.Event
		left string
	}{
		{"nothing", []agent.Event{session(child)}, "m_other@0=o m_nested@0=n m_child@0=c m_root@0=r"},
		{"the nested one", []agent.Event{deleted(nested, root)}, "m_other@0=o m_child@0=c m_root@0=r"},
		{"the child with what is below", []agent.Event{deleted(child, root), deleted(nested, root)}, "m_other@0=o m_root@0=r"},
		{"below first", []agent.Event{deleted(nested, root), deleted(child, root)}, "m_other@0=o m_root@0=r"},
		{"the root", []agent.Event{deleted(root, root), deleted(child, root), deleted(nested, root)}, "m_other@0=o"},
		{"the root, told alone", []agent.Event{deleted(root, root)}, "m_other@0=o"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(Options{})
			early := f.subscribe(t, 0)
			defer early.Close()
			all := []agent.Delta{says(root, root, "r"), says(child, root, "c"), says(nested, root, "n"), says(other, other, "o")}
			for _, d := range all {
				f.Delta(d)
			}
			f.put(c.gone...)
			if got := describe(f.late(t, nil)); got != c.left {
				t.Errorf("a client that comes after it gets %q, want %q", got, c.left)
			}
			var tell string
			for _, d := range drain(t, early) {
				if d.Type == "delta" {
					tell += " " + describe([]frame{d})
				}
			}
			if tell != " "+c.left {
				t.Errorf("one that was there and had not looked yet gets %q, want %q", tell, c.left)
			}

			// A provider goes on talking until it has heard of the deletion.
			for _, d := range all {
				d.Offset = 1
				d.Text = "+"
				f.Delta(d)
			}
			for _, d := range f.late(t, nil) {
				if want := fmt.Sprintf("%s@0=%c+", d.MessageID, d.MessageID[2]); describe([]frame{d}) != want {
					t.Errorf("text came back: %s, want %s", describe([]frame{d}), want)
				}
			}
		})
	}
}

// The ring holds events as they were told. Of a deleted session it must give none of them
// to a client that comes later: that one reads the log, which storage has emptied.
func TestRingForgetsDeletedSessions(t *testing.T) {
	said := func(session, root agent.SessionID) agent.Event {
		return agent.Event{Kind: agent.MessageUpdated, SessionID: session, RootSessionID: root, Data: []byte(`{"content":"secret"}`)}
	}
	var zero int64
	for _, c := range []struct {
		name    string
		batches [][]agent.Event
		gone    string
		reads   bool // the log must be asked
	}{
		{"another session", [][]agent.Event{{said("x", "x")}, {deleted("y", "y")}}, "y", false},
		{"its own", [][]agent.Event{{said("x", "x")}, {deleted("x", "x")}}, "x", true},
		{"below the root", [][]agent.Event{{said("kid", "x")}, {deleted("x", "x")}}, "x", true},
		{"of one commit", [][]agent.Event{{said("kid", "x"), deleted("kid", "x")}}, "kid", true},
		{"of one commit, last", [][]agent.Event{{said("y", "y")}, {said("kid", "x"), said("y", "y"), deleted("kid", "x"), said("y", "y")}}, "kid", true},
		{"deletions alone", [][]agent.Event{{deleted("kid", "x"), deleted("x", "x")}}, "x", false},
		{"a child, then its root", [][]agent.Event{{deleted("kid", "x")}, {deleted("x", "x")}}, "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(Options{})
			early := f.subscribe(t, 0) // the ring fills for it
			defer early.Close()
			var n int64
			for _, b := range c.batches {
				f.put(b...)
				n += int64(len(b))
			}
			frames := f.late(t, &zero)
			for i, e := range frames {
				if e.Seq != int64(i+1) {
					t.Errorf("place %d has event %d", i, e.Seq)
				}
				if gone := e.SessionID == "kid" || e.SessionID == c.gone; gone && strings.Contains(string(e.Data), "secret") {
					t.Errorf("event %d tells %s of a deleted session", e.Seq, e.Data)
				}
			}
			if int64(len(frames)) != n {
				t.Errorf("%d events of %d", len(frames), n)
			}
			if got := f.Stats().PagesRead > 0; got != c.reads {
				t.Errorf("asked the log: %v, want %v", got, c.reads)
			}
		})
	}
}

// A message that has ended has its text in the log: a late piece of it begins nothing.
func TestTextAfterTheEndOfItsMessage(t *testing.T) {
	f := newFixture(Options{})
	f.Delta(says("kid", "root", "text"))
	f.put(agent.Event{Kind: agent.MessageUpdated, SessionID: "kid", RootSessionID: "root", Data: []byte(`{"id":"m_kid","status":"interrupted"}`)})
	d := says("kid", "root", "late")
	d.Offset = 4
	f.Delta(d)
	if n := f.Stats().TextBytes; n != 0 {
		t.Errorf("%d bytes kept of a message that has ended", n)
	}
}

func TestNothingIsTakenOfADeletedWorkspace(t *testing.T) {
	f := newFixture(Options{})
	f.Delta(says("kid", "root", "text"))
	f.Close(ws)
	f.Delta(says("kid", "root", "late"))
	f.put(session("kid"))
	if st := f.Stats(); st.TextBytes != 0 || st.RingBytes != 0 || len(f.space(ws).texts.byID) > 0 {
		t.Errorf("kept of a workspace that is gone: %+v", st)
	}
	s := f.subscribe(t, 0) // came in between: the head was still there
	defer s.Close()
	if _, err := s.Poll(t.Context()); err != ErrClosed { //nolint:errorlint // it is not wrapped
		t.Errorf("%v, want ErrClosed", err)
	}
}

func TestWhatIsGoneIsRememberedWithinABound(t *testing.T) {
	var g gone[int]
	for i := range 3 * goneKept {
		g.add(i)
		g.add(i)
	}
	if len(g.ids) != goneKept || len(g.order) != goneKept {
		t.Errorf("%d and %d remembered", len(g.ids), len(g.order))
	}
	if g.has(2*goneKept-1) || !g.has(2*goneKept) || !g.has(3*goneKept-1) {
		t.Error("the newest should be remembered and no other")
	}
}

// Whatever the number of readers, a delivery allocates nothing: frames are shared and a
// reader's list of them is its own, used again.
func TestADeliveryAllocatesNothing(t *testing.T) {
	const readers, events = 50, 64
	f := newFixture(Options{})
	subs := make([]*Subscription, readers)
	for i := range subs {
		subs[i] = f.subscribe(t, 0)
		defer subs[i].Close()
	}
	batch := make([]agent.Event, events)
	publish := func() { f.put(batch...) }
	deliver := func() {
		for _, s := range subs {
			if b, err := s.Poll(t.Context()); err != nil || len(b.Frames) != events {
				t.Fatalf("%d frames, %v", len(b.Frames), err)
			}
		}
	}
	publish()
	deliver() // the lists have grown
	alone := testing.AllocsPerRun(20, publish)
	for _, s := range subs { // what piled up is not measured
		drain(t, s)
	}
	both := testing.AllocsPerRun(20, func() { publish(); deliver() })
	per := (both - alone) / (readers * events)
	t.Logf("%.4f allocations for each delivery", per)
	if per > 0.05 {
		t.Errorf("%.4f allocations for each delivery", per)
	}
}
