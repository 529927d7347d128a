package claude

import (
	"encoding/json"
	"slices"
)

// States of the session. idle is the provider's own word that no agent lives, no root turn
// is open and no continuation is still to come.
const (
	stateRunning = "running"
	stateAction  = "requires_action"
	stateIdle    = "idle"
)

// What becomes of a person's message.
const (
	lifeQueued    = "queued"
	lifeStarted   = "started" // taken into a turn, a new one or the running one
	lifeCompleted = "completed"
	lifeCancelled = "cancelled"
)

// Kinds of a task. Only an agent is a child (decisions.md 17).
const taskAgent = "local_agent"

// Statuses of a task: of the patch of task_updated, and of task_notification.
const (
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskKilled    = "killed"  // in task_updated
	taskStopped   = "stopped" // in task_notification
)

// Names of the tools that mean something for whose work a line is.
const (
	toolAgent       = "Agent"
	toolTask        = "Task" // the older name of Agent
	toolSendMessage = "SendMessage"
	toolAsk         = "AskUserQuestion"
	toolExitPlan    = "ExitPlanMode"
	toolTodo        = "TodoWrite"
)

// launchesAgent says whether a call of the tool asks for a child.
func launchesAgent(tool string) bool { return tool == toolAgent || tool == toolTask }

// initFrame begins a root provider turn.
type initFrame struct {
	header
	Model          string   `json:"model"`
	PermissionMode string   `json:"permissionMode"`
	Version        string   `json:"claude_code_version"`
	Capabilities   []string `json:"capabilities"`
	// UserMessageUUIDs are the messages that began the turn; nil in a turn that the
	// provider began by itself.
	UserMessageUUIDs []string `json:"user_message_uuids"`
}

// byUser says whether a person's message began the turn; if not it is a continuation.
func (f *initFrame) byUser() bool { return f.UserMessageUUIDs != nil }

type stateFrame struct {
	header
	State string `json:"state"`
}

type lifecycleFrame struct {
	header
	CommandUUID string `json:"command_uuid"`
	State       string `json:"state"`
}

// messageFrame is one completed content block of an assistant, or a user line: tool
// results, a foreground child's prompt, a replayed message, or what an interrupt leaves.
type messageFrame struct {
	header
	Message          apiMessage      `json:"message"`
	SubagentType     string          `json:"subagent_type"`
	TaskDescription  string          `json:"task_description"`
	UserMessageUUIDs []string        `json:"user_message_uuids"`
	Aborted          bool            `json:"aborted"`              // assistant: an interrupt cut it
	Error            string          `json:"error"`                // assistant: class of an API error, its text is the content
	IsAPIError       bool            `json:"is_api_error_message"` // assistant
	APIErrorStatus   int             `json:"api_error_status"`
	APIErrorType     string          `json:"api_error_type"`
	LocalCommand     string          `json:"local_command_source"` // assistant: printed by a slash command
	IsReplay         bool            `json:"isReplay"`             // user: our own message given back
	IsSynthetic      bool            `json:"isSynthetic"`          // user: written by the binary
	ToolUseResult    json.RawMessage `json:"tool_use_result"`      // user: see toolResult
	ToolUseMeta      []toolUseMeta   `json:"tool_use_meta"`
	ToolResultMeta   []resultMeta    `json:"tool_result_meta"`
}

func (f *messageFrame) assistant() bool { return f.Type == typeAssistant }

type apiMessage struct {
	ID         string    `json:"id"`
	Role       string    `json:"role"`
	Model      string    `json:"model"` // "<synthetic>": no model spoke
	StopReason string    `json:"stop_reason"`
	Content    blocks    `json:"content"`
	Usage      *apiUsage `json:"usage"`
}

// blocks are the content of a message; a plain string is one text block.
type blocks []block

func (b *blocks) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		*b = blocks{{Type: blockText, Text: text}}
		return nil
	}
	return json.Unmarshal(raw, (*[]block)(b))
}

// Types of a block.
const (
	blockText       = "text"
	blockThinking   = "thinking"
	blockToolUse    = "tool_use"
	blockToolResult = "tool_result"
	blockImage      = "image"
	blockDocument   = "document"
)

// block is every kind of content block in one.
type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	ID        string          `json:"id"`   // tool_use
	Name      string          `json:"name"` // tool_use
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"` // tool_result
	Content   blocks          `json:"content"`     // tool_result
	IsError   bool            `json:"is_error"`    // tool_result
	Source    *blockSource    `json:"source"`      // image, document
	Title     string          `json:"title"`       // document
}

