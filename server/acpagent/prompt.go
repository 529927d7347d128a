package acpagent

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/acp"
	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// prompt is one message of the editor whose turn has not ended.
type prompt struct{ r *request }

// keptEndings is how many ends of root turns are remembered for prompts whose answer from
// the daemon came after them.
const keptEndings = 32

// endings are the ends of root turns that were told.
type endings []agent.Turn

func (e endings) of(turn agent.TurnID) (agent.Turn, bool) {
	for _, t := range e {
		if t.ID == turn {
			return t, true
		}
	}
	return agent.Turn{}, false
}

// prompt sends a message. What the editor sends after it waits until the daemon has it.
func (c *conn) prompt(r *request, f wire.Frame) {
	p, err := decode[acp.PromptRequest](f)
	text := wordsOf(p.Prompt)
	s := c.session(p.SessionID)
	switch {
	case err != nil:
	case s == nil:
		r.run(func(ctx context.Context) (any, error) {
			if err := c.refuseChild(ctx, f); err != nil {
				return nil, err
			}
			return nil, errNoSession(p.SessionID)
		})
		return
	case strings.TrimSpace(text) == "":
		err = errParams("the prompt says nothing")
	}
	if err != nil {
		r.run(func(context.Context) (any, error) { return nil, err })
		return
	}
	wait, done := s.turnInLane()
	sentOff := s.beginSending()
	r.onWithdraw = func() { s.stopRoot() } // a prompt that is taken back is a turn that is stopped
	r.run(func(ctx context.Context) (any, error) {
		defer sentOff()
		defer done()
		if err := wait(ctx); err != nil {
			return nil, err
		}
		return s.submit(ctx, r, text)
	})
}

// submit hands a message to the daemon. While a stop is under way the daemon takes none:
// the message waits for its end.
func (s *session) submit(ctx context.Context, r *request, text string) (any, error) {
	ws, id := s.place()
	if ws == "" {
		return nil, errNoSession(id) // it was being set up, and that failed
	}
	key := "acp-" + uuid.NewString()
	bound := time.NewTimer(closeBound)
	defer bound.Stop()
	for {
		changed := s.nextEnd()
		got, err := s.c.api.send(ctx, ws, id, key, text)
		if isCode(err, agent.CodeTurnCanceling) {
			select {
			case <-changed:
				continue
			case <-time.After(500 * time.Millisecond): // its end may have been told before we looked
				continue
			case <-bound.C:
				return nil, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, err
		}
		return s.submitted(r, got), nil
	}
}

// submitted answers in version 2, and holds the prompt in version 1 until its turn ends,
// which may have been told already.
func (s *session) submitted(r *request, got sent) any {
	second := s.c.version() == acp.V2
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[got.Message.ID] = true
	if second {
		return acp.PromptResponse{MessageID: string(got.Message.ID)}
	}
	if t, over := s.ended.of(got.Turn.ID); over {
		s.c.work.Go(func() { answerPrompt(r, t) })
		return nil
	}
	s.held[got.Turn.ID] = append(s.held[got.Turn.ID], &prompt{r})
	return nil
}

// conclude answers the prompts of a root turn that has settled. The teller has told
// everything before.
func (s *session) conclude(t agent.Turn) {
	s.mu.Lock()
	held := s.held[t.ID]
	delete(s.held, t.ID)
	s.ended = append(s.ended, t)
	if len(s.ended) > keptEndings {
		s.ended = s.ended[1:]
	}
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	for _, p := range held {
		answerPrompt(p.r, t)
	}
}

// nextEnd is closed when another root turn has ended.
func (s *session) nextEnd() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// answerPrompt answers version 1: an end that is neither completion nor a stop somebody
// asked for is an error, for a stop reason would say something that is not so.
func answerPrompt(r *request, t agent.Turn) {
	switch t.Outcome {
	case agent.OutcomeCompleted:
		r.reply(acp.PromptResponse{StopReason: acp.StopEndTurn, Usage: tokens(t.Usage)})
	case agent.OutcomeCanceled:
		r.reply(acp.PromptResponse{StopReason: acp.StopCancelled, Usage: tokens(t.Usage)})
	case agent.OutcomeFailed, agent.OutcomeInterrupted:
		e := failure(t)
		code := agent.CodeProviderGone
		if t.Error != nil {
			code = t.Error.Code
		}
		r.fail(&agent.Error{Code: code, Message: e.Message})
	}
}

// failHeld answers every held prompt with an error.
func (s *session) failHeld(err error) {
	s.mu.Lock()
	var all []*prompt
	for turn, held := range s.held {
		all = append(all, held...)
		delete(s.held, turn)
	}
	s.mu.Unlock()
	for _, p := range all {
		p.r.fail(err)
	}
}

// beginSending counts a prompt as on its way until what it returns is called.
func (s *session) beginSending() (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sending == 0 {
		s.quiet = make(chan struct{})
	}
	s.sending++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.sending--; s.sending == 0 {
			close(s.quiet)
			s.quiet = nil
		}
	}
}

// sendings is closed when no prompt is on its way, nil if none is.
func (s *session) sendings() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.quiet
}

// awaitSending lets the teller meet a person's message only when it is known whether it is
// this editor's own, which needs no telling. The daemon answers within its bound.
func (s *session) awaitSending(ctx context.Context) {
	quiet := s.sendings()
	if quiet == nil {
		return
	}
	select {
	case <-quiet:
	case <-ctx.Done():
	}
}

func (s *session) isOwn(m agent.MessageID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.own[m]
}

// wordsOf is a prompt as the daemon takes it: text. A file that came along is quoted under
// its address.
func wordsOf(blocks []acp.ContentBlock) string {
	var b strings.Builder
	for _, block := range blocks {
		if block.Type == acp.ContentResource && block.Resource != nil && block.Resource.Text != "" {
			b.WriteString("\n\n" + block.Resource.URI + ":\n```\n" + strings.TrimSuffix(block.Resource.Text, "\n") + "\n```\n")
			continue
		}
		b.WriteString(block.Words())
	}
	return b.String()
}
