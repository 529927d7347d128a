package codex

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestPermissionsAreGrantedAsAskedOrNotAtAll(t *testing.T) {
	const asked = `{"fileSystem":{"entries":[{"access":"write","path":{"type":"path","path":"/w/out"}},{"access":"read","path":{"type":"special","value":{"kind":"project_roots"}}}],"read":["/etc"],"write":null},"network":{"enabled":true}}`
	for _, c := range []struct {
		give agent.Response
		want string
	}{
		{agent.Response{OptionID: grantTurn}, `{"permissions":` + asked + `,"scope":"turn"}`},
		{agent.Response{OptionID: grantSession}, `{"permissions":` + asked + `,"scope":"session"}`},
		{agent.Response{OptionID: grantNothing}, `{"permissions":{},"scope":"turn"}`},
		{agent.Response{Action: "accept"}, `{"permissions":` + asked + `,"scope":"turn"}`},
		{agent.Response{Action: "cancel"}, `{"permissions":{},"scope":"turn"}`},
	} {
		s := withChild(t)
		s.quiet()
		s.send(`{"id":3,"method":"` + askPermit + `","params":{"threadId":"T1","turnId":"c1","itemId":"p1","cwd":"/w","reason":"to build","startedAtMs":1,"permissions":` + asked + `}}`)
		i := s.asked(0)
		if i.Kind != agent.InteractionApproval || i.SessionID != child(t, s.View(), "T1").ID || i.Owner != agent.OwnerExact || i.Detail.Reason != "to build" || i.Detail.CallID != "p1" {
			t.Errorf("asked %+v", i)
		}
		if want := "- use the network\n- read /etc\n- write /w/out\n- read anything in: project roots"; i.Detail.Text != want {
			t.Errorf("asks for %q", i.Detail.Text)
		}
		if err := s.answerWith(i, c.give); err != nil {
			t.Fatal(err)
		}
		if m := s.expect("answer"); string(m.Result) != c.want {
			t.Errorf("%+v: answered %s", c.give, m.Result)
		}
	}
}

const formNote = `{"mode":"form","serverName":"tickets","message":"Where to?","requestedSchema":{"type":"object","required":["queue","n"],"properties":{` +
	`"queue":{"type":"string","title":"Queue","oneOf":[{"const":"q1","title":"First"},{"const":"q2","title":"Second"}]},` +
	`"n":{"type":"integer","description":"how many"},"sure":{"type":"boolean"},"weight":{"type":"number"},` +
	`"tags":{"type":"array","items":{"type":"string","enum":["x","y"]}},"old":{"type":"string","enum":["a"],"enumNames":["Alpha"]}}},"threadId":"T1","turnId":%s}`

func TestElicitationForm(t *testing.T) {
	s := withChild(t)
	s.quiet()
	s.send(fmt.Sprintf(`{"id":7,"method":%q,"params":%s}`, askElicit, fmt.Sprintf(formNote, `"c1"`)))
	i := s.asked(0)
	if i.Kind != agent.InteractionElicitation || i.Owner != agent.OwnerExact || i.SessionID != child(t, s.View(), "T1").ID || i.Title != "tickets asks" || i.Detail.Text != "Where to?" {
		t.Errorf("asked %+v", i)
	}
	var asks []string
	for _, q := range i.Detail.Questions {
		asks = append(asks, fmt.Sprintf("%s %s %d %v", q.ID, q.Text, len(q.Options), q.Multi))
	}
	want := []string{
		"queue Queue 2 false", "n n: how many 0 false", "sure sure (may be left open) 2 false",
		"weight weight (may be left open) 0 false", "tags tags (may be left open) 2 true", "old old (may be left open) 1 false",
	}
	if !slices.Equal(asks, want) {
		t.Errorf("questions %q", asks)
	}
	for _, bad := range []map[string]string{{"queue": "q1"}, {"queue": "Third", "n": "1"}, {"queue": "q1", "n": "one"}, {"queue": "q1", "n": "1", "tags": "x, z"}} {
		if err := s.answerWith(i, agent.Response{Answers: bad}); !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	good := map[string]string{"queue": "Second", "n": "3", "sure": "Yes", "weight": "1.5", "tags": "x, y", "old": "Alpha"}
	if err := s.answerWith(i, agent.Response{Answers: good}); err != nil {
		t.Fatal(err)
	}
	if m := s.expect("answer"); string(m.Result) != `{"action":"accept","content":{"n":3,"old":"a","queue":"q2","sure":true,"tags":["x","y"],"weight":1.5}}` {
		t.Errorf("answered %s", m.Result)
	}
	s.send(resolvedNote("T1", 7))
	if got := s.asked(0).Status; got != agent.InteractionAnswered {
		t.Errorf("it is %s", got)
	}
}

func TestElicitationsThatAreNoForm(t *testing.T) {
	url := `{"mode":"url","serverName":"s","message":"Sign in","url":"https://example.org/in","elicitationId":"e","threadId":"T1","turnId":"c1"}`
	proof := `{"mode":"openai/userVerification","serverName":"s","title":"Prove it","description":"With your device","challenge":"c","threadId":"T1","turnId":"c1"}`
	for _, c := range []struct {
		params string
		give   agent.Response
		want   string
	}{
		{url, agent.Response{OptionID: "accept"}, `{"action":"accept","content":null}`},
		{url, agent.Response{OptionID: "cancel"}, `{"action":"cancel","content":null}`},
		{url, agent.Response{Action: "decline"}, `{"action":"decline","content":null}`},
		{proof, agent.Response{OptionID: "decline"}, `{"action":"decline","content":null}`},
		{proof, agent.Response{Action: "accept"}, ""},
	} {
		s := withChild(t)
		s.quiet()
		s.send(fmt.Sprintf(`{"id":7,"method":%q,"params":%s}`, askElicit, c.params))
		err := s.answerWith(s.asked(0), c.give)
		if c.want == "" {
			if !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
				t.Errorf("%+v: %v", c.give, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if m := s.expect("answer"); string(m.Result) != c.want {
			t.Errorf("%+v: answered %s", c.give, m.Result)
		}
	}
}

// Without a turn on the wire the question is the thread's running turn's; where none runs
// there, it is the root's and nobody has said so; of an unknown thread it is refused.
func TestOwnerOfAnElicitation(t *testing.T) {
	s := withChild(t)
	s.quiet()
	ask := func(id int, thread string) {
		s.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":{"mode":"url","serverName":"s","message":"m","url":"u","threadId":%q,"turnId":null}}`, id, askElicit, thread))
	}
	ask(1, "T1")
	c := child(t, s.View(), "T1")
	if i := s.asked(0); i.SessionID != c.ID || i.Owner != agent.OwnerExact {
		t.Errorf("owner %s %s", i.SessionID, i.Owner)
	}
	s.send(completed("T1", "c1", "r1", "completed"))
	ask(2, "T1")
	i := s.asked(1)
	if i.SessionID != s.Root || i.Owner != agent.OwnerUnknown {
		t.Errorf("owner %s %s", i.SessionID, i.Owner)
	}
	s.send(resolvedNote("T1", 2))
	if got := s.asked(1).Status; got != agent.InteractionSuperseded {
		t.Errorf("it is %s", got)
	}
	ask(3, "stranger")
	if m := s.expect("refusal"); string(m.ID) != "3" {
		t.Errorf("refused %s", m.ID)
	}
}
