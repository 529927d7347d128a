package command_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/command"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore keeps operations and their ends. What a test does not ask about is not
// kept.
type fakeStore struct {
	mu        sync.Mutex
	sessions  map[agent.SessionID]agent.Session
	turns     map[agent.TurnID]agent.Turn
	processes map[agent.ProcessID]agent.Process
	ops       []*fakeOp
	hears     []agent.Evidence
	created   []agent.NewSession
	submitted []agent.NewMessage
	reply     agent.Submitted // of CreateSession and Submit
	deleted   []agent.Deleted
	busy      int // how many of the next writes fail as busy
	claims    int
}

type fakeOp struct {
	agent.Claimed
	due     time.Time
	lease   time.Time
	ended   time.Time
	failure *agent.Error
}

func newFakeStore() *fakeStore {
	return &fakeStore{
		sessions: map[agent.SessionID]agent.Session{"root": {ID: "root", Kind: agent.KindRoot, Capabilities: agent.Capabilities{ChildCancel: true}}},
		turns:    map[agent.TurnID]agent.Turn{"t": {ID: "t", SessionID: "root", RootTurnID: "t", Phase: agent.PhaseRunning}},
	}
}

// add makes an operation that is due now.
func (f *fakeStore) add(c agent.Claimed) *fakeOp {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.Operation.ID = agent.OperationID("op" + strconv.Itoa(len(f.ops)))
	c.Operation.Status = agent.OperationPending
	if c.Root.ID == "" {
		c.Root.ID = "root"
	}
	op := &fakeOp{Claimed: c, due: time.Now()}
	f.ops = append(f.ops, op)
	return op
}

func (f *fakeStore) Claim(_ context.Context, _ string, lease time.Duration, limit int) ([]agent.Claimed, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.claims++
	var claimed []agent.Claimed
	for _, op := range f.ops {
		if len(claimed) < limit && op.claimable(time.Now()) {
			op.Operation.Status, op.lease = agent.OperationRunning, time.Now().Add(lease)
			op.Operation.Attempts++
			claimed = append(claimed, op.Claimed)
		}
	}
	return claimed, nil
}

// claimed counts the calls of Claim.
func (f *fakeStore) claimed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.claims
}

func (op *fakeOp) claimable(now time.Time) bool {
	switch op.Operation.Status {
	case agent.OperationPending:
		return !now.Before(op.due)
	case agent.OperationRunning:
		return !now.Before(op.lease)
	}
	return false
}

func (f *fakeStore) NextDue(context.Context) (time.Time, bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var next time.Time
	for _, op := range f.ops {
		at := op.due
		if op.Operation.Status == agent.OperationRunning {
			at = op.lease
		}
		if op.Operation.Status.Open() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return next, !next.IsZero(), nil
}

func (f *fakeStore) find(id agent.OperationID) *fakeOp {
	for _, op := range f.ops {
		if op.Operation.ID == id {
			return op
		}
	}
	return nil
}

// write is the gate of every write; it fails while storage is busy.
func (f *fakeStore) write() error {
	if f.busy > 0 {
		f.busy--
		return agent.Errorf(agent.CodeUnavailable, "busy")
	}
	return nil
}

func (f *fakeStore) Hear(_ context.Context, _ agent.OperationID, heard []agent.Evidence) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return err
	}
	f.hears = append(f.hears, heard...)
	return nil
}

func (f *fakeStore) complete(id agent.OperationID, failure *agent.Error) (agent.Operation, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(); err != nil {
		return agent.Operation{}, err
	}
	op := f.find(id)
	op.Operation.Status, op.ended, op.failure = agent.OperationSucceeded, time.Now(), failure
	if failure != nil {
		op.Operation.Status = agent.OperationFailed
	}
	return op.Operation, nil
}

func (f *fakeStore) CompleteCancel(_ context.Context, id agent.OperationID, e *agent.Error) (agent.Operation, error) {
	return f.complete(id, e)
}

