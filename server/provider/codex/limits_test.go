package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func limitsNote(reached string) string {
	return note(noteLimits, `{"rateLimits":{"limitId":"codex","rateLimitReachedType":`+reached+
		`,"primary":{"usedPercent":100,"resetsAt":1796083200,"windowDurationMins":300},"secondary":{"usedPercent":40,"resetsAt":1796169600}}}`)
}

// A limit that is reached is said once, at the root turn that runs; it ends nothing.
func TestRateLimitIsSaidOnceAndEndsNothing(t *testing.T) {
	s := withChild(t)
	s.send(limitsNote(`null`), limitsNote(`"rate_limit_reached"`), limitsNote(`"rate_limit_reached"`))
	v := s.View()
	notices := 0
	for _, m := range v.Messages {
		if m.Kind == agent.MessageNotice {
			notices++
			if m.SessionID != s.Root || m.Content != "Codex: rate limit reached. It is lifted at 2026-12-01 00:00 UTC." {
				t.Errorf("notice %+v", m)
			}
		}
	}
	if notices != 1 || v.RootTurn().Phase != agent.PhaseRunning {
		t.Errorf("%d notices, the root is %s", notices, v.RootTurn().Phase)
	}
	s.send(limitsNote(`null`), limitsNote(`"rate_limit_reached"`)) // lifted, and reached again
	if n := strings.Count(fmt.Sprint(say(s.View(), s.Root)), "rate limit reached"); n != 2 {
		t.Errorf("said %d times", n)
	}
}

// A call that is tried again is a notice at the turn that waits, with Codex's own word for
// the fault; the turn goes on and its end decides.
func TestRetryIsANoticeAndNoFailure(t *testing.T) {
	s := withChild(t)
	s.send(note("error", `{"threadId":"T1","turnId":"c1","willRetry":true,"error":{"message":"slow down","codexErrorInfo":"rateLimitExceeded"}}`))
	v := s.View()
	c := child(t, v, "T1")
	if got := say(v, c.ID); got[len(got)-1] != "system notice completed: Codex tries again: Too many requests to the model's server: slow down" {
		t.Errorf("the child says %q", got)
	}
	if got := turnsOf(v, c.ID)[0]; got.Phase != agent.PhaseRunning {
		t.Errorf("the child is %s", got.Phase)
	}
	s.send(completed("T1", "c1", "r1", "completed"), completed(rootThread, "r1", "r1", "completed"))
	v = s.View()
	for _, u := range v.Turns {
		if u.Outcome != agent.OutcomeCompleted || u.Error != nil {
			t.Errorf("turn %s ended %s, %v", u.ID, u.Outcome, u.Error)
		}
	}
}

// The kind is said in words, the text is what the model's server said.
func TestErrorsAsPeopleSeeThem(t *testing.T) {
	type shown struct{ class, message, want string }
	cases := []shown{
		{`{"responseStreamDisconnected":{"httpStatusCode":502}}`, "gone", "The connection to the model's server broke off (HTTP 502): gone"},
		{`{"httpConnectionFailed":{"httpStatusCode":null}}`, "gone", "The model's server could not be reached: gone"},
		{`{"activeTurnNotSteerable":{"turnKind":"review"}}`, "no", "The running turn takes no message: no"},
		{`"usageLimitExceeded"`, "", "The account's usage limit is reached"},
		{`"somethingNewHappened"`, "odd", "Something new happened: odd"},
		{`"other"`, `{"error":{"message":"bad request","type":"invalid_request_error"}}`, "bad request"},
		{`null`, "odd", "odd"},
		{`"other"`, `{"detail":1}`, `{"detail":1}`},
	}
	for class, words := range reasons {
		cases = append(cases, shown{`"` + class + `"`, "so it said", words + ": so it said"})
	}
	for _, c := range cases {
		e := turnError{Message: c.message, CodexErrorInfo: []byte(c.class)}
		if got := e.asError(); got.Message != c.want || got.Code != agent.CodeProviderRefused {
			t.Errorf("%s %q is shown as %q", c.class, c.message, got.Message)
		}
	}
}
