package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/provider"
)

// The binary writes down each child beside the conversation, at any depth: what launched
// it, and whether it has ended. After a crash that is the one whole list of aliases.

// indexed is one child as the binary has it on disk.
type indexed struct {
	TaskID      string `json:"-"`
	AgentType   string `json:"agentType"`
	Description string `json:"description"`
	ToolUseID   string `json:"toolUseId"`
	ParentID    string `json:"parentAgentId"` // the parent's task id; "" is the root
	Depth       int    `json:"spawnDepth"`
	Shape       string `json:"requestShape"` // background, foreground
	Name        string `json:"name"`
	Finished    bool   `json:"finished"`
	Stopped     bool   `json:"stoppedByUser"`
}

// died says whether the child ended with its process.
func (i indexed) died() bool { return !i.Finished && !i.Stopped }

// maxMeta bounds one file of the index, in bytes.
const maxMeta = 1 << 20

// readIndex reads the children of one conversation, by task id. A directory that is not
// there has none. A file that cannot be read is left out; the error then says which, and
// the rest counts.
func readIndex(dir string) ([]indexed, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	faults := []error{err}
	var out []indexed
	for _, e := range entries {
		id, ok := strings.CutPrefix(e.Name(), "agent-")
		id, meta := strings.CutSuffix(id, ".meta.json")
		if !ok || !meta || id == "" {
			continue
		}
		i, err := readMeta(filepath.Join(dir, e.Name()))
		if err != nil {
			faults = append(faults, fmt.Errorf("claude: %s: %w", e.Name(), err))
			continue
		}
		i.TaskID = id
		out = append(out, i)
	}
	slices.SortFunc(out, func(a, b indexed) int { return strings.Compare(a.TaskID, b.TaskID) })
	return out, errors.Join(faults...)
}

func readMeta(path string) (indexed, error) {
	var i indexed
	file, err := os.Open(path)
	if err != nil {
		return i, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxMeta))
	if err != nil {
		return i, err
	}
	return i, json.Unmarshal(raw, &i)
}

// index is the index of a session's conversation.
func (a *Adapter) index(p provider.OpenParams, session string) ([]indexed, error) {
	if session == "" || strings.ContainsAny(session, `./\*?[`) {
		return nil, fmt.Errorf("claude: %q is no session id", session)
	}
	// The directory is named after the working directory, in a way that is the binary's own
	// affair and has changed before; the session id is unique without it.
	found, err := filepath.Glob(filepath.Join(globQuote(configDir(a.environ(p.Env))), "projects", "*", session, "subagents"))
	if err != nil {
		return nil, fmt.Errorf("claude: index: %w", err)
	}
	var out []indexed
	var faults []error
	for _, dir := range found {
		children, err := readIndex(dir)
		out, faults = append(out, children...), append(faults, err)
	}
	return out, errors.Join(faults...)
}

// configDir is where the binary keeps its files.
func configDir(env []string) string {
	var home, config string
	for _, kv := range env {
		switch key, value, _ := strings.Cut(kv, "="); key {
		case "HOME":
			home = value
		case "CLAUDE_CONFIG_DIR":
			config = value
		}
	}
	if config != "" {
		return config
	}
	return filepath.Join(home, ".claude")
}

// globQuote keeps the letters of a path from being taken for a pattern.
func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