func (f *fakeStore) CompleteAnswer(_ context.Context, id agent.OperationID, e *agent.Error) (agent.Operation, error) {
	return f.complete(id, e)
}

func (f *fakeStore) CompleteGuide(_ context.Context, id agent.OperationID, e *agent.Error) (agent.Operation, error) {
	return f.complete(id, e)
}

func (f *fakeStore) Retry(_ context.Context, id agent.OperationID, e *agent.Error, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := f.find(id)
	op.Operation.Status, op.Operation.Error, op.due = agent.OperationPending, e, at
	return nil
}

func (f *fakeStore) CreateWorkspace(_ context.Context, name, path string) (agent.Workspace, error) {
	return agent.Workspace{ID: "ws", Name: name, Path: path}, nil
}

func (f *fakeStore) Workspace(_ context.Context, id agent.WorkspaceID) (agent.Workspace, error) {
	if id != "ws" {
		return agent.Workspace{}, agent.Errorf(agent.CodeNotFound, "no workspace")
	}
	return agent.Workspace{ID: id, Path: "/"}, nil
}

func (f *fakeStore) RenameWorkspace(_ context.Context, id agent.WorkspaceID, name string) (agent.Workspace, error) {
	return agent.Workspace{ID: id, Name: name}, nil
}

func (f *fakeStore) DeleteWorkspace(context.Context, agent.WorkspaceID) ([]agent.Deleted, error) {
	return f.deleted, nil
}

func (f *fakeStore) Delete(context.Context, agent.WorkspaceID, agent.SessionID) (agent.Deleted, error) {
	if len(f.deleted) == 0 {
		return agent.Deleted{}, nil
	}
	d := f.deleted[0]
	f.deleted = f.deleted[1:]
	return d, nil
}

func (f *fakeStore) CreateSession(_ context.Context, n agent.NewSession) (agent.Submitted, error) {
	f.created = append(f.created, n)
	return f.reply, nil
}

func (f *fakeStore) RepeatSession(_ context.Context, n agent.NewSession) (agent.Submitted, bool, error) {
	for _, c := range f.created {
		if c.Key == n.Key {
			return f.reply, true, nil
		}
	}
	return agent.Submitted{}, false, nil
}

func (f *fakeStore) Submit(_ context.Context, m agent.NewMessage) (agent.Submitted, error) {
	f.submitted = append(f.submitted, m)
	return f.reply, nil
}

func (f *fakeStore) Session(_ context.Context, _ agent.WorkspaceID, id agent.SessionID) (agent.Session, error) {
	s, ok := f.sessions[id]
	if !ok {
		return s, agent.Errorf(agent.CodeNotFound, "no session")
	}
	return s, nil
}

func (f *fakeStore) UpdateSession(_ context.Context, _ agent.WorkspaceID, id agent.SessionID, p agent.SessionPatch) (agent.Session, error) {
	s := f.sessions[id]
	if p.Title != nil {
		s.Title = *p.Title
	}
	return s, nil
}

func (f *fakeStore) Turn(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, id agent.TurnID) (agent.Turn, error) {
	t, ok := f.turns[id]
	if !ok {
		return t, agent.Errorf(agent.CodeNotFound, "no turn")
	}
	return t, nil
}

func (f *fakeStore) Interaction(context.Context, agent.WorkspaceID, agent.SessionID, agent.TurnID, agent.RequestID) (agent.Interaction, error) {
	return agent.Interaction{}, nil
}

func (f *fakeStore) PrepareCancel(context.Context, agent.SessionID, agent.TurnID, string) (agent.Operation, bool, error) {
	return f.add(cancelOf(15 * time.Second)).Operation, false, nil
}

func (f *fakeStore) PrepareAnswer(context.Context, agent.NewAnswer) (agent.Interaction, agent.Operation, error) {
	op := f.add(agent.Claimed{Operation: agent.Operation{Kind: agent.OperationAnswer}, Interaction: &agent.Interaction{RequestID: "r", Status: agent.InteractionAnswering}})
	return *op.Interaction, op.Operation, nil
}

