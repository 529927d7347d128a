package claude

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A message that was sent before a stop, and reaches the adapter after it, is not written:
// the program would read it after the interrupt that was to withdraw it.
func TestGuidanceThatAStopHasOvertakenIsNotWritten(t *testing.T) {
	play(t, func(s *scene) {
		s.background("a")
		in := s.Guidance(s.Root, "Too late.")
		c := s.PrepareCancel(s.in.Turn)
		if err := s.rt.Cancel(s.t.Context(), c, s.Heard); err != nil {
			s.t.Error(err)
		}
		err := s.rt.Guide(s.t.Context(), in)
		synctest.Wait()
		s.check(errors.Is(err, &agent.Error{Code: agent.CodeTurnCanceling}), "guiding a stopped turn: %v", err)
		s.check(s.wrote("Too late.") == 0, "it was written")
		s.check(s.status(in.Message) == agent.MessageUndelivered, "the message is %s", s.status(in.Message))
		s.CompleteCancel(c, s.Evidence())
	})
}

// What the program tells its own model after a compaction is not for a person.
func TestSummaryOfACompactionIsNotShown(t *testing.T) {
	play(t, func(s *scene) {
		s.start(func() {
			s.emit("system/compact_boundary", fields{"compact_metadata": fields{"trigger": "auto", "pre_tokens": 9, "post_tokens": 3}})
			for _, text := range []string{"This session is being continued", "A hook has something to say"} {
				s.emit("user", fields{"isSynthetic": true, "message": fields{"role": "user", "content": text}})
			}
			s.done("[root] done")
		})
		s.check(!s.said("This session is being continued"), "the summary is shown")
		s.check(s.said("The context was compacted, from 9 to 3 tokens."), "the compaction is not")
		s.check(s.said("A hook has something to say"), "another line of the program's own is not")
	})
}
