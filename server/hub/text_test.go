package hub

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func delta(m agent.MessageID, offset int64, text string) agent.Delta {
	return agent.Delta{WorkspaceID: ws, RootSessionID: "ses_root", SessionID: "kid", MessageID: m, Offset: offset, Text: text}
}

func TestSlowReaderGetsOnePiece(t *testing.T) {
	f := newFixture(Options{})
	s := f.subscribe(t, 0)
	defer s.Close()
	f.Delta(delta("m", 0, "a"))
	if got := describe(drain(t, s)); got != "m@0=a" {
		t.Errorf("got %q", got)
	}
	for i := range 1000 {
		f.Delta(delta("m", int64(1+i), "b"))
	}
	if got, want := describe(drain(t, s)), "m@1="+strings.Repeat("b", 1000); got != want {
		t.Errorf("a thousand deltas became %d bytes", len(got))
	}
}

func TestTextComesAfterTheEventsBeforeIt(t *testing.T) {
	f := newFixture(Options{BatchEvents: 2, RingEvents: 3})
	s := f.subscribe(t, 0)
	defer s.Close()
	f.put(make([]agent.Event, 9)...)
	f.Delta(delta("m", 0, "x"))
	if got := describe(drain(t, s)); got != "1 2 3 4 5 6 7 8 9 m@0=x" {
		t.Errorf("got %q", got)
	}
}

// A client that comes in the middle of a message reads what is held and what follows:
// whatever the moment, its text equals the message (a prefix repeated, or lost, would not).
func TestSubscribeInTheMiddleOfAMessage(t *testing.T) {
	const whole = "Überprüfung: 漢字 and plain text, in pieces. "
	r := rand.New(rand.NewPCG(5, 6))
	runes := []rune(strings.Repeat(whole, 20))
	for range 1000 {
		f := newFixture(Options{})
		early := f.subscribe(t, 0)
		var late *Subscription
		var offset int64
		text := map[*Subscription]string{}
		take := func(s *Subscription) {
			for _, d := range drain(t, s) {
				have := text[s]
				if d.Offset > int64(len(have)) {
					t.Fatalf("offset %d after %d bytes", d.Offset, len(have))
				}
				if skip := int64(len(have)) - d.Offset; skip < int64(len(d.Text)) {
					text[s] = have + d.Text[skip:]
				}
			}
		}
		at := r.IntN(40)
		for i := 0; len(runes) > 0 && i < 40; i++ {
			n := min(1+r.IntN(9), len(runes))
			piece := string(runes[i*9 : i*9+n])
			f.Delta(delta("m", offset, piece))
			offset += int64(len(piece))
			if i == at {
				late = f.subscribe(t, 0)
			}
			for _, s := range []*Subscription{early, late} {
				if s != nil && r.IntN(3) == 0 {
					take(s)
				}
			}
		}
		take(early)
		take(late)
		if text[early] != text[late] || int64(len(text[late])) != offset {
			t.Fatalf("early has %d bytes, late %d, the message %d", len(text[early]), len(text[late]), offset)
		}
		early.Close()
		late.Close()
	}
}

func TestTextEndsWithItsMessage(t *testing.T) {
	message := func(kind agent.EventKind, status string) agent.Event {
		return agent.Event{Kind: kind, SessionID: "kid", RootSessionID: "ses_root", Data: []byte(`{"id":"m","status":"` + status + `"}`)}
	}
	for _, c := range []struct {
		name string
		e    agent.Event
		kept bool
	}{
		{"streaming", message(agent.MessageUpdated, "streaming"), true},
		{"completed", message(agent.MessageUpdated, "completed"), false},
		{"interrupted", message(agent.MessageUpdated, "interrupted"), false},
		{"another session's", agent.Event{Kind: agent.MessageUpdated, SessionID: "x", Data: []byte(`{"id":"m","status":"completed"}`)}, true},
		{"another message", agent.Event{Kind: agent.MessageUpdated, SessionID: "kid", Data: []byte(`{"id":"n","status":"completed"}`)}, true},
		{"session deleted", agent.Event{Kind: agent.SessionDeleted, SessionID: "kid"}, false},
		{"root deleted", agent.Event{Kind: agent.SessionDeleted, SessionID: "ses_root"}, false},
		{"other deleted", agent.Event{Kind: agent.SessionDeleted, SessionID: "x"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(Options{})
			f.Delta(delta("m", 0, "text"))
			f.put(c.e)
			if got := f.Stats().TextBytes > 0; got != c.kept {
				t.Errorf("kept: %v, want %v", got, c.kept)
			}
		})
	}
}

func TestTextIsBounded(t *testing.T) {
	f := newFixture(Options{TextBytes: 1000, TextsBytes: 3000})
	s := f.subscribe(t, 0)
	defer s.Close()
	var offset int64
	for range 500 {
		f.Delta(delta("m", offset, "äöü!"))
		offset += int64(len("äöü!"))
	}
	frames := drain(t, s)
	last := frames[len(frames)-1]
	if n := int64(len(last.Text)); n > 1000 || n < 700 || last.Offset+n != offset || !utf8.ValidString(last.Text) {
		t.Errorf("kept %d bytes from %d of %d", n, last.Offset, offset)
	}
	for _, id := range []agent.MessageID{"a", "b", "c", "d"} {
		f.Delta(delta(id, 0, strings.Repeat(string(id), 900)))
	}
	if st := f.Stats(); st.TextBytes > 3000 {
		t.Errorf("%d bytes of text kept", st.TextBytes)
	}
	if f.textEnd("d") != 900 || f.textEnd("m") != 0 {
		t.Error("the oldest should have gone, the newest stayed")
	}
}

func TestRepeatedAndMissedPieces(t *testing.T) {
	f := newFixture(Options{})
	s := f.subscribe(t, 0)
	defer s.Close()
	f.Delta(delta("m", 0, "abc"))
	f.Delta(delta("m", 0, "abc"))  // again
	f.Delta(delta("m", 2, "cde"))  // half known
	f.Delta(delta("m", 1, ""))     // nothing
	f.Delta(delta("m", 9, "late")) // something was missed
	if got := describe(drain(t, s)); got != "m@9=late" {
		t.Errorf("got %q", got)
	}
	f.Delta(delta("m", 13, "r"))
	if got := describe(drain(t, s)); got != "m@13=r" {
		t.Errorf("got %q", got)
	}
	if n := len(s.sent); n != 1 {
		t.Errorf("%d messages remembered", n)
	}
	for i := range 100 { // messages that come and go are forgotten
		id := agent.MessageID(strings.Repeat("x", i+1))
		f.Delta(delta(id, 0, "t"))
		drain(t, s)
		f.put(agent.Event{Kind: agent.MessageUpdated, SessionID: "kid", Data: []byte(`{"id":"` + string(id) + `","status":"completed"}`)})
		drain(t, s)
	}
	if n := len(s.sent); n > 20 {
		t.Errorf("%d messages remembered of which one streams", n)
	}
}
