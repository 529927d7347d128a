package codextest

import (
	"fmt"

	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

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
func (v Version) Spawn(callID, child, task string) modeltest.ToolCall {
	args := map[string]any{"message": modeltest.Mark(child) + " " + task}
	if v == V2 {
		args["task_name"] = child
	}
	return modeltest.Call("spawn_agent", args).In(v.Namespace()).As(callID)
}

// Wait waits for children for 30 seconds at most. V1 names them by the call
// ids of their spawns; V2 waits for whichever comes first and takes no names.
func (v Version) Wait(callID string, spawnCalls ...string) modeltest.ToolCall {
	args := map[string]any{"timeout_ms": 30_000}
	if v == V1 {
		targets := make([]string, 0, len(spawnCalls))
		for _, id := range spawnCalls {
			targets = append(targets, modeltest.OutputOf(id, "agent_id"))
		}
		args["targets"] = targets
	}
	return modeltest.Call("wait_agent", args).In(v.Namespace()).As(callID)
}

// Shell runs a command, giving it two seconds before it goes to the background.
func Shell(callID, command string) modeltest.ToolCall {
	return modeltest.Call("exec_command", map[string]any{"cmd": command, "yield_time_ms": 2000}).As(callID)
}

// AskShell runs a command outside of the sandbox, for which the user is asked
// when the approval policy is "on-request".
func AskShell(callID, command, reason string) modeltest.ToolCall {
	return modeltest.Call("exec_command", map[string]any{
		"cmd": command, "yield_time_ms": 2000,
		"sandbox_permissions": "require_escalated", "justification": reason,
	}).As(callID)
}
