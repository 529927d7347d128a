package claude

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/serial"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// Background work that is no agent: detached shells, monitors, workflows. It is never a
// child, holds no turn open, and can be stopped by itself. When one ends the program begins
// a root turn that nobody asked for; that is a turn like any other of its own.

// taskShell is the type of a detached shell, and of a monitor. The program is idle while
// only shells run; any other kind of work keeps it busy.
const taskShell = "local_bash"

// process is one task that is no agent.
type process struct {
	id      agent.ProcessID
	kind    string
	session agent.SessionID
	turn    agent.TurnID
	seen    bool // storage knows it: it runs in the background
	start   agent.Process
	waits   []*serial.Waiter // for its end
}

// detached is the part of the runtime that knows them.
type detached struct {
	processes map[string]*process // by task id, while they run
	past      map[string]bool     // those that have ended
}

func newDetached() detached {
	return detached{processes: map[string]*process{}, past: map[string]bool{}}
}

// isProcess says whether a task is known as one that is no agent.
func (r *runtime) isProcess(task string) bool { return r.processes[task] != nil || r.past[task] }

// busyWorkflow says whether something runs that keeps the program from saying idle.
func (r *runtime) busyWorkflow() bool {
	for _, p := range r.processes {
		if p.seen && p.kind != taskShell {
			return true
		}
	}
	return false
}

// processStarted notes a task that is no agent. A shell that an agent waits for is told,
// too, when it takes long: it is a process only once it is in the background.
func (r *runtime) processStarted(f *taskFrame) {
	if r.isProcess(f.TaskID) {
		return
	}
	l := r.byTask[f.ParentTaskID]
	if f.ParentTaskID == "" {
		l = r.callerOf(f.ToolUseID)
	}
	if l == nil {
		r.hold(f.ParentTaskID, f)
		return
	}
	u := r.workOf(l)
	if u == nil || u.dropped {
		r.Diagnose(provider.Refused, f.name(), f.TaskID)
		return
	}
	p := &process{id: agent.ProcessID(f.TaskID), kind: f.TaskType, session: l.session, turn: u.id}
	p.start = agent.Process{
		ID: p.id, SessionID: p.session, TurnID: p.turn, CallID: agent.CallID(f.ToolUseID),
		Command: show.Input(cmp.Or(readInput(l.tools[f.ToolUseID]).Command, f.Description, f.WorkflowName, f.TaskType)),
		Cwd:     r.params.Root.Cwd, Status: agent.ProcessRunning, Stoppable: true,
	}
	r.processes[f.TaskID] = p
	if f.IsBackgrounded {
		r.showProcess(p)
	}
}

// callerOf is the agent that made a tool call: the one whose transcript has it, the root
// where the call names none.
func (r *runtime) callerOf(call string) *lane {
	for _, l := range r.children {
		if _, mine := l.tools[call]; mine {
			return l
		}
	}
	return r.root
}

func (r *runtime) showProcess(p *process) {
	if !p.seen {
		p.seen = true
		r.Apply(agent.ProcessSeen{Process: p.start})
	}
}

// processFrame handles a patch, or the end, of a task that is no agent.
func (r *runtime) processFrame(f *taskFrame) {
	p := r.processes[f.TaskID]
	switch {
	case p == nil:
		r.Diagnose(provider.Late, f.name(), f.TaskID)
	case f.Subtype == subTaskNotice:
		r.processEnded(f.TaskID, p)
	case f.Subtype == subTaskUpdated && f.Patch.IsBackgrounded != nil && *f.Patch.IsBackgrounded:
		r.showProcess(p)
	}
}

func (r *runtime) processEnded(task string, p *process) {
	delete(r.processes, task)
	r.past[task] = true
	if p.seen {
		r.Apply(agent.ProcessSeen{Process: agent.Process{ID: p.id, SessionID: p.session, TurnID: p.turn, Status: agent.ProcessEnded}})
	}
	for _, w := range p.waits {
		r.Finish(w, nil)
	}
}

// processLevel ends what the list of living tasks no longer has.
func (r *runtime) processLevel(f *tasksFrame) {
	for _, task := range slices.Sorted(maps.Keys(r.processes)) {
		if p := r.processes[task]; p.seen && !f.has(task) {
			r.Diagnose(provider.Unrouted, f.name(), "no end was told of "+task)
			r.processEnded(task, p)
		}
	}
}

// StopProcess implements provider.ProcessStopper. The answer to stop_task says nothing; the
// process has ended when its notice comes.
func (r *runtime) StopProcess(ctx context.Context, session agent.SessionID, id agent.ProcessID) error {
	w := serial.NewWaiter()
	r.Do(func() {
		p := r.processes[string(id)]
		switch err := r.gone(); {
		case err != nil:
			r.Finish(w, err)
			return
		case r.bySession[session] == nil:
			r.Finish(w, agent.Errorf(agent.CodeNotFound, "Claude does not run this agent"))
			return
		case p == nil || p.session != session:
			r.Finish(w, nil) // it has ended
			return
		}
		p.waits = append(p.waits, w)
		r.send(stopTaskRequest{Subtype: reqStopTask, TaskID: string(id)}, requestBound, func(a answer) {
			if a.err != nil {
				r.Finish(w, callError("end the process", a.err))
			}
		})
	})
	bounded, cancel := context.WithCancel(ctx)
	defer cancel()
	defer r.Clock.AfterFunc(stopBound, cancel)()
	err := r.Await(bounded, w)
	if err != nil && errors.Is(err, bounded.Err()) {
		return agent.Errorf(agent.CodeTimeout, "Claude has not said yet that the process ended")
	}
	return err
}

var _ provider.ProcessStopper = (*runtime)(nil)
