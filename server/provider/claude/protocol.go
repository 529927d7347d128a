package claude

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The part of the stream-json protocol that this package relies on, as claude 2.1.332
// speaks it. Members that are not used are left out. What is unknown is ignored: a
// version emits more than its published types have.

// minVersion is the oldest binary whose frames carry what this adapter rests on: state
// events, the life of a message, interrupts that cancel what is queued, and permission
// requests of background agents.
const minVersion = "2.1.332"

// Types of a line.
const (
	typeSystem     = "system"
	typeAssistant  = "assistant"
	typeUser       = "user"
	typeResult     = "result"
	typeStream     = "stream_event"
	typeLifecycle  = "command_lifecycle"
	typeProgress   = "tool_progress"
	typeRateLimit  = "rate_limit_event"
	typeRequest    = "control_request"
	typeResponse   = "control_response"
	typeWithdrawal = "control_cancel_request"
)

// Subtypes of a system line that mean something here.
const (
	subInit         = "init"
	subState        = "session_state_changed"
	subTaskStarted  = "task_started"
	subTaskProgress = "task_progress"
	subTaskUpdated  = "task_updated"
	subTaskNotice   = "task_notification"
	subTasks        = "background_tasks_changed"
	subStatus       = "status"
	subRetry        = "api_retry"
	subNotification = "notification"
	subInformation  = "informational"
	subLocalOutput  = "local_command_output"
	subDenied       = "permission_denied"
	subCompacted    = "compact_boundary"
)

// Requests to the binary, and those of the binary that are answered here.
const (
	reqInitialize = "initialize"
	reqInterrupt  = "interrupt"
	reqStopTask   = "stop_task"
	reqWithdraw   = "cancel_async_message"

	reqCanUseTool = "can_use_tool"
	reqElicit     = "elicitation"
)

// header is what every line has.
type header struct {
	Type            string `json:"type"`
	Subtype         string `json:"subtype"`
	UUID            string `json:"uuid"` // of the line
	SessionID       string `json:"session_id"`
	ParentToolUseID string `json:"parent_tool_use_id"` // "": the root's
	AgentID         string `json:"agent_id"`           // the child's task id; "" for the root
}

func (h *header) head() *header { return h }

// isChild says whether the line is a child's.
func (h *header) isChild() bool { return h.ParentToolUseID != "" || h.AgentID != "" }

// name is the line's kind for diagnostics: "system/init", "assistant".
func (h *header) name() string {
	if h.Type == typeSystem && h.Subtype != "" {
		return h.Type + "/" + h.Subtype
	}
	return h.Type
}

// frame is one decoded line: *initFrame, *stateFrame, *lifecycleFrame, *messageFrame,
// *streamFrame, *taskFrame, *tasksFrame, *resultFrame, *progressFrame, *statusFrame,
// *noteFrame, *deniedFrame, *compactFrame, *limitFrame, *requestFrame, *responseFrame,
// *withdrawFrame, or *otherFrame for all that means nothing here.
type frame interface{ head() *header }

// otherFrame is a line of an unknown or uninteresting kind.
type otherFrame struct{ header }

var errNoType = errors.New("claude: a line without a type")

// decodeFrame reads one line. A frame with an error is usable: a member had another shape
// than in this version and was left empty. Without a frame the line is no message.
func decodeFrame(line []byte) (frame, error) {
	var h header
	err := json.Unmarshal(line, &h)
	switch wrong := (*json.UnmarshalTypeError)(nil); {
	case err != nil && (!errors.As(err, &wrong) || h.Type == ""):
		return nil, fmt.Errorf("claude: %w", err)
	case h.Type == "":
		return nil, errNoType
	}
	f := newFrame(&h)
	if f == nil {
		return &otherFrame{h}, nil
	}
	if err := json.Unmarshal(line, f); err != nil {
		return f, fmt.Errorf("claude: %s: %w", h.name(), err)
	}
	return f, nil
}

