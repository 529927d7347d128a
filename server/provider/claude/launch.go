package claude

import (
	"os"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/proc"
)

// Permission modes of a session, by Claude Code's own names. modeConfigured leaves it to
// the user's settings.
const (
	modeConfigured  = "configured"
	modeDefault     = "default"
	modeAcceptEdits = "acceptEdits"
	modePlan        = "plan"
	modeDontAsk     = "dontAsk"
	modeAuto        = "auto"
	modeBypass      = "bypassPermissions"
)

func permissionModes() []string {
	return []string{modeConfigured, modeDefault, modeAcceptEdits, modePlan, modeDontAsk, modeAuto, modeBypass}
}

// CheckChoice implements provider.Chooser.
func (a *Adapter) CheckChoice(c provider.Choice) error {
	if c.Scenario != "" {
		return agent.Errorf(agent.CodeInvalid, "Claude Code plays no scenarios: only the demo does")
	}
	_, err := launch{mode: c.PermissionMode}.args()
	return err
}

// Setting sources: files of settings, hooks and servers that a session reads.
const (
	SettingsUser    = "user"
	SettingsProject = "project"
	SettingsLocal   = "local"
)

// launch says how one process is started.
type launch struct {
	resume  string // the conversation to go on with; "" begins one
	fork    bool   // go on with a copy of it, under the id session
	session string // the id of a new conversation or of a copy, a UUID; "" lets the binary choose
	model   string // "" is the user's own choice
	mode    string // a permission mode; "" is modeConfigured
	// sources are the setting sources to read; nil is the binary's own choice, which is all
	// of them, and an empty list none.
	sources []string
	extra   []string
}

// args is the command line. The first flags make the binary speak lines of JSON and ask
// this client for permissions. Errors: CodeInvalid for a value that the binary does not
// know, or would take for a flag.
func (l launch) args() ([]string, error) {
	args := []string{
		"--output-format", "stream-json", "--verbose", "--input-format", "stream-json",
		"--permission-prompt-tool", "stdio", "--include-partial-messages",
	}
	for _, v := range []string{l.model, l.resume, l.session} {
		if strings.HasPrefix(v, "-") {
			return nil, agent.Errorf(agent.CodeInvalid, "Claude cannot be started with %q: it would be taken for a flag", v)
		}
	}
	if l.model != "" {
		args = append(args, "--model", l.model)
	}
	switch {
	case l.resume != "" && l.fork:
		args = append(args, "--resume", l.resume, "--fork-session")
		if l.session != "" {
			args = append(args, "--session-id", l.session)
		}
	case l.resume != "":
		args = append(args, "--resume", l.resume)
	case l.session != "":
		args = append(args, "--session-id", l.session)
	}
	switch l.mode {
	case "", modeConfigured:
	case modeBypass:
		args = append(args, "--permission-mode", l.mode, "--allow-dangerously-skip-permissions")
	case modeDefault, modeAcceptEdits, modePlan, modeDontAsk, modeAuto:
		args = append(args, "--permission-mode", l.mode)
	default:
		return nil, agent.Errorf(agent.CodeInvalid, "Claude has no permission mode %q; there are: %s", l.mode, strings.Join(permissionModes(), ", "))
	}
	if l.sources != nil {
		for _, s := range l.sources {
			if s != SettingsUser && s != SettingsProject && s != SettingsLocal {
				return nil, agent.Errorf(agent.CodeInvalid, "Claude has no setting source %q: user, project and local are known", s)
			}
		}
		args = append(args, "--setting-sources="+strings.Join(l.sources, ","))
	}
	return append(args, l.extra...), nil
}

// launchArgs is the command line for a root session.
func launchArgs(p provider.OpenParams, o Options) ([]string, error) {
	l := launch{
		resume: p.Root.ProviderSessionID, model: p.Root.Model, mode: p.Root.PermissionMode,
		sources: o.SettingSources, extra: o.Args,
	}
	if l.resume == "" {
		l.session = nativeSession(p.Root.ID)
	}
	return l.args()
}

// EnvAllow names what Claude Code may see besides [proc.BaseAllow]: who pays for the model
// and where it is. Every variable stands by itself, because any CLAUDE* variable changes
// what the binary does, those of a session that this daemon was started from above all.
func EnvAllow() []string {
	return []string{
		"ANTHROPIC_*", "AWS_*", "CLOUD_ML_REGION", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT",
		"CLAUDE_CONFIG_DIR", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
		"CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_SKIP_BEDROCK_AUTH", "CLAUDE_CODE_SKIP_VERTEX_AUTH",
		"CLAUDE_CODE_MAX_OUTPUT_TOKENS", "CLAUDE_CODE_MAX_RETRIES", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
		"DISABLE_TELEMETRY", "MAX_THINKING_TOKENS", "BASH_DEFAULT_TIMEOUT_MS", "BASH_MAX_TIMEOUT_MS", "IS_SANDBOX",
	}
}

// ownEnv is what this client needs, whatever the user's environment says.
func ownEnv() map[string]string {
	return map[string]string{
		"CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS": "1", // idle is the provider's word that all is over
		"CLAUDE_CODE_ENTRYPOINT":                "turnkeeper",
		"DISABLE_AUTOUPDATER":                   "1", // the version that was checked is the one that runs
	}
}

// environ is what the process sees: what the daemon allows (where nobody says, what any tool
// may see and Claude Code's own), and what this client needs.
func (a *Adapter) environ(allowed []string) []string {
	if allowed != nil {
		return proc.Environ([]string{"*"}, allowed, ownEnv())
	}
	return proc.Environ(append(proc.BaseAllow(), EnvAllow()...), os.Environ(), ownEnv())
}
