package acp

import "encoding/json"

// InitializeRequest opens a connection. ClientInfo and ClientCapabilities are version 1's,
// Info and Capabilities version 2's; a client that can speak both sends what belongs to the
// version it asks for.
type InitializeRequest struct {
	ProtocolVersion    int                   `json:"protocolVersion"`
	ClientInfo         *Implementation       `json:"clientInfo,omitempty"`
	ClientCapabilities *ClientCapabilities   `json:"clientCapabilities,omitempty"`
	Info               *Implementation       `json:"info,omitempty"`
	Capabilities       *ClientCapabilitiesV2 `json:"capabilities,omitempty"`
	Meta               Meta                  `json:"_meta,omitempty"`
}

// Implementation is a program.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// ClientCapabilities is what a client of version 1 can do. Subagents is the opt-in: absent
// or null, no update may speak of a child.
type ClientCapabilities struct {
	FS          *FileSystem   `json:"fs,omitempty"`
	Terminal    bool          `json:"terminal,omitempty"`
	Subagents   *Empty        `json:"subagents,omitempty"`
	Plan        *Empty        `json:"plan,omitempty"`
	Session     *ClientExtras `json:"session,omitempty"`
	Elicitation *Elicitations `json:"elicitation,omitempty"`
	Meta        Meta          `json:"_meta,omitempty"`
}

// ClientCapabilitiesV2 is what a client of version 2 can do.
type ClientCapabilitiesV2 struct {
	Elicitation *Elicitations `json:"elicitation,omitempty"`
	Meta        Meta          `json:"_meta,omitempty"`
}

// FileSystem says which of the client's files an agent may ask for.
type FileSystem struct {
	ReadTextFile  bool `json:"readTextFile,omitempty"`
	WriteTextFile bool `json:"writeTextFile,omitempty"`
}

// ClientExtras are updates that a client of version 1 has to ask for.
type ClientExtras struct {
	Compaction    *Empty          `json:"compaction,omitempty"`
	ConfigOptions json.RawMessage `json:"configOptions,omitempty"`
	Notices       *Empty          `json:"notices,omitempty"`
}

// Elicitations are the ways in which a client can ask a person.
type Elicitations struct {
	Form *Empty `json:"form,omitempty"`
	URL  *Empty `json:"url,omitempty"`
}

// InitializeResponse is what an agent answers. Its version decides what is spoken. Again
// AgentInfo and AgentCapabilities are version 1's, Info and Capabilities version 2's.
type InitializeResponse struct {
	ProtocolVersion   int                  `json:"protocolVersion"`
	AgentInfo         *Implementation      `json:"agentInfo,omitempty"`
	AgentCapabilities *AgentCapabilities   `json:"agentCapabilities,omitempty"`
	Info              *Implementation      `json:"info,omitempty"`
	Capabilities      *AgentCapabilitiesV2 `json:"capabilities,omitempty"`
	AuthMethods       []AuthMethod         `json:"authMethods,omitempty"`
	Meta              Meta                 `json:"_meta,omitempty"`
}

// AgentCapabilities is what an agent of version 1 can do.
type AgentCapabilities struct {
	LoadSession         bool                 `json:"loadSession,omitempty"`
	PromptCapabilities  *PromptCapabilities  `json:"promptCapabilities,omitempty"`
	MCP                 json.RawMessage      `json:"mcpCapabilities,omitempty"`
	SessionCapabilities *SessionCapabilities `json:"sessionCapabilities,omitempty"`
	Auth                json.RawMessage      `json:"auth,omitempty"`
	Meta                Meta                 `json:"_meta,omitempty"`
}

// PromptCapabilities says what version 1's prompts may hold beside text and links.
type PromptCapabilities struct {
	Image           bool `json:"image,omitempty"`
	Audio           bool `json:"audio,omitempty"`
	EmbeddedContext bool `json:"embeddedContext,omitempty"`
}

// SessionCapabilities is what an agent can do with a session, in both versions; list,
// resume, close and cancel are a matter of course in version 2.
type SessionCapabilities struct {
	Prompt                *PromptCapabilitiesV2 `json:"prompt,omitempty"` // version 2
	MCP                   json.RawMessage       `json:"mcp,omitempty"`    // version 2
	List                  *Empty                `json:"list,omitempty"`
	Resume                *Empty                `json:"resume,omitempty"`
	Close                 *Empty                `json:"close,omitempty"`
	Delete                *Empty                `json:"delete,omitempty"`
	Fork                  *Empty                `json:"fork,omitempty"`
	Title                 *Empty                `json:"title,omitempty"`
	AdditionalDirectories *Empty                `json:"additionalDirectories,omitempty"`
	Subagents             *Empty                `json:"subagents,omitempty"` // what some agents add
	Meta                  Meta                  `json:"_meta,omitempty"`
}

// PromptCapabilitiesV2 is [PromptCapabilities] in version 2.
type PromptCapabilitiesV2 struct {
	Image           *Empty `json:"image,omitempty"`
	Audio           *Empty `json:"audio,omitempty"`
	EmbeddedContext *Empty `json:"embeddedContext,omitempty"`
}

// AgentCapabilitiesV2 is what an agent of version 2 can do.
type AgentCapabilitiesV2 struct {
	Session *SessionCapabilities `json:"session,omitempty"`
	Auth    json.RawMessage      `json:"auth,omitempty"`
	Meta    Meta                 `json:"_meta,omitempty"`
}

// AuthMethod is one way to sign in. Version 1 names it by ID, version 2 by MethodID.
type AuthMethod struct {
	ID          string `json:"id,omitempty"`
	MethodID    string `json:"methodId,omitempty"`
	Type        string `json:"type,omitempty"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}
