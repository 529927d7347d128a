package claude

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
)

// maxReasonText bounds the text of an error, in bytes.
const maxReasonText = 1000

// errorOf is why a provider turn failed, with the class of the error in front.
func errorOf(f *resultFrame) *agent.Error {
	text := f.Result
	if text == "" {
		var kept []string
		for _, e := range f.Errors {
			if !strings.HasPrefix(e, "[ede_diagnostic]") { // for its makers
				kept = append(kept, e)
			}
		}
		text = strings.Join(kept, "; ")
	}
	class := f.APIErrorType
	if class == "" && f.Subtype != resultSuccess {
		class = strings.ReplaceAll(f.Subtype, "_", " ") // error_max_turns …
	}
	return namedError(class, f.APIErrorStatus, text)
}

// apiError is the error that an assistant line tells instead of saying anything, nil if it
// tells none. Such a line can come with a result that looks like a success
// (anthropics/claude-code#68816), and then it is the outcome.
func (f *messageFrame) apiError() *agent.Error {
	if !f.assistant() || f.Error == "" && !f.IsAPIError {
		return nil
	}
	class := f.Error
	if class == "" || class == "unknown" {
		class = cmp.Or(f.APIErrorType, class)
	}
	return namedError(class, f.APIErrorStatus, textOf(f.Message.Content))
}

// namedError words an error: "rate_limit (HTTP 429): …".
func namedError(class string, status int, text string) *agent.Error {
	text = strings.TrimSpace(strings.TrimPrefix(text, "API Error: "))
	text, resets := resetOf(text)
	var b strings.Builder
	b.WriteString(class)
	if code := strconv.Itoa(status); status > 0 && !strings.HasPrefix(text, code) {
		fmt.Fprintf(&b, " (HTTP %s)", code)
	}
	if b.Len() > 0 && text != "" {
		b.WriteString(": ")
	}
	b.WriteString(show.Bounded(text, maxReasonText))
	if !resets.IsZero() {
		b.WriteString(" " + liftedAt(resets))
	}
	return agent.Errorf(agent.CodeProviderRefused, "%s", cmp.Or(strings.TrimSpace(b.String()), "Claude gave no reason"))
}

// resetOf takes the time out of "usage limit reached|1796072965", seconds since 1970.
func resetOf(text string) (string, time.Time) {
	before, after, ok := strings.Cut(text, "|")
	n, err := strconv.ParseInt(strings.TrimSpace(after), 10, 64)
	if !ok || err != nil || n < 1e9 || n > 1e11 {
		return text, time.Time{}
	}
	return strings.TrimSpace(before) + ".", time.Unix(n, 0)
}

func liftedAt(t time.Time) string {
	return "It is lifted at " + t.UTC().Format("2006-01-02 15:04 UTC") + "."
}

// limitText says that a limit of the account is reached, "" if none is. Whatever fails or
// waits then is no fault of the agents.
func limitText(i limitInfo) string {
	if i.Status != "rejected" || i.Overage == "allowed" || i.Overage == "allowed_warning" {
		return ""
	}
	text := "Claude: " + strings.TrimSpace(strings.ReplaceAll(i.Type, "_", " ")+" limit reached") + "."
	if i.ResetsAt > 0 && i.ResetsAt < 1e11 {
		text += " " + liftedAt(time.Unix(int64(i.ResetsAt), 0))
	}
	return text
}

// retryText says that the model is asked again; a turn may stand still for long then.
func retryText(attempt, most, status int, class string) string {
	text := "Claude tries again"
	if attempt > 0 && most > 0 {
		text += fmt.Sprintf(" (%d of %d)", attempt, most)
	}
	var why []string
	if class != "" && class != "unknown" {
		why = append(why, strings.ReplaceAll(class, "_", " "))
	}
	if status > 0 {
		why = append(why, fmt.Sprintf("HTTP %d", status))
	}
	if len(why) > 0 {
		text += ": " + strings.Join(why, ", ")
	}
	return text + "."
}

// remarkText is what a line beside the work says to people, "" if it is of no interest to
// them.
func remarkText(f frame) string {
	text := ""
	switch f := f.(type) {
	case *noteFrame:
		text = f.text()
	case *progressFrame:
		if r := f.Retry; r != nil {
			text = retryText(r.Attempt, r.MaxRetries, r.ErrorStatus, r.ErrorCategory)
		}
	case *deniedFrame: // the result of the call tells the model
		text = toolName(f.ToolName) + " was not allowed: " + cmp.Or(f.Reason, f.Message, "no reason given")
	case *compactFrame:
		text = f.text()
	case *statusFrame:
		if f.CompactResult == "failed" {
			text = "The context could not be compacted: " + cmp.Or(f.CompactError, "no reason given")
		}
	case *limitFrame:
		text = limitText(f.Info)
	}
	return show.Bounded(text, maxReasonText)
}

