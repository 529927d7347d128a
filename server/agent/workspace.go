package agent

import "time"

// Workspace is one directory that agents work in, and the scope of one event
// log: its sequence numbers are its own.
type Workspace struct {
	ID        WorkspaceID `json:"id"`
	Name      string      `json:"name"`
	Path      string      `json:"path" doc:"Absolute path on the daemon's machine"`
	CreatedAt time.Time   `json:"createdAt"`
}
