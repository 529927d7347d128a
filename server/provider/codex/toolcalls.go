package codex

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// collabCall handles a tool call of the first multi-agent version. Only a spawn that
// completed is an edge; receivers of the other tools name agents that exist already.
func (r *runtime) collabCall(t *thread, u *turn, it *threadItem, done bool) {
	i := u.entry(it.ID, agent.RoleTool, agent.MessageToolCall)
	m := agent.Message{
		Name: it.Tool, Title: collabTitle(it), Input: show.Input(it.Prompt),
		Output: show.Output(stateText(it.AgentsStates)), Status: callStatus(it.Status, done),
	}
	if it.Tool != toolSpawnAgent {
		if it.Tool == toolSendInput && done && it.Status == statusCompleted && !i.ended {
			for _, child := range it.ReceiverThreadIDs {
				r.summon(t, u, child)
			}
		}
		r.putCall(t, u, i, m)
		return
	}
	i.spawn, i.input = true, it.Prompt
	if !done || it.Status != statusCompleted || len(it.ReceiverThreadIDs) == 0 {
		r.putCall(t, u, i, m)
		return
	}
	for _, child := range it.ReceiverThreadIDs {
		m.ChildSessionID = r.spawned(edge{
			parent: t, parentTurn: u, call: i.call, child: child, naming: naming{prompt: it.Prompt, model: it.Model},
		})
		i.child, i.input = child, ""
		m.Output = ""
		r.putCall(t, u, i, m)
		r.settleIn(child)
	}
}

// activity handles an item of the second multi-agent version. A started one is the
// edge, in both of its halves: the child's own turn may begin between them. A completed
// one is no terminal: it exists for success only, and the child's turn tells.
func (r *runtime) activity(t *thread, u *turn, it *threadItem) {
	switch it.Kind {
	case activityCompleted:
		r.Diagnose(provider.Ignored, "subAgentActivity/completed", it.AgentThreadID)
		return
	case activityStarted:
		i := u.entry(it.ID, agent.RoleTool, agent.MessageToolCall)
		if i.child != "" && i.message != "" {
			return
		}
		i.spawn, i.child = true, it.AgentThreadID
		session := r.spawned(edge{
			parent: t, parentTurn: u, call: i.call, child: it.AgentThreadID, naming: naming{path: it.AgentPath, model: it.Model},
		})
		r.putCall(t, u, i, agent.Message{
			Name: toolSpawnAgent, Title: "Start agent " + pathName(it.AgentPath), Input: it.AgentPath,
			ChildSessionID: session, Status: agent.MessageCompleted,
		})
		r.settleIn(it.AgentThreadID)
	default: // interacted, interrupted: the call has been made, there is no more to it
		i := u.entry(it.ID, agent.RoleTool, agent.MessageToolCall)
		if !i.ended {
			if it.Kind == activityInteracted {
				r.summon(t, u, it.AgentThreadID)
			}
			r.putItem(t, u, i, agent.Message{
				Name: it.Kind, Title: activityTitle(it), Input: it.AgentPath, Status: agent.MessageCompleted,
			})
		}
	}
}

// toolCall handles every other item.
func (r *runtime) toolCall(t *thread, u *turn, it *threadItem, done bool) {
	i := u.entry(it.ID, agent.RoleTool, agent.MessageToolCall)
	if i.over {
		return
	}
	m := agent.Message{Name: it.Type, Status: callStatus(it.Status, done)}
	switch it.Type {
	case itemCommand:
		i.command = true
		m.Title, m.Input = show.Bounded(plainCommand(it), show.TitleLength), show.Input(it.Command)
		if it.AggregatedOutput != "" {
			i.output = show.Tail{}
			i.output.Add(it.AggregatedOutput)
		}
		m.Output = i.output.String()
		if it.ExitCode != nil && *it.ExitCode != 0 {
			m.Output += fmt.Sprintf("\n[exit code %d]", *it.ExitCode)
		}
	case itemFileChange:
		i.diff = unified(it.Changes)
		m.Title, m.Input = changeTitle(it.Changes), show.Input(i.diff)
	case itemMCP:
		m.Name, m.Title = it.Server+"/"+it.Tool, it.Tool
		m.Input = show.Input(show.JSON(it.Arguments))
		m.Output = show.Output(show.JSON(it.Error) + show.JSON(it.Result))
	case itemWebSearch:
		m.Title, m.Input = show.Bounded("Search: "+it.Query, show.TitleLength), show.Input(it.Query)
	default:
		if it.Tool != "" {
			m.Name = it.Tool
		}
		m.Title, m.Input = m.Name, show.Input(show.JSON(it.Arguments))
		m.Output = show.Output(it.Text + show.JSON(it.Result) + show.JSON(it.Error))
	}
	r.putCall(t, u, i, m)
	if done {
		i.end()
		r.shellEnded(t, agent.ProcessID(it.ID))
	}
}

