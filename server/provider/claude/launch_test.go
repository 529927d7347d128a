package claude

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
)

const always = "--output-format stream-json --verbose --input-format stream-json --permission-prompt-tool stdio --include-partial-messages"

func TestCommandLine(t *testing.T) {
	for name, c := range map[string]struct {
		launch launch
		want   string
	}{
		"plain":        {launch{}, ""},
		"new":          {launch{session: "S", model: "opus"}, " --model opus --session-id S"},
		"resume":       {launch{resume: "R", session: "S"}, " --resume R"},
		"fork":         {launch{resume: "R", session: "S", fork: true}, " --resume R --fork-session --session-id S"},
		"fork, any id": {launch{resume: "R", fork: true}, " --resume R --fork-session"},
		"configured":   {launch{mode: modeConfigured}, ""},
		"plan":         {launch{mode: modePlan}, " --permission-mode plan"},
		"bypass":       {launch{mode: modeBypass}, " --permission-mode bypassPermissions --allow-dangerously-skip-permissions"},
		"no settings":  {launch{sources: []string{}}, " --setting-sources="},
		"settings":     {launch{sources: []string{SettingsUser, SettingsLocal}}, " --setting-sources=user,local"},
		"more":         {launch{extra: []string{"--strict-mcp-config"}}, " --strict-mcp-config"},
	} {
		got, err := c.launch.args()
		if err != nil || strings.Join(got, " ") != always+c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	for _, l := range []launch{{mode: "yolo"}, {model: "--dangerously-skip-permissions"}, {resume: "-x"}, {session: "-x"}, {sources: []string{"user", "managed"}}} {
		if got, err := l.args(); !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) {
			t.Errorf("%+v: %v, %v", l, got, err)
		}
	}
	for _, mode := range permissionModes() {
		if _, err := (launch{mode: mode}).args(); err != nil {
			t.Errorf("%s is offered and refused: %v", mode, err)
		}
	}
}

// What the recorded client was started with is what this one uses.
func TestCommandLineOfTheRecordings(t *testing.T) {
	p := provider.OpenParams{}
	p.Root.ID, p.Root.Model = "ses_1", "claude-sonnet-4-5"
	args, err := launchArgs(p, Options{SettingSources: []string{}})
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--output-format", "stream-json", "--verbose", "--input-format", "--permission-prompt-tool", "stdio", "--setting-sources=", "--model", "claude-sonnet-4-5", "--session-id"} {
		if !slices.Contains(args, flag) {
			t.Errorf("%s is missing in %v", flag, args)
		}
	}
	p.Root.ProviderSessionID = "463e791b-0ee5-4360-8d6a-e41b86be9074"
	args, err = launchArgs(p, Options{})
	if at := slices.Index(args, "--resume"); err != nil || at < 0 || args[at+1] != p.Root.ProviderSessionID || slices.Contains(args, "--session-id") {
		t.Errorf("%v, %v", args, err)
	}
}

// What a session that this daemon was started from has set must not reach the binary, and
// what this client needs must, whatever the user's environment says.
func TestEnvironment(t *testing.T) {
	for key, value := range map[string]string{
		"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_SSE_PORT": "7", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "0",
		"CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1", "SOME_SECRET": "x", "ANTHROPIC_API_KEY": "key", "CLAUDE_CONFIG_DIR": "/c",
	} {
		t.Setenv(key, value)
	}
	a := New(Options{})
	got := a.environ(nil)
	for _, want := range []string{"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", "CLAUDE_CODE_ENTRYPOINT=turnkeeper", "DISABLE_AUTOUPDATER=1", "ANTHROPIC_API_KEY=key", "CLAUDE_CONFIG_DIR=/c"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing", want)
		}
	}
	for _, kv := range got {
		for _, bad := range []string{"CLAUDECODE=", "CLAUDE_CODE_SSE_PORT=", "SOME_SECRET=", "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS="} {
			if strings.HasPrefix(kv, bad) {
				t.Errorf("%s came through", kv)
			}
		}
	}
	got = a.environ([]string{"A=1", "CLAUDE_CODE_ENTRYPOINT=cli"})
	if want := []string{"A=1", "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS=1", "CLAUDE_CODE_ENTRYPOINT=turnkeeper", "DISABLE_AUTOUPDATER=1"}; !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A choice that Claude does not know is refused before there is a session.
func TestChoices(t *testing.T) {
	a := provider.Chooser(New(Options{}))
	for _, mode := range append(permissionModes(), "") {
		if err := a.CheckChoice(provider.Choice{PermissionMode: mode}); err != nil {
			t.Errorf("%q: %v", mode, err)
		}
	}
	for _, c := range []provider.Choice{{PermissionMode: "yolo"}, {Scenario: "plain"}} {
		if err := a.CheckChoice(c); !errors.Is(err, &agent.Error{Code: agent.CodeInvalid}) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
