package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// claudeFacts is what a plain reading of each recording's lines gives, made without the
// adapter. An owner is the task id of a child, or "root".
type claudeFacts struct {
	Session  string `json:"session"`
	Children []struct {
		Task   string `json:"task"`
		Call   string `json:"call"`
		Parent string `json:"parent"`
		Title  string `json:"title"`
		Runs   []struct {
			Run    string `json:"run"`
			Status string `json:"status"` // "lost" with the process
		} `json:"runs"`
	} `json:"children"`
	Refused []struct { // launches that came to no task
		Call   string `json:"call"`
		Parent string `json:"parent"`
	} `json:"refused"`
	Questions []struct {
		Request string `json:"request"`
		Of      string `json:"of"`
		Call    string `json:"call"`
		Kind    string `json:"kind"`
	} `json:"questions"`
	Shells []struct {
		Task       string `json:"task"`
		Call       string `json:"call"`
		Of         string `json:"of"`
		Background bool   `json:"background"`
	} `json:"shells"`
	Hooks int `json:"hooks"` // requests about hooks that only the recorded client had
	Texts []struct {
		Of   string `json:"of"`
		Text string `json:"text"`
		Odd  bool   `json:"odd"` // of an error, or cut off: it may be told in another way
	} `json:"texts"`
	Calls []struct {
		Of   string `json:"of"`
		Call string `json:"call"`
	} `json:"calls"`
}

// unasked are the recordings in which Claude says something after a stop that nobody asked
// for, with what is not to be seen of it (decisions.md 3). Our own stop withdraws what
// the recorded one left.
var unasked = map[string][]string{
	"g_interrupt_idle_root_background_child_affordance":   {"Continuation."},
	"g_interrupt_right_after_task_notification":           {"Continuation."},
	"g_interrupt_root_active_background_child_affordance": {"Continuation.", "Continuation."},
	"g_interrupt_with_queued_message":                     {"Answer to the queued message."},
}

