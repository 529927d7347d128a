package claudetest

import (
	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// Foreground starts the child agent and waits for it.
func Foreground(callID, child, task string) modeltest.ToolCall {
	return launch("Agent", callID, child, task, false)
}

// Background starts the child agent and goes on.
func Background(callID, child, task string) modeltest.ToolCall {
	return launch("Agent", callID, child, task, true)
}

// Legacy is Foreground by the older name of the tool.
func Legacy(callID, child, task string) modeltest.ToolCall {
	return launch("Task", callID, child, task, false)
}

func launch(tool, callID, child, task string, background bool) modeltest.ToolCall {
	return modeltest.Call(tool, map[string]any{
		"description": "Agent " + child, "prompt": modeltest.Mark(child) + " " + task,
		"subagent_type": "general-purpose", "run_in_background": background,
	}).As(callID)
}

// Bash runs a command and waits for it.
func Bash(callID, command string) modeltest.ToolCall {
	return modeltest.Call("Bash", map[string]any{"command": command, "description": "Run " + callID}).As(callID)
}

// Detached runs a command in the background.
func Detached(callID, command string) modeltest.ToolCall {
	return modeltest.Call("Bash", map[string]any{
		"command": command, "description": "Run " + callID, "run_in_background": true,
	}).As(callID)
}

// Ask puts one question with two answers to the person.
func Ask(callID, question, one, two string) modeltest.ToolCall {
	return modeltest.Call("AskUserQuestion", map[string]any{"questions": []any{map[string]any{
		"question": question, "header": "Choice", "multiSelect": false,
		"options": []any{
			map[string]string{"label": one, "description": "The first"},
			map[string]string{"label": two, "description": "The second"},
		},
	}}}).As(callID)
}

// Write creates a file.
func Write(callID, path, content string) modeltest.ToolCall {
	return modeltest.Call("Write", map[string]any{"file_path": path, "content": content}).As(callID)
}