// newFrame is the empty frame of a line's kind, nil if the kind means nothing.
func newFrame(h *header) frame {
	switch h.Type {
	case typeSystem:
		return newSystemFrame(h.Subtype)
	case typeAssistant, typeUser:
		return &messageFrame{}
	case typeResult:
		return &resultFrame{}
	case typeStream:
		return &streamFrame{}
	case typeLifecycle:
		return &lifecycleFrame{}
	case typeProgress:
		return &progressFrame{}
	case typeRateLimit:
		return &limitFrame{}
	case typeRequest:
		return &requestFrame{}
	case typeResponse:
		return &responseFrame{}
	case typeWithdrawal:
		return &withdrawFrame{}
	}
	return nil
}

func newSystemFrame(subtype string) frame {
	switch subtype {
	case subInit:
		return &initFrame{}
	case subState:
		return &stateFrame{}
	case subTaskStarted, subTaskProgress, subTaskUpdated, subTaskNotice:
		return &taskFrame{}
	case subTasks:
		return &tasksFrame{}
	case subStatus:
		return &statusFrame{}
	case subRetry, subNotification, subInformation, subLocalOutput:
		return &noteFrame{}
	case subDenied:
		return &deniedFrame{}
	case subCompacted:
		return &compactFrame{}
	}
	return nil
}

// requestFrame is a request of the binary.
type requestFrame struct {
	header
	RequestID string          `json:"request_id"`
	Request   json.RawMessage `json:"request"`
}

// subtype is what is asked for.
func (f *requestFrame) subtype() string {
	var r struct {
		Subtype string `json:"subtype"`
	}
	_ = json.Unmarshal(f.Request, &r) // without a subtype it is an unknown request
	return r.Subtype
}

// responseFrame answers a request, in either direction.
type responseFrame struct {
	header
	Response responseBody `json:"response"`
}

type responseBody struct {
	Subtype   string          `json:"subtype"` // success, error
	RequestID string          `json:"request_id"`
	Response  json.RawMessage `json:"response"`
	Error     string          `json:"error"`
	ErrorCode string          `json:"error_code"`
	Pending   []requestFrame  `json:"pending_permission_requests"`
}

// withdrawFrame takes a request back. It has no answer.
type withdrawFrame struct {
	header
	RequestID string `json:"request_id"`
}

// initializeRequest opens the conversation. perTaskStopAffordance stays off, so that one
// interrupt ends the root and every child (decisions.md 13).
type initializeRequest struct {
	Subtype             string `json:"subtype"`
	ForwardSubagentText bool   `json:"forwardSubagentText"`
}

type initializeAnswer struct {
	Version string `json:"claude_code_version"`
}

type interruptRequest struct {
	Subtype      string `json:"subtype"`
	CancelQueued bool   `json:"cancel_queued,omitempty"`
}

// interruptAnswer lists user messages by their uuid.
type interruptAnswer struct {
	StillQueued []string `json:"still_queued"`
	Cancelled   []string `json:"cancelled"`
}

type stopTaskRequest struct {
	Subtype string `json:"subtype"`
	TaskID  string `json:"task_id"`
}

type withdrawRequest struct {
	Subtype     string `json:"subtype"`
	MessageUUID string `json:"message_uuid"`
}

type withdrawAnswer struct {
	Cancelled bool `json:"cancelled"`
}

// userLine is a person's message on its way to the root agent. A line without message ends
// the binary, so there is one way to build it, see newUserLine.
type userLine struct {
	Type            string      `json:"type"`
	UUID            string      `json:"uuid"`
	SessionID       string      `json:"session_id"`
	ParentToolUseID *string     `json:"parent_tool_use_id"`
	Message         userMessage `json:"message"`
}

type userMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func newUserLine(uuid, text string) userLine {
	return userLine{Type: typeUser, UUID: uuid, Message: userMessage{Role: "user", Content: text}}
}