// TestEndsAgreeWithTheFactsOfClaude holds every recording against its facts: each child
// is there with its edge, each of its runs has the outcome that the wire told, and
// questions, processes, words and tool calls are with the one whose they are.
func TestEndsAgreeWithTheFactsOfClaude(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(claudeSuite.kept, "facts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]claudeFacts
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range claudeSuite.recordings(t) {
		t.Run(name, func(t *testing.T) {
			f, known := all[name]
			if !known {
				t.Fatal("no facts are kept of it")
			}
			end := claudeSuite.replay(t, name)
			who := f.owners(end)
			f.checkChildren(t, end, who)
			f.checkQuestions(t, end, who)
			f.checkProcesses(t, end, who)
			f.checkWords(t, end, who, unasked[name])
			if end.Diagnostics.Refused < f.Hooks {
				t.Errorf("%d requests about hooks, %d refused", f.Hooks, end.Diagnostics.Refused)
			}
		})
	}
}

// owners finds the session of each owner.
func (f claudeFacts) owners(end *End) map[string]agent.Session {
	who := map[string]agent.Session{}
	for _, s := range end.Sessions {
		if s.IsRoot() && s.ProviderSessionID == f.Session {
			who["root"] = s
		} else if s.Handles.TaskID != "" {
			who[s.Handles.TaskID] = s
		}
	}
	return who
}

func (f claudeFacts) checkChildren(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	if want := 1 + len(f.Children) + len(f.Refused); len(end.Sessions) != want || who["root"].ID == "" {
		t.Errorf("%d sessions, want %d with the root %s", len(end.Sessions), want, f.Session)
	}
	turns := map[agent.SessionID][]agent.Turn{}
	for _, u := range end.Turns {
		turns[u.SessionID] = append(turns[u.SessionID], u)
	}
	for _, c := range f.Children {
		s, parent := who[c.Task], who[c.Parent]
		if s.ParentSessionID != parent.ID || string(s.ParentToolCallID) != c.Call || s.Kind != agent.KindChild || s.Title != c.Title {
			t.Errorf("child %s is %q with the edge %+v", c.Task, s.Title, s.Relation)
		}
		if len(turns[s.ID]) != len(c.Runs) {
			t.Errorf("child %s has %d turns, want %d", c.Task, len(turns[s.ID]), len(c.Runs))
			continue
		}
		for n, r := range c.Runs {
			u := turns[s.ID][n]
			if u.NativeID != r.Run || !toldBy(r.Status, u.Outcome) {
				t.Errorf("run %s was %s; its turn %s is %s %s", r.Run, r.Status, u.NativeID, u.Phase, u.Outcome)
			}
		}
	}
	for _, c := range f.Refused {
		at := slices.IndexFunc(end.Sessions, func(s agent.Session) bool { return string(s.ParentToolCallID) == c.Call })
		if at < 0 {
			t.Errorf("the refused launch %s left no child", c.Call)
		} else if s := end.Sessions[at]; s.ParentSessionID != who[c.Parent].ID || turns[s.ID][0].Outcome != agent.OutcomeFailed {
			t.Errorf("the refused launch %s left %+v", c.Call, s)
		}
	}
}

// toldBy reports whether an outcome is what the wire's status means.
func toldBy(status string, o agent.Outcome) bool {
	switch status {
	case "completed", "failed":
		return string(o) == status
	case "stopped": // canceled, where a person asked for it
		return o == agent.OutcomeInterrupted || o == agent.OutcomeCanceled
	case "lost":
		return o == agent.OutcomeInterrupted
	}
	return false
}

func (f claudeFacts) checkQuestions(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	if len(end.Interactions) != len(f.Questions) {
		t.Errorf("%d questions, want %d", len(end.Interactions), len(f.Questions))
		return
	}
	for n, q := range f.Questions {
		i, owner := end.Interactions[n], agent.OwnerExact
		if q.Kind == "elicitation" {
			owner = agent.OwnerUnknown
		}
		if i.ProviderTurnID != q.Request || i.SessionID != who[q.Of].ID || string(i.Detail.CallID) != q.Call || i.Owner != owner {
			t.Errorf("question %s of %s about %s is %+v", q.Request, q.Of, q.Call, i)
		}
		if i.Status.Open() {
			t.Errorf("question %s is still %s", q.Request, i.Status)
		}
	}
}

func (f claudeFacts) checkProcesses(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	left := slices.Clone(end.Processes)
	for _, s := range f.Shells {
		at := slices.IndexFunc(left, func(p agent.Process) bool { return string(p.ID) == s.Task })
		if at >= 0 != s.Background {
			t.Errorf("process %s is listed: %v", s.Task, at >= 0)
		}
		if at < 0 {
			continue
		}
		p := left[at]
		left = slices.Delete(left, at, at+1)
		if p.SessionID != who[s.Of].ID || string(p.CallID) != s.Call || p.Status != agent.ProcessEnded {
			t.Errorf("process %s of %s is %+v", s.Task, s.Of, p)
		}
	}
	if len(left) > 0 {
		t.Errorf("there are also the processes %+v", left)
	}
}

// checkWords holds the transcripts against what was said and called.
func (f claudeFacts) checkWords(t *testing.T, end *End, who map[string]agent.Session, dropped []string) {
	t.Helper()
	said := map[agent.SessionID][]string{}
	called := map[agent.SessionID][]string{}
	for _, m := range end.Messages {
		if !m.Status.Ended() {
			t.Errorf("message %+v is still open", m)
		}
		switch {
		case m.Kind == agent.MessageToolCall && m.Name == "plan": // the list of things to do
		case m.Kind == agent.MessageToolCall:
			called[m.SessionID] = append(called[m.SessionID], string(m.CallID))
		case m.Kind == agent.MessageText && m.Role == agent.RoleAssistant:
			said[m.SessionID] = append(said[m.SessionID], m.Content)
		}
	}
	for _, x := range f.Texts {
		if at := slices.Index(dropped, x.Text); x.Of == "root" && at >= 0 {
			dropped = slices.Delete(slices.Clone(dropped), at, at+1)
			continue
		}
		of := who[x.Of].ID
		if len(said[of]) > 0 && said[of][0] == x.Text {
			said[of] = said[of][1:]
		} else if !x.Odd {
			t.Errorf("%s said %q, and its transcript goes on with %q", x.Of, x.Text, said[of])
		}
	}
	for of, more := range said {
		if len(more) > 0 {
			t.Errorf("%s is also said to have said %q", of, more)
		}
	}
	want := map[agent.SessionID][]string{}
	for _, c := range f.Calls {
		want[who[c.Of].ID] = append(want[who[c.Of].ID], c.Call)
	}
	for _, s := range end.Sessions {
		if !slices.Equal(called[s.ID], want[s.ID]) {
			t.Errorf("session %s of task %q called %q, want %q", s.ID, s.Handles.TaskID, called[s.ID], want[s.ID])
		}
	}
}
