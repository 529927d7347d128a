package acp

// Versions of the protocol.
const (
	V1 = 1
	V2 = 2
)

// Methods that an agent serves.
const (
	MethodInitialize      = "initialize"
	MethodAuthenticate    = "authenticate" // version 1
	MethodLogin           = "auth/login"   // version 2
	MethodNewSession      = "session/new"
	MethodLoadSession     = "session/load" // version 1; version 2 resumes with ReplayFrom
	MethodResumeSession   = "session/resume"
	MethodForkSession     = "session/fork"
	MethodListSessions    = "session/list"
	MethodCloseSession    = "session/close"
	MethodDeleteSession   = "session/delete"
	MethodPrompt          = "session/prompt"
	MethodCancel          = "session/cancel"   // a notification
	MethodSetMode         = "session/set_mode" // version 1
	MethodSetConfigOption = "session/set_config_option"
	MethodSetTitle        = "session/set_title"
)

// Methods that a client serves.
const (
	MethodUpdate            = "session/update" // a notification
	MethodRequestPermission = "session/request_permission"
	MethodElicit            = "elicitation/create"
	MethodElicited          = "elicitation/complete" // a notification
	MethodReadTextFile      = "fs/read_text_file"    // these and the terminals: version 1
	MethodWriteTextFile     = "fs/write_text_file"
	MethodCreateTerminal    = "terminal/create"
	MethodTerminalOutput    = "terminal/output"
	MethodReleaseTerminal   = "terminal/release"
	MethodWaitForTerminal   = "terminal/wait_for_exit"
	MethodKillTerminal      = "terminal/kill"
)

// Error codes beside those of JSON-RPC.
const (
	CodeAuthRequired       = -32000
	CodeResourceNotFound   = -32002
	CodeUnsupportedVersion = -32022 // version 2
)
