package codextest

import (
	"encoding/json"
	"fmt"
)

// Script holds the replies of each agent by name, in order.
type Script map[string][]Reply

// Reply answers one request of an agent to the model.
type Reply []Step

// Step is one thing a reply does. The set is closed; use the functions below.
type Step interface{ play(*stream) error }

type (
	gateStep   string
	sayStep    struct{ chunks []string }
	thinkStep  string
	statusStep struct {
		code int
		body string
	}
	failStep struct{ code, message string }
	dropStep struct{}
)

// Gate holds the reply until [Model.Open] is called with the same name.
func Gate(name string) Step { return gateStep(name) }

// Say sends an assistant message in one piece.
func Say(text string) Step { return SayIn(1, text) }

// SayIn sends an assistant message in n pieces of about equal length.
func SayIn(n int, text string) Step {
	n = max(1, n)
	runes := []rune(text) // a piece must not cut a character
	s := sayStep{}
	for i := range n {
		s.chunks = append(s.chunks, string(runes[len(runes)*i/n:len(runes)*(i+1)/n]))
	}
	return s
}

// SayPieces sends an assistant message in exactly these pieces.
func SayPieces(pieces ...string) Step { return sayStep{pieces} }

// Think sends a reasoning summary.
func Think(text string) Step { return thinkStep(text) }

// Status answers with an HTTP error instead of a stream. Only gates may stand
// before it and nothing after it.
func Status(code int, body string) Step { return statusStep{code, body} }

// Fail ends the reply with a response.failed event.
func Fail(code, message string) Step { return failStep{code, message} }

// Drop cuts the connection in the middle of the stream.
func Drop() Step { return dropStep{} }

// ToolCall is a step in which the model calls a tool.
type ToolCall struct {
	id, namespace, tool string
	args                any
}

// Call makes the model call a tool. args is anything that encodes as a JSON
// object (nil: an empty one); its strings may hold [OutputOf] and [ThreadOf].
// The call id is the request's own unless set with As.
func Call(tool string, args any) ToolCall { return ToolCall{tool: tool, args: args} }

// As sets the call id, by which items on the app-server's side are known.
func (c ToolCall) As(id string) ToolCall { c.id = id; return c }

// In sets the tool's namespace.
func (c ToolCall) In(namespace string) ToolCall { c.namespace = namespace; return c }

// OutputOf stands for a field of the JSON object that the earlier tool call
// with this id returned.
func OutputOf(callID, field string) string { return "@{output " + callID + " " + field + "}" }

// ThreadOf stands for the thread id of an agent that has made a request.
func ThreadOf(agent string) string { return "@{thread " + agent + "}" }

// Mark is how a prompt names the agent that gets it.
func Mark(agent string) string { return "<<" + agent + ">>" }

// Version is one of the two sets of multi-agent tools that Codex offers.
type Version int

// The two sets. A home made with [Options].V2 offers V2, else V1.
const (
	V1 Version = 1
	V2 Version = 2
)

func (v Version) String() string { return fmt.Sprintf("v%d", int(v)) }

// Namespace is where the multi-agent tools of this version live.
func (v Version) Namespace() string {
	if v == V2 {
		return "collaboration"
	}
	return "multi_agent_v1"
}

// Spawn starts the child agent with a task.
func (v Version) Spawn(callID, child, task string) ToolCall {
	args := map[string]any{"message": Mark(child) + " " + task}
	if v == V2 {
		args["task_name"] = child
	}
	return Call("spawn_agent", args).In(v.Namespace()).As(callID)
}

// Wait waits for children for 30 seconds at most. V1 names them by the call
// ids of their spawns; V2 waits for whichever comes first and takes no names.
func (v Version) Wait(callID string, spawnCalls ...string) ToolCall {
	args := map[string]any{"timeout_ms": 30_000}
	if v == V1 {
		targets := make([]string, 0, len(spawnCalls))
		for _, id := range spawnCalls {
			targets = append(targets, OutputOf(id, "agent_id"))
		}
		args["targets"] = targets
	}
	return Call("wait_agent", args).In(v.Namespace()).As(callID)
}

// Shell runs a command, giving it two seconds before it goes to the background.
func Shell(callID, command string) ToolCall {
	return Call("exec_command", map[string]any{"cmd": command, "yield_time_ms": 2000}).As(callID)
}

// AskShell runs a command outside of the sandbox, for which the user is asked
// when the approval policy is "on-request".
func AskShell(callID, command, reason string) ToolCall {
	return Call("exec_command", map[string]any{
		"cmd": command, "yield_time_ms": 2000,
		"sandbox_permissions": "require_escalated", "justification": reason,
	}).As(callID)
}

// check refuses what could not be played.
func (s Script) check() error {
	for agent, replies := range s {
		for i, reply := range replies {
			for j, step := range reply {
				if err := checkStep(reply, j, step); err != nil {
					return fmt.Errorf("agent %s, reply %d, step %d: %w", agent, i+1, j+1, err)
				}
			}
		}
	}
	return nil
}

func checkStep(reply Reply, at int, step Step) error {
	switch s := step.(type) {
	case nil:
		return fmt.Errorf("no step")
	case ToolCall:
		_, err := json.Marshal(s.args)
		return err
	case statusStep:
		for _, before := range reply[:at] {
			if _, ok := before.(gateStep); !ok {
				return fmt.Errorf("a status must be first")
			}
		}
	}
	switch step.(type) {
	case statusStep, failStep, dropStep:
		if at < len(reply)-1 {
			return fmt.Errorf("nothing can follow the end of a reply")
		}
	}
	return nil
}

// wantsStatus tells whether the reply is an HTTP error.
func (r Reply) wantsStatus() bool {
	if len(r) == 0 {
		return false
	}
	_, ok := r[len(r)-1].(statusStep)
	return ok
}