type blockSource struct {
	Type      string `json:"type"` // base64, url, text, file
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

type toolUseMeta struct {
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	Server      string `json:"server_display_name"`
}

type resultMeta struct {
	ID               string `json:"id"`
	NonExecutionKind string `json:"non_execution_kind"` // why the tool never ran
	Decision         struct {
		Decision string `json:"decision"` // accept, reject
		Source   string `json:"source"`
		Reason   string `json:"reason_type"`
	} `json:"permission_decision"`
}

// streamFrame is a piece of a root message that is still being written.
type streamFrame struct {
	header
	Event     streamEvent `json:"event"`
	MessageID string      `json:"api_message_id"`
}

// Types of a streamEvent.
const (
	streamStart      = "message_start"
	streamBlockStart = "content_block_start"
	streamBlockDelta = "content_block_delta"
)

type streamEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock block  `json:"content_block"`
	Delta        struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		PartialJSON string `json:"partial_json"`
		StopReason  string `json:"stop_reason"`
	} `json:"delta"`
	Message *apiMessage `json:"message"`
	Usage   *apiUsage   `json:"usage"`
}

// taskFrame is task_started, task_progress, task_updated or task_notification; Subtype
// says which. The id of a task is the agent_id of its lines.
type taskFrame struct {
	header
	TaskID          string     `json:"task_id"`
	RunID           string     `json:"run_id"`
	ToolUseID       string     `json:"tool_use_id"`
	TaskType        string     `json:"task_type"`
	Description     string     `json:"description"`
	SubagentType    string     `json:"subagent_type"`
	IsBackgrounded  bool       `json:"is_backgrounded"`
	SpawnDepth      int        `json:"spawn_depth"`
	ParentTaskID    string     `json:"parent_task_id"`
	OwnedBySubagent bool       `json:"owned_by_subagent"`
	WorkflowName    string     `json:"workflow_name"`
	SkipTranscript  bool       `json:"skip_transcript"`
	Prompt          string     `json:"prompt"`
	LastToolName    string     `json:"last_tool_name"`    // progress
	Status          string     `json:"status"`            // notification
	Summary         string     `json:"summary"`           // notification
	SummaryIsReport bool       `json:"summary_is_report"` // notification
	OutputFile      string     `json:"output_file"`       // notification
	Patch           taskPatch  `json:"patch"`             // updated
	Usage           *taskUsage `json:"usage"`             // progress, notification
}

// isAgent says whether the task is a child, where the frame tells its type: of the four
// only task_started does.
func (f *taskFrame) isAgent() bool { return f.TaskType == taskAgent }

type taskPatch struct {
	Status         string `json:"status"`
	Error          string `json:"error"`
	IsBackgrounded *bool  `json:"is_backgrounded"`
}

type taskUsage struct {
	TotalTokens int64 `json:"total_tokens"`
	ToolUses    int64 `json:"tool_uses"`
	DurationMS  int64 `json:"duration_ms"`
}

// tasksFrame is the level: every background task that lives, in place of the last.
type tasksFrame struct {
	header
	Tasks []liveTask `json:"tasks"`
}

type liveTask struct {
	TaskID       string `json:"task_id"`
	RunID        string `json:"run_id"`
	TaskType     string `json:"task_type"`
	SubagentType string `json:"subagent_type"`
	Description  string `json:"description"`
	ParentTaskID string `json:"parent_task_id"`
}

// has says whether the level lists a task.
func (f *tasksFrame) has(task string) bool {
	return slices.ContainsFunc(f.Tasks, func(t liveTask) bool { return t.TaskID == task })
}

// Values of resultFrame.
const (
	resultSuccess    = "success"
	originNotice     = "task-notification"
	reasonAborted    = "aborted_streaming"
	reasonAbortTools = "aborted_tools"
)

