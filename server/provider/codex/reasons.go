package codex

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// reasons says in words what Codex calls the kinds of error (CodexErrorInfo of app-server
// 0.171.0). "other" says nothing, and has none.
var reasons = map[string]string{
	"activeTurnNotSteerable":         "The running turn takes no message",
	"badRequest":                     "The model's server refused the request",
	"bioPolicy":                      "The model's server refused the request under its policy on biology",
	"contextWindowExceeded":          "The conversation is too long for the model",
	"cyberPolicy":                    "The model's server refused the request under its policy on security",
	"flexUnavailable":                "The model's server has no capacity for flex processing",
	"httpConnectionFailed":           "The model's server could not be reached",
	"inferenceHookDenied":            "A hook refused the request to the model",
	"internalServerError":            "The model's server failed",
	"misalignmentPolicyViolation":    "The model's server refused the request under its policy on misalignment",
	"modelNotFound":                  "The model's server does not know the model",
	"policyCapacityUnavailable":      "The model's server has no capacity to check the request against its policies",
	"rateLimitExceeded":              "Too many requests to the model's server",
	"responseStreamConnectionFailed": "The connection to the model's server could not be made",
	"responseStreamDisconnected":     "The connection to the model's server broke off",
	"responseTooManyFailedAttempts":  "The model's server failed too often",
	"sandboxError":                   "The sandbox failed",
	"serverOverloaded":               "The model's server is overloaded",
	"sessionBudgetExceeded":          "The session's budget is used up",
	"threadRollbackFailed":           "The conversation could not be taken back",
	"tooManyDenials":                 "Too many requests of the agent were denied",
	"unauthorized":                   "The model's server did not accept the credentials",
	"usageLimitExceeded":             "The account's usage limit is reached",
}

// reasonOf is a kind of error in words, "" for one that says nothing. A kind that a later
// version adds is taken apart into its own.
func reasonOf(class string) string {
	if words, known := reasons[class]; known || class == "" || class == "other" {
		return words
	}
	var b strings.Builder
	for i, r := range class {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		if i == 0 {
			b.WriteRune(unicode.ToUpper(r))
		} else {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// asError is the error as people see it: the kind in words, the status of the model's
// server, and what that said.
func (e *turnError) asError() *agent.Error {
	class, status := e.class()
	words, text := reasonOf(class), e.text()
	if words != "" && status > 0 {
		words += fmt.Sprintf(" (HTTP %d)", status)
	}
	switch {
	case words == "":
		words = text
	case text != "":
		words += ": " + text
	}
	return agent.Errorf(agent.CodeProviderRefused, "%s", words)
}