// putCall shows a tool call. Once it has ended only its output can grow: a command may
// run on after its turn was stopped.
func (r *runtime) putCall(t *thread, u *turn, i *item, m agent.Message) {
	if i.ended {
		if m.Output == "" && m.ChildSessionID == "" {
			return
		}
		m = agent.Message{Output: m.Output, ChildSessionID: m.ChildSessionID}
	} else if u.ended && m.Status == agent.MessageStreaming {
		m.Status = agent.MessageInterrupted // nothing streams in a turn that has ended
	}
	r.putItem(t, u, i, m)
}

// commandOutput keeps both ends of a command's output. Every showing writes all that is
// kept, so it is shown again only once it has doubled: what is written in all stays
// within a constant of what the command has said, however long it talks.
func (r *runtime) commandOutput(t *thread, u *turn, id, delta string) {
	i := u.items[id]
	if i == nil || i.message == "" {
		r.Diagnose(provider.Unrouted, "item/commandExecution/outputDelta", t.id)
		return
	}
	if i.over {
		r.Diagnose(provider.Late, "item/commandExecution/outputDelta", t.id)
		return
	}
	i.output.Add(delta)
	now, size := r.Clock.Now(), i.output.Size()
	if i.ended || now.Sub(i.shownAt) < outputEvery || size < 2*i.shown {
		return // its end, or a later piece, shows it
	}
	i.shown, i.shownAt = size, now
	r.putItem(t, u, i, agent.Message{Output: i.output.String()})
}

// callStatus reads an item's own status, or what its frame says where it has none.
func callStatus(status string, done bool) agent.MessageStatus {
	switch {
	case status == statusFailed, status == statusDeclined:
		return agent.MessageFailed
	case status == statusTurnInterrupted:
		return agent.MessageInterrupted
	case done:
		return agent.MessageCompleted
	}
	return agent.MessageStreaming
}

func collabTitle(it *threadItem) string {
	switch it.Tool {
	case toolSpawnAgent:
		return show.Bounded("Start agent: "+show.Title(it.Prompt), show.TitleLength)
	case "wait":
		if n := len(it.ReceiverThreadIDs); n > 1 {
			return fmt.Sprintf("Wait for %d agents", n)
		}
		return "Wait for an agent"
	case toolSendInput:
		return show.Bounded("Message to an agent: "+show.Title(it.Prompt), show.TitleLength)
	case "closeAgent":
		return "Close an agent"
	case "resumeAgent":
		return "Resume an agent"
	}
	return it.Tool
}

func activityTitle(it *threadItem) string {
	name := pathName(it.AgentPath)
	switch it.Kind {
	case activityInteracted:
		return "Message to agent " + name
	case "interrupted":
		return "Interrupt agent " + name
	}
	return it.Kind + " " + name
}

// stateText is what a wait learned, one agent a paragraph, in the order of thread ids.
func stateText(states map[string]agentState) string {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(states)) {
		switch s := states[id]; {
		case s.Message != "":
			lines = append(lines, s.Status+": "+s.Message)
		case s.Status != "pendingInit":
			lines = append(lines, s.Status)
		}
	}
	return strings.Join(lines, "\n")
}

// plainCommand is the command without the shell around it, where the server says it.
func plainCommand(it *threadItem) string {
	var parts []string
	for _, a := range it.CommandActions {
		if a.Command != "" {
			parts = append(parts, a.Command)
		}
	}
	if len(parts) == 0 {
		return it.Command
	}
	return strings.Join(parts, " && ")
}

func changeTitle(changes []fileChange) string {
	if len(changes) == 1 {
		return show.Bounded("Edit "+path.Base(changes[0].Path), show.TitleLength)
	}
	return fmt.Sprintf("Edit %d files", len(changes))
}

// unified renders changes as one unified diff: of a new or deleted file the server
// gives the text, of an update the hunks.
func unified(changes []fileChange) string {
	var b strings.Builder
	for _, c := range changes {
		switch c.Kind.Type {
		case "add":
			b.WriteString(show.NewFile(c.Path, c.Diff))
		case "delete":
			b.WriteString(show.DeletedFile(c.Path, c.Diff))
		default:
			b.WriteString(show.ChangedFile(c.Path, cmp.Or(c.Kind.MovePath, c.Path), c.Diff))
		}
	}
	return b.String()
}
