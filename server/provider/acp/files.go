package acp

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// maxFile bounds a file that is read for an agent.
const maxFile = 16 << 20

// served is what a file or a terminal gives: a result, or an error for the agent.
type served func() (any, *wire.Error)

// serve answers what an agent asks of its client's files and terminals. It is done beside
// the reading, because it takes time; only a session of this agent is served.
func (r *runtime) serve(f wire.Frame) {
	var of acp.SessionRef
	if decode(f.Params, &of) != nil || r.byID[of.SessionID] == nil {
		r.Diagnose(provider.Refused, f.Method, of.SessionID)
		r.refuse(f.ID, wire.CodeInvalidParams, "no such session here")
		return
	}
	work := r.service(f)
	r.served.Add(1)
	r.Later(func() {
		provider.Go(r.Sink, func() {
			defer r.served.Done()
			result, fault := work()
			if fault != nil {
				r.Unwritten(r.peer.Refuse(f.ID, fault))
				return
			}
			r.Unwritten(r.peer.Reply(f.ID, result))
		})
	})
}

// service is the work of one request. Called with the lock held; the work runs without.
func (r *runtime) service(f wire.Frame) served {
	cwd := r.params.Root.Cwd
	switch f.Method {
	case acp.MethodReadTextFile:
		var q acp.ReadTextFileRequest
		return decoded(f, &q, func() (any, error) { return readFile(cwd, &q) })
	case acp.MethodWriteTextFile:
		var q acp.WriteTextFileRequest
		return decoded(f, &q, func() (any, error) { return acp.Empty{}, writeFile(cwd, &q) })
	case acp.MethodCreateTerminal:
		var q acp.CreateTerminalRequest
		return decoded(f, &q, func() (any, error) { return r.createTerminal(&q) })
	}
	var q acp.TerminalRef
	return decoded(f, &q, func() (any, error) { return r.terminal(f.Method, &q) })
}

// decoded reads the parameters of a request before its work.
func decoded(f wire.Frame, q any, work func() (any, error)) served {
	err := decode(f.Params, q)
	return func() (any, *wire.Error) {
		if err != nil {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the parameters cannot be read"}
		}
		result, err := work()
		if err == nil {
			return result, nil
		}
		code := wire.CodeInternalError
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoTerminal):
			code = acp.CodeResourceNotFound
		case errors.Is(err, errDenied):
			code = wire.CodeInvalidParams
		}
		return nil, &wire.Error{Code: code, Message: err.Error()}
	}
}

// errDenied: the path leads out of the workspace.
var errDenied = errors.New("the path is outside of the workspace")

// within opens the workspace, and gives the path of a file in it. Nothing leads out of it,
// links included: that is os.Root's to see.
func within(cwd, path string) (*os.Root, string, error) {
	if cwd == "" || !filepath.IsAbs(path) {
		return nil, "", errDenied
	}
	rel, err := filepath.Rel(cwd, filepath.Clean(path))
	if err != nil || !filepath.IsLocal(rel) {
		if real, e := filepath.EvalSymlinks(cwd); e == nil && real != cwd { // the agent may know it by its real name
			if rel, err = filepath.Rel(real, filepath.Clean(path)); err == nil && filepath.IsLocal(rel) {
				root, err := os.OpenRoot(real)
				return root, rel, err
			}
		}
		return nil, "", errDenied
	}
	root, err := os.OpenRoot(cwd)
	return root, rel, err
}

// readFile reads a file of the workspace, or some lines of it.
func readFile(cwd string, q *acp.ReadTextFileRequest) (any, error) {
	root, path, err := within(cwd, q.Path)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	info, err := root.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	case info.Size() > maxFile:
		return nil, errors.New("the file is too large to be read here")
	}
	raw, err := root.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return acp.ReadTextFileResponse{Content: linesOf(string(raw), q.Line, q.Limit)}, nil
}

// linesOf is some lines of a text, from the one given, the first being 1.
func linesOf(text string, from, limit *int) string {
	if from == nil && limit == nil {
		return text
	}
	lines := strings.SplitAfter(text, "\n")
	first := 0
	if from != nil {
		first = min(max(*from-1, 0), len(lines))
	}
	last := len(lines)
	if limit != nil {
		last = min(first+max(*limit, 0), len(lines))
	}
	return strings.Join(lines[first:last], "")
}

// writeFile writes a file of the workspace, and makes the directories that it needs.
func writeFile(cwd string, q *acp.WriteTextFileRequest) error {
	root, path, err := within(cwd, q.Path)
	if err != nil {
		return err
	}
	defer root.Close()
	if dir := filepath.Dir(path); dir != "." {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return root.WriteFile(path, []byte(q.Content), 0o644)
}
