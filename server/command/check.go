package command

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Bounds of what people may send.
const (
	maxText = 1 << 20 // bytes of a message or an answer
	maxWord = 200     // bytes of a provider, model, mode or scenario
)

func checkMessage(m agent.NewMessage) error {
	switch {
	case strings.TrimSpace(m.Text) == "":
		return agent.Errorf(agent.CodeInvalid, "the message is empty")
	case len(m.Text) > maxText:
		return agent.Errorf(agent.CodeInvalid, "the message has %d bytes; at most %d are taken", len(m.Text), maxText)
	case m.ClientMessageID != "" && !agent.ValidClientID(m.ClientMessageID):
		return agent.Errorf(agent.CodeInvalid, "clientMessageId must be 1 to 200 visible ASCII characters")
	}
	return nil
}

// plain is a new session in the form that it is stored and compared in, with what follows
// from its workspace filled in.
func plain(n agent.NewSession, ws agent.Workspace) agent.NewSession {
	n.Title = strings.TrimSpace(n.Title)
	if n.Cwd = cmp.Or(n.Cwd, ws.Path); filepath.IsAbs(n.Cwd) {
		n.Cwd = filepath.Clean(n.Cwd)
	}
	return n
}

// checkSession checks a new session in its plain form.
func checkSession(n agent.NewSession, ws agent.Workspace) error {
	if n.Key != "" && !agent.ValidClientID(n.Key) {
		return agent.Errorf(agent.CodeInvalid, "Idempotency-Key must be 1 to 200 visible ASCII characters")
	}
	if n.Provider == "" {
		return agent.Errorf(agent.CodeInvalid, "a session needs a provider")
	}
	for _, w := range []struct{ name, value string }{
		{"provider", n.Provider}, {"model", n.Model}, {"permissionMode", n.PermissionMode}, {"scenario", n.Scenario},
	} {
		if !isWord(w.value) {
			return notAWord(w.name)
		}
	}
	if _, err := title(n.Title); err != nil {
		return err
	}
	if n.Cwd != ws.Path {
		if _, err := directory(n.Cwd); err != nil {
			return err
		}
	}
	if n.Message != nil {
		return checkMessage(*n.Message)
	}
	return nil
}

func isWord(s string) bool { return len(s) <= maxWord && strings.IndexFunc(s, unprintable) < 0 }

func notAWord(name string) error {
	return agent.Errorf(agent.CodeInvalid, "%s is not a word of at most %d bytes", name, maxWord)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// title checks a name for people: one line, no control characters.
func title(s string) (string, error) {
	s = strings.TrimSpace(s)
	if utf8.RuneCountInString(s) > agent.MaxTitle || strings.IndexFunc(s, unprintable) >= 0 {
		return "", agent.Errorf(agent.CodeInvalid, "a title is one line of at most %d characters", agent.MaxTitle)
	}
	return s, nil
}

func workspaceName(name, path string) (string, error) {
	name, err := title(name)
	return cmp.Or(name, filepath.Base(path)), err
}

// directory checks that path is a directory of this machine, and cleans it so that the
// same place always reads the same.
func directory(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", agent.Errorf(agent.CodeInvalid, "%q is not an absolute path", path)
	}
	path = filepath.Clean(path)
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", agent.Errorf(agent.CodeInvalid, "%q is not a directory on the daemon's machine", path)
	}
	return path, nil
}

func checkResponse(r agent.Response) error {
	size := len(r.Text)
	for k, v := range r.Answers {
		size += len(k) + len(v)
	}
	if size > maxText {
		return agent.Errorf(agent.CodeInvalid, "the answer has %d bytes; at most %d are taken", size, maxText)
	}
	switch r.Action {
	case "", "accept", "decline", "cancel":
		return nil
	}
	return agent.Errorf(agent.CodeInvalid, "action is accept, decline or cancel")
}