func cancelOf(bound time.Duration) agent.Claimed {
	deadline := time.Now().Add(bound)
	return agent.Claimed{Operation: agent.Operation{Kind: agent.OperationCancel, Deadline: &deadline}}
}

// fakeLive does what the test says and notes what it was asked.
type fakeLive struct {
	mu     sync.Mutex
	calls  []string
	start  func(ctx context.Context) error
	guide  func(ctx context.Context) error
	cancel func(ctx context.Context, heard func(agent.Evidence)) error
	answer func(ctx context.Context) error

	stopProcess error
	onStop      func()
}

func (f *fakeLive) note(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call)
}

func (f *fakeLive) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.calls...)
}

func (f *fakeLive) count(call string) int {
	n := 0
	for _, c := range f.seen() {
		if c == call {
			n++
		}
	}
	return n
}

func (f *fakeLive) do(ctx context.Context, call string, g func(context.Context) error) error {
	f.note(call)
	if g == nil {
		return nil
	}
	return g(ctx)
}

func (f *fakeLive) Start(ctx context.Context, _ agent.Session, _ agent.Message) error {
	return f.do(ctx, "start", f.start)
}

func (f *fakeLive) Guide(ctx context.Context, _ agent.SessionID, m agent.Message) error {
	return f.do(ctx, "guide"+m.Content, f.guide)
}

func (f *fakeLive) Cancel(ctx context.Context, _ agent.Claimed, heard func(agent.Evidence)) error {
	f.note("cancel")
	if f.cancel == nil {
		return nil
	}
	return f.cancel(ctx, heard)
}

func (f *fakeLive) Answer(ctx context.Context, _ agent.SessionID, _ agent.Interaction) error {
	return f.do(ctx, "answer", f.answer)
}

func (f *fakeLive) StopProcess(context.Context, agent.SessionID, agent.SessionID, agent.ProcessID) error {
	f.note("stop process")
	if f.onStop != nil {
		f.onStop()
	}
	return f.stopProcess
}

func (f *fakeLive) Forget(context.Context, agent.SessionID, []agent.SessionID) { f.note("forget") }

func (f *fakeLive) CloseSession(context.Context, agent.SessionID) error {
	f.note("close")
	return nil
}

// desk is a running service over fakes.
type desk struct {
	*command.Service
	store *fakeStore
	live  *fakeLive
}

// inBubble runs f with a running service, in virtual time.
func inBubble(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := &desk{store: newFakeStore(), live: &fakeLive{}}
		d.Service = command.New(command.Options{
			Store: d.store, Live: d.live, Logger: slog.New(slog.DiscardHandler),
			Card: func(_ context.Context, p string) (agent.Capabilities, error) {
				if p != "demo" {
					return agent.Capabilities{}, agent.Errorf(agent.CodeInvalid, "no provider %q", p)
				}
				return agent.Capabilities{Guide: true}, nil
			},
			Accept: func(n agent.NewSession) error {
				if n.Scenario == "unknown" {
					return agent.Errorf(agent.CodeInvalid, "no scenario %q", n.Scenario)
				}
				return nil
			},
		})
		go d.Run(t.Context())
		synctest.Wait()
		f(t, d)
		if err := d.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// carry puts an operation in, wakes the worker and lets everything come to rest.
func (d *desk) carry(c agent.Claimed) *fakeOp {
	op := d.store.add(c)
	d.Ring()
	synctest.Wait()
	return op
}

func (d *desk) ended(op *fakeOp) bool {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return !op.Operation.Status.Open()
}

func (f *fakeStore) Process(_ context.Context, _ agent.WorkspaceID, _ agent.SessionID, id agent.ProcessID) (agent.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.processes[id]
	if !ok {
		return p, agent.Errorf(agent.CodeNotFound, "no process")
	}
	return p, nil
}
