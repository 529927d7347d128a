package acp

import (
	"slices"

	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// known are the agents that need no setting: each is offered where its program is found.
// Modes are set where the agent would otherwise let a model decide what is allowed.
var known = []Agent{
	{
		Name: "codex-acp", Title: "Codex (ACP)", Command: "codex-acp", Mode: "workspace-write",
		Modes:    []string{"read-only", "workspace-write", "agent", "agent-full-access"},
		Install:  "npm install -g @agentclientprotocol/codex-acp",
		Inherits: []string{"CODEX_*", "OPENAI_*", "AZURE_OPENAI_*"},
		Notes: []string{
			"When a child is stopped alone, the main agent may sit out its own wait for it, 10 seconds or more.",
		},
	},
	{
		Name: "claude-agent-acp", Title: "Claude Code (ACP)", Command: "claude-agent-acp", Mode: "default",
		Modes:   []string{"default", "acceptEdits", "plan", "auto", "bypassPermissions"},
		Install: "npm install -g @agentclientprotocol/claude-agent-acp",
		Inherits: []string{ // each by its name: they change what the program does
			"ANTHROPIC_*", "AWS_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
			"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_EXECUTABLE", "IS_SANDBOX",
		},
		Notes: []string{
			"A stop of the main agent leaves children in its background running; they are stopped one by one with it.",
		},
	},
	{
		Name: "opencode", Title: "OpenCode (ACP)", Command: "opencode", Args: []string{"acp"}, Install: "npm install -g opencode-ai",
		Inherits: []string{"OPENCODE_*", "ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY"},
		Notes: []string{
			"It announces no children: their work is a tool call, and a question of theirs may never arrive (anomalyco/opencode#48232).",
		},
	},
	{Name: "gemini", Title: "Gemini CLI (ACP)", Command: "gemini", Args: []string{"--acp"}, Install: "npm install -g @google/gemini-cli", Inherits: []string{"GEMINI_*", "GOOGLE_*"}},
	{Name: "copilot", Title: "GitHub Copilot CLI (ACP)", Command: "copilot", Args: []string{"--acp"}, Install: "npm install -g @github/copilot", Inherits: []string{"COPILOT_*", "GH_TOKEN", "GITHUB_TOKEN"}},
	{Name: "goose", Title: "Goose (ACP)", Command: "goose", Args: []string{"acp"}, Inherits: []string{"GOOSE_*", "OPENAI_*", "ANTHROPIC_*"}},
	{Name: "qwen", Title: "Qwen Code (ACP)", Command: "qwen", Args: []string{"--acp"}, Install: "npm install -g @qwen-code/qwen-code", Inherits: []string{"QWEN_*", "OPENAI_*", "DASHSCOPE_*"}},
	{Name: "cursor", Title: "Cursor Agent (ACP)", Command: "cursor-agent", Args: []string{"acp"}, Inherits: []string{"CURSOR_*"}},
	{Name: "kimi", Title: "Kimi CLI (ACP)", Command: "kimi", Args: []string{"acp"}, Inherits: []string{"KIMI_*", "MOONSHOT_*"}},
	{Name: "auggie", Title: "Auggie (ACP)", Command: "auggie", Args: []string{"--acp"}, Install: "npm install -g @augmentcode/auggie", Inherits: []string{"AUGMENT_*"}},
	{Name: "vibe", Title: "Mistral Vibe (ACP)", Command: "vibe-acp", Inherits: []string{"MISTRAL_*", "VIBE_*"}},
}

// Known is the agent of that name among those that need no setting, false if there is none.
func Known(name string) (Agent, bool) {
	at := slices.IndexFunc(known, func(a Agent) bool { return a.Name == name })
	if at < 0 {
		return Agent{}, false
	}
	return known[at], true
}

// Found are the agents that need no setting and whose program is on this machine.
func Found(env Getenv) []Agent {
	return slices.DeleteFunc(slices.Clone(known), func(a Agent) bool {
		_, err := proc.LookPath(a.Command, env)
		return err != nil
	})
}

// With returns the agent with what a person has set of it. What is empty stays.
func (a Agent) With(o Agent) Agent {
	if o.Command != "" {
		a.Command, a.Args, a.Install = o.Command, o.Args, ""
	}
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	set(&a.Name, o.Name)
	set(&a.Title, o.Title)
	set(&a.Mode, o.Mode)
	if o.Version != 0 {
		a.Version = o.Version
	}
	if o.Env != nil {
		a.Env = o.Env
	}
	a.Inherits = slices.Concat(a.Inherits, o.Inherits)
	return a
}
