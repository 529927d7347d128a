package replay

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// acpFacts is what a plain reading of each recording's lines gives, made without the
// adapter: what is said between a load and its answer is history and left out.
type acpFacts struct {
	Session  string `json:"session"`
	Children []struct {
		ID     string   `json:"id"`
		Parent string   `json:"parent"`
		Title  string   `json:"title"`
		Call   string   `json:"call"`
		Runs   []string `json:"runs"` // "lost" with the process
	} `json:"children"`
	Questions []struct {
		Request string `json:"request"`
		Of      string `json:"of"`
		Call    string `json:"call"`
	} `json:"questions"`
	Said  map[string]string   `json:"said"`
	Calls map[string][]string `json:"calls"`
}

// TestEndsAgreeWithTheFactsOfACP holds every recording against its facts: each child is
// there with its edge, each of its runs has the outcome that the wire told, and questions,
// words and tool calls are with the session whose they are.
func TestEndsAgreeWithTheFactsOfACP(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(acpSuite.kept, "facts.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]acpFacts
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, name := range acpSuite.recordings(t) {
		t.Run(name, func(t *testing.T) {
			f, known := all[name]
			if !known {
				t.Fatal("no facts are kept of it")
			}
			end := acpSuite.replay(t, name)
			who := map[string]agent.Session{}
			for _, s := range end.Sessions {
				if s.IsRoot() && s.ProviderSessionID == f.Session {
					who[f.Session] = s
				} else if s.Handles.ThreadID != "" {
					who[s.Handles.ThreadID] = s
				}
			}
			if f.Session != "" && who[f.Session].ID == "" {
				t.Fatalf("no root is session %s", f.Session)
			}
			f.checkChildren(t, end, who)
			f.checkQuestions(t, end, who)
			f.checkWords(t, end, who)
		})
	}
}

func (f acpFacts) checkChildren(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	children := 0
	turns := map[agent.SessionID][]agent.Turn{}
	for _, u := range end.Turns {
		turns[u.SessionID] = append(turns[u.SessionID], u)
	}
	for _, s := range end.Sessions {
		if !s.IsRoot() {
			children++
			if s.Capabilities.ChildCancel {
				t.Errorf("child %s can still be stopped", s.Handles.ThreadID)
			}
		}
	}
	if children != len(f.Children) {
		t.Errorf("%d children, want %d", children, len(f.Children))
	}
	for _, c := range f.Children {
		s, parent := who[c.ID], who[c.Parent]
		if s.ParentSessionID != parent.ID || string(s.ParentToolCallID) != c.Call || s.Kind != agent.KindChild || s.Title != c.Title {
			t.Errorf("child %s is %q with the edge %+v", c.ID, s.Title, s.Relation)
		}
		if len(turns[s.ID]) != len(c.Runs) {
			t.Errorf("child %s has %d turns, want %d", c.ID, len(turns[s.ID]), len(c.Runs))
			continue
		}
		for n, status := range c.Runs {
			if u := turns[s.ID][n]; !toldBy(status, u.Outcome) {
				t.Errorf("run %d of %s was %s and is %s %s", n, c.ID, status, u.Phase, u.Outcome)
			}
		}
	}
}

func (f acpFacts) checkQuestions(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	if len(end.Interactions) != len(f.Questions) {
		t.Errorf("%d questions, want %d", len(end.Interactions), len(f.Questions))
		return
	}
	for n, q := range f.Questions {
		i := end.Interactions[n]
		if i.ProviderTurnID != q.Request || i.SessionID != who[q.Of].ID || string(i.Detail.CallID) != q.Call || i.Owner != agent.OwnerExact {
			t.Errorf("question %s of %s about %s is %+v", q.Request, q.Of, q.Call, i)
		}
		if i.Status.Open() {
			t.Errorf("question %s is still %s", q.Request, i.Status)
		}
	}
}

// checkWords holds the transcripts against what was said and called. What gave a child
// its work is an entry of ours, one for each of its runs.
func (f acpFacts) checkWords(t *testing.T, end *End, who map[string]agent.Session) {
	t.Helper()
	said, called, launched := map[agent.SessionID]string{}, map[agent.SessionID][]string{}, map[agent.SessionID]int{}
	for _, m := range end.Messages {
		switch {
		case !m.Status.Ended():
			t.Errorf("message %+v is still open", m)
		case m.ChildSessionID != "":
			launched[m.ChildSessionID]++
		case m.Kind == agent.MessageToolCall:
			called[m.SessionID] = append(called[m.SessionID], string(m.CallID))
		case m.Kind == agent.MessageText && m.Role == agent.RoleAssistant:
			said[m.SessionID] += m.Content
		}
	}
	for of, s := range who {
		if said[s.ID] != f.Said[of] {
			t.Errorf("%s said %q, want %q", of, said[s.ID], f.Said[of])
		}
		if !slices.Equal(called[s.ID], f.Calls[of]) {
			t.Errorf("%s called %q, want %q", of, called[s.ID], f.Calls[of])
		}
	}
	for _, c := range f.Children {
		if launched[who[c.ID].ID] != len(c.Runs) {
			t.Errorf("%s was given work %d times, want %s", c.ID, launched[who[c.ID].ID], strings.Join(c.Runs, ", "))
		}
	}
}
