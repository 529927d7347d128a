package realtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/replay"
)

// stored is what storage reads of a whole tree.
type stored struct {
	sessions  []agent.Session
	turns     []agent.Turn
	messages  []agent.Message
	asks      []agent.Interaction
	processes []agent.Process
}

func (r *Stack) read() stored {
	r.t.Helper()
	d := r.Detail()
	s := stored{sessions: append([]agent.Session{d.Session}, d.ChildSessions...)}
	for _, x := range s.sessions {
		page, err := r.Store.Turns(r.Ctx, r.Ws, x.ID, "", 100)
		r.Must(err)
		s.turns = append(s.turns, page.Items...)
		texts, err := r.Store.Messages(r.Ctx, r.Ws, x.ID, agent.MessageRange{Limit: 500})
		r.Must(err)
		s.messages = append(s.messages, texts.Items...)
	}
	var err error
	s.asks, err = r.Store.Interactions(r.Ctx, r.Ws, r.Root, "")
	r.Must(err)
	s.processes, err = r.Store.Processes(r.Ctx, r.Ws, r.Root)
	r.Must(err)
	return s
}

// End checks what must be so at the end of any scenario: storage agrees with whoever
// followed the log and with the replay of the recording, and nothing is left open.
func (r *Stack) End() {
	r.t.Helper()
	s := r.reconcile()
	again, err := replay.Run(r.Ctx, r.Provider, strings.NewReader(r.tape.String()))
	r.Must(err)
	if again.Invariants != (replay.Invariants{}) {
		r.t.Errorf("invariants of the replay: %+v", again.Invariants)
	}
	replayed := stored{sessions: again.Sessions, turns: again.Turns, messages: again.Messages, asks: again.Interactions, processes: again.Processes}
	if diff := cmp.Diff(r.summary(s), r.summary(replayed)); diff != "" {
		r.t.Errorf("the replay came to another end (-live +replay):\n%s\n%s", diff, r.tape)
	}
}

// Reconcile is End without the replay, for scenarios that a recording cannot tell whole.
func (r *Stack) Reconcile() {
	r.t.Helper()
	r.reconcile()
}

func (r *Stack) reconcile() stored {
	r.t.Helper()
	counts, err := r.Store.Counts(r.Ctx)
	r.Must(err)
	if counts.OpenBelowSettled != 0 || counts.LiveTurns != 0 || counts.OpenOperations != 0 || counts.PendingQuestions != 0 {
		r.t.Errorf("counts %+v", counts)
	}
	s := r.read()
	for _, m := range s.messages {
		if !m.Status.Ended() {
			r.t.Errorf("message %s %q is %s", m.Name, m.Content, m.Status)
		}
	}
	r.follower.compare(r.t, s)
	return s
}

// summary is an end without ids and times.
func (r *Stack) summary(s stored) []string {
	name := map[agent.SessionID]string{}
	for _, x := range s.sessions {
		name[x.ID] = r.Thread(x)
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, x := range s.sessions {
		add("session %s %s below %s by %s: %s, used %d", x.Kind, name[x.ID], name[x.ParentSessionID], x.ParentToolCallID, x.Title, x.Usage.InputTokens)
	}
	for _, x := range s.turns {
		add("turn of %s: %s %s %s", name[x.SessionID], x.Trigger, x.Phase, x.Outcome)
	}
	for _, x := range s.messages {
		add("message of %s: %s %s %s %q %s", name[x.SessionID], x.Role, x.Kind, x.Status, x.Content, x.Title)
	}
	for _, x := range s.asks {
		add("question of %s: %s %s", name[x.SessionID], x.Title, x.Status)
	}
	for _, x := range s.processes {
		add("process of %s: %s", name[x.SessionID], x.Command)
	}
	slices.Sort(out)
	return out
}