// resultFrame ends a root provider turn.
type resultFrame struct {
	header
	IsError          bool                  `json:"is_error"`
	NumTurns         int                   `json:"num_turns"`
	Result           string                `json:"result"`
	Errors           []string              `json:"errors"`
	StopReason       string                `json:"stop_reason"`
	TerminalReason   string                `json:"terminal_reason"`
	ResultIndex      int                   `json:"result_index"`
	QueuedTurnCount  int                   `json:"queued_turn_count"`
	Origin           *resultOrigin         `json:"origin"`
	UserMessageUUIDs []string              `json:"user_message_uuids"`
	APIErrorStatus   int                   `json:"api_error_status"`
	APIErrorType     string                `json:"api_error_type"`
	LocalCommand     string                `json:"local_command"`  // the slash command that the turn was
	TotalCostUSD     float64               `json:"total_cost_usd"` // of the process so far, children included
	Usage            *apiUsage             `json:"usage"`          // of this turn, without its children
	ModelUsage       map[string]modelUsage `json:"modelUsage"`     // of the process so far, children included
	// SinceLast is what ModelUsage grew by since the last result.
	SinceLast map[string]modelUsage `json:"model_usage_since_last_result"`
}

type resultOrigin struct {
	Kind  string `json:"kind"`
	RunID string `json:"runId"`
}

// ofNotice says whether a task's end began the turn.
func (f *resultFrame) ofNotice() bool { return f.Origin != nil && f.Origin.Kind == originNotice }

// empty says whether the turn only took a notice that a later one answers: it ends the
// turn and is no outcome (decisions.md 16).
func (f *resultFrame) empty() bool { return f.NumTurns == 0 && f.ofNotice() }

// interrupted says whether an interrupt ended the turn.
func (f *resultFrame) interrupted() bool {
	return f.TerminalReason == reasonAborted || f.TerminalReason == reasonAbortTools
}

type apiUsage struct {
	Input         int64 `json:"input_tokens"`
	Output        int64 `json:"output_tokens"`
	CacheCreation int64 `json:"cache_creation_input_tokens"`
	CacheRead     int64 `json:"cache_read_input_tokens"`
	Details       struct {
		Thinking int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

type modelUsage struct {
	Input         int64   `json:"inputTokens"`
	Output        int64   `json:"outputTokens"`
	CacheCreation int64   `json:"cacheCreationInputTokens"`
	CacheRead     int64   `json:"cacheReadInputTokens"`
	Thinking      int64   `json:"thinkingTokens"`
	CostUSD       float64 `json:"costUSD"`
}

// progressFrame tells of a running tool; of a foreground agent, that its model call is
// tried again.
type progressFrame struct {
	header
	ToolUseID string         `json:"tool_use_id"` // not a real one in a retry
	ToolName  string         `json:"tool_name"`
	Elapsed   float64        `json:"elapsed_time_seconds"`
	Retry     *subagentRetry `json:"subagent_retry"`
}

type subagentRetry struct {
	AgentID       string `json:"agent_id"`
	Attempt       int    `json:"attempt"`
	MaxRetries    int    `json:"max_retries"`
	RetryDelayMS  int64  `json:"retry_delay_ms"`
	ErrorStatus   int    `json:"error_status"`
	ErrorCategory string `json:"error_category"`
}

type statusFrame struct {
	header
	Status         string `json:"status"` // compacting, requesting, ""
	PermissionMode string `json:"permissionMode"`
	CompactResult  string `json:"compact_result"` // success, failed
	CompactError   string `json:"compact_error"`
}

// noteFrame is api_retry, notification, informational or local_command_output.
type noteFrame struct {
	header
	Text         string `json:"text"`    // notification
	Content      string `json:"content"` // informational, local_command_output
	Level        string `json:"level"`   // informational
	Key          string `json:"key"`     // notification
	Attempt      int    `json:"attempt"` // api_retry
	MaxRetries   int    `json:"max_retries"`
	RetryDelayMS int64  `json:"retry_delay_ms"`
	ErrorStatus  int    `json:"error_status"`
	Error        string `json:"error"`
}

// deniedFrame tells that a tool was refused without asking anybody.
type deniedFrame struct {
	header
	ToolName   string `json:"tool_name"`
	ToolUseID  string `json:"tool_use_id"`
	ReasonType string `json:"decision_reason_type"`
	Reason     string `json:"decision_reason"`
	Message    string `json:"message"`
}

type compactFrame struct {
	header
	Metadata struct {
		Trigger    string `json:"trigger"` // manual, auto
		PreTokens  int64  `json:"pre_tokens"`
		PostTokens int64  `json:"post_tokens"`
	} `json:"compact_metadata"`
}

type limitFrame struct {
	header
	Info limitInfo `json:"rate_limit_info"`
}

type limitInfo struct {
	Status   string  `json:"status"`   // allowed, allowed_warning, rejected
	ResetsAt float64 `json:"resetsAt"` // s since 1970, 0 if not told
	Type     string  `json:"rateLimitType"`
	Overage  string  `json:"overageStatus"`
}