func (f *noteFrame) text() string {
	switch f.Subtype {
	case subRetry:
		return retryText(f.Attempt, f.MaxRetries, f.ErrorStatus, f.Error)
	case subLocalOutput:
		return strings.TrimSpace(f.Content)
	case subInformation:
		if f.Level == "warning" || f.Level == "notice" {
			return strings.TrimSpace(f.Content)
		}
	}
	return "" // a notification is meant for the program's own screen
}

func (f *compactFrame) text() string {
	text := "The context was compacted"
	if f.Metadata.Trigger == "manual" {
		text += " as asked"
	}
	switch m := f.Metadata; {
	case m.PreTokens > 0 && m.PostTokens > 0:
		text += fmt.Sprintf(", from %d to %d tokens", m.PreTokens, m.PostTokens)
	case m.PreTokens > 0:
		text += fmt.Sprintf(" at %d tokens", m.PreTokens)
	}
	return text + "."
}

// usage is what one message or turn took. Input counts what came from the cache, too.
func (u *apiUsage) usage() agent.Usage {
	if u == nil {
		return agent.Usage{}
	}
	return agent.Usage{
		InputTokens: u.Input + u.CacheCreation + u.CacheRead, CachedInputTokens: u.CacheRead,
		OutputTokens: u.Output, ReasoningTokens: u.Details.Thinking,
	}
}

// weight is what the tokens cost, in those of uncached input. The ratios are those of every
// model that the binary's price list has.
func (u *apiUsage) weight() float64 {
	if u == nil {
		return 0
	}
	return float64(u.Input) + 5*float64(u.Output) + 1.25*float64(u.CacheCreation) + 0.1*float64(u.CacheRead)
}

func (m modelUsage) api() *apiUsage {
	u := &apiUsage{Input: m.Input, Output: m.Output, CacheCreation: m.CacheCreation, CacheRead: m.CacheRead}
	u.Details.Thinking = m.Thinking
	return u
}

// sum adds up what models took.
func sum(models map[string]modelUsage) agent.Usage {
	var out agent.Usage
	var cost float64
	for _, m := range models {
		out = out.Add(m.api().usage())
		cost += m.CostUSD
	}
	out.CostMicros = micros(cost)
	return out
}

func micros(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// split is what the root agent itself took for a turn, and what all its children took since
// the result before. Together they are exactly what the binary counted. Which part of the
// money is whose follows from the tokens; model is the root's.
func (f *resultFrame) split(model string) (own, children agent.Usage) {
	total := sum(f.SinceLast)
	own = f.Usage.usage()
	own = agent.Usage{
		InputTokens: min(own.InputTokens, total.InputTokens), CachedInputTokens: min(own.CachedInputTokens, total.CachedInputTokens),
		OutputTokens: min(own.OutputTokens, total.OutputTokens), ReasoningTokens: min(own.ReasoningTokens, total.ReasoningTokens),
	}
	m, known := f.SinceLast[model]
	price := m.CostUSD / m.api().weight()
	if !known || m.api().weight() == 0 {
		var cost, weight float64
		for _, m := range f.SinceLast {
			cost, weight = cost+m.CostUSD, weight+m.api().weight()
		}
		price = cost / max(weight, 1)
	}
	own.CostMicros = min(micros(price*f.Usage.weight()), total.CostMicros)
	return own, minus(total, own)
}

func minus(a, b agent.Usage) agent.Usage {
	return a.Add(agent.Usage{
		InputTokens: -b.InputTokens, CachedInputTokens: -b.CachedInputTokens, OutputTokens: -b.OutputTokens,
		ReasoningTokens: -b.ReasoningTokens, CostMicros: -b.CostMicros,
	})
}

// apportion divides usage by weights. The parts add up to the whole; without any weight the
// first takes all.
func apportion(u agent.Usage, weights []float64) []agent.Usage {
	out := make([]agent.Usage, len(weights))
	var before, all float64
	for _, w := range weights {
		all += max(w, 0)
	}
	given := agent.Usage{}
	for i, w := range weights {
		before += max(w, 0)
		upTo := u
		if all > 0 && i < len(weights)-1 {
			part := func(n int64) int64 { return int64(math.Round(float64(n) * before / all)) }
			upTo = agent.Usage{
				InputTokens: part(u.InputTokens), CachedInputTokens: part(u.CachedInputTokens), OutputTokens: part(u.OutputTokens),
				ReasoningTokens: part(u.ReasoningTokens), CostMicros: part(u.CostMicros),
			}
		}
		out[i], given = minus(upTo, given), upTo
	}
	return out
}
