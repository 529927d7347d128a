package store

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// These figures do not depend on how busy the machine is.

// A child's terminal costs its own row, the question whether others live, and the events;
// what it changes of the root comes on top. Six statements are the bound.
func TestStatementsOfAChildTerminal(t *testing.T) {
	s := newSpy(t)
	w := open(t, withDriver(s.name))
	tr := w.begin()
	tr.provider("p")
	kids := []child{tr.child("a"), tr.child("b"), tr.child("c")}
	tr.verdict(agent.MessagePut{Message: agent.Message{
		ID: "m", SessionID: kids[1].session, TurnID: kids[1].turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted,
	}}, agent.VerdictApplied, "")
	tr.providerEnds("p", agent.OutcomeCompleted)
	w.must(putUserMessage(tr))
	measure := func(name string, bound int, do func()) {
		s.take()
		do()
		ran := work(s.take())
		t.Logf("%s: %d statements", name, len(ran))
		if len(ran) > bound {
			t.Errorf("%s took %d statements, %d are allowed:\n%s", name, len(ran), bound, strings.Join(ran, "\n"))
		}
	}
	measure("one of three", 4, func() { tr.ends(kids[0], agent.OutcomeCompleted) })
	measure("again, unchanged", 2, func() { tr.ends(kids[0], agent.OutcomeCompleted) })
	tr.ends(kids[1], agent.OutcomeCompleted)
	measure("the last, which settles the root", 6, func() {
		if a := tr.ends(kids[2], agent.OutcomeCompleted); !a.RootSettled {
			t.Errorf("got %+v", a)
		}
	})
	cold := w.begin()
	cold.provider("p")
	kid := cold.child("kid")
	w.reopen()
	measure("of a tree that is not in memory", 8, func() { cold.ends(kid, agent.OutcomeCompleted) })
}

// putUserMessage has the agent take the message that began the turn.
func putUserMessage(t *tree) error {
	page, err := t.Messages(background(t), t.ws, t.root, agent.MessageRange{Limit: 1})
	if err != nil {
		return err
	}
	m := page.Items[0]
	m.Status = agent.MessageCompleted
	_, err = t.Apply(background(t), agent.MessagePut{Message: m})
	return err
}

// A chunk of streaming text is one statement and no event.
func TestStatementsOfAChunk(t *testing.T) {
	s := newSpy(t)
	w := open(t, withDriver(s.name))
	tr := w.begin()
	m := agent.Message{ID: "m", SessionID: tr.root, TurnID: tr.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}
	tr.verdict(agent.MessagePut{Message: m}, agent.VerdictApplied, "")
	w.events()
	s.take()
	tr.verdict(agent.TextAppended{Session: tr.root, Turn: tr.turn, Message: "m", Text: "some text"}, agent.VerdictApplied, "")
	if ran := work(s.take()); len(ran) != 1 {
		t.Errorf("%d statements:\n%s", len(ran), strings.Join(ran, "\n"))
	}
	if e := w.events(); len(e) != 0 {
		t.Errorf("events %v", kinds(e))
	}
}

// Whatever the number of children, a cancel and a delete are a fixed number of statements,
// and as many for the events as there are pages of them.
func TestStatementsOfACancelDoNotGrow(t *testing.T) {
	count := func(n int) (prepare, complete, remove int) {
		s := newSpy(t)
		w := open(t, withDriver(s.name))
		tr := w.begin()
		tr.provider("p")
		tr.crowd(n)
		w.must(putUserMessage(tr))
		without := func() (k int) {
			for _, q := range work(s.take()) {
				if !strings.Contains(q, "INTO events") {
					k++
				}
			}
			return k
		}
		s.take()
		op, _, err := w.PrepareCancel(background(t), tr.root, tr.turn, "test")
		w.must(err)
		prepare = without()
		_, err = w.CompleteCancel(background(t), op.ID, nil)
		w.must(err)
		complete = without()
		_, err = w.Delete(background(t), w.ws, tr.root)
		w.must(err)
		return prepare, complete, without()
	}
	p1, c1, r1 := count(10)
	p2, c2, r2 := count(1000)
	if p1 != p2 || c1 != c2 || r1 != r2 {
		t.Errorf("10 children: %d, %d, %d statements; 1,000: %d, %d, %d", p1, c1, r1, p2, c2, r2)
	}
	if p2 > 16 || c2 > 16 || r2 > 24 {
		t.Errorf("prepare %d, complete %d, delete %d statements", p2, c2, r2)
	}
}

// 64 producers share their commits: at most 40 transactions for 1,000 facts. How many wait when
// a transaction begins is the scheduler's; here the next one begins when all of them do.
func TestTransactionsOfManyProducers(t *testing.T) {
	s := newSpy(t)
	w := open(t, withDriver(s.name))
	const producers, each = 64, 8
	tr := w.begin()
	tr.provider("p")
	kids := make([]child, producers)
	for i := range kids {
		kids[i] = tr.child(fmt.Sprint(i))
	}
	s.take()
	for i := range each {
		var wait sync.WaitGroup
		w.writing.Lock()
		for p := range producers {
			wait.Go(func() {
				if _, err := w.Apply(background(w), agent.MessagePut{Message: agent.Message{
					ID: agent.MessageID(fmt.Sprintf("m-%d-%d", p, i)), SessionID: kids[p].session, TurnID: kids[p].turn,
					Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageCompleted, Content: "words",
				}}); err != nil {
					w.Error(err)
				}
			})
		}
		for len(w.queue) < producers-1 { // the writer has taken the first
			runtime.Gosched()
		}
		w.writing.Unlock()
		wait.Wait()
	}
	commits := 0
	for _, q := range s.take() {
		if q == "COMMIT" {
			commits++
		}
	}
	per := float64(commits) * 1000 / (producers * each)
	t.Logf("%.1f transactions for 1,000 facts", per)
	if per > 40 {
		t.Errorf("%.1f transactions for 1,000 facts", per)
	}
}

// A detail reads one row for each session and a few for what is said of them all.
func TestRowsOfADetail(t *testing.T) {
	s := newSpy(t)
	w := open(t, withDriver(s.name))
	tr := w.begin()
	tr.provider("p")
	other := w.begin()
	other.provider("p")
	other.crowd(300)
	rows := func() int64 {
		before := s.rows.Load()
		_, err := w.Detail(background(t), w.ws, tr.root)
		w.must(err)
		return s.rows.Load() - before
	}
	none := rows()
	tr.crowd(100)
	if got := rows(); got != none+100 {
		t.Errorf("100 children cost %d rows", got-none)
	}
	if none > 4 {
		t.Errorf("a detail without children reads %d rows", none)
	}
}
