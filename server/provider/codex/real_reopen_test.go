//go:build providers

package codex_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	. "github.com/turnkeeper/turnkeeper/server/provider/codex/codextest"
	. "github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// The real server keeps nothing of a thread that never had a turn, whether it was ended or
// killed; and a person may have removed what it kept.
func TestRealConversationThatIsNotKeptOpensAgain(t *testing.T) {
	r := startReal(t, Script{"root": {{Say("First.")}, {Say("Second.")}}}, Options{})
	first := r.View().Root().ProviderSessionID
	killServer(t, r.Place.Home)
	<-r.Runtime.Done()
	for range 2 {
		r.Close()
		r.Reopened()
		r.Open()
	}
	if again := r.View().Root().ProviderSessionID; again == "" || again == first {
		t.Errorf("it is conversation %q, was %q", again, first)
	}
	r.Say("Say hello")
	v := r.WantRoot(agent.OutcomeCompleted)
	kept := v.Root().ProviderSessionID
	for _, m := range v.Messages {
		if m.Kind == agent.MessageNotice {
			t.Errorf("nothing was lost, and it says %q", m.Content)
		}
	}

	r.Close()
	r.Reopened()
	r.Open()
	if got := r.View().Root().ProviderSessionID; got != kept {
		t.Errorf("a conversation that is kept became %q, was %q", got, kept)
	}
	r.Close()
	rollouts, err := filepath.Glob(filepath.Join(r.Place.Home, ".codex", "sessions", "*", "*", "*", "*"+kept+"*"))
	if err != nil || len(rollouts) != 1 {
		t.Fatalf("rollouts of %s: %v, %v", kept, rollouts, err)
	}
	if err := os.Remove(rollouts[0]); err != nil {
		t.Fatal(err)
	}
	r.Reopened()
	r.Open()
	notices := 0
	for _, m := range r.View().Messages {
		if m.Kind == agent.MessageNotice {
			notices++
		}
	}
	if got := r.View().Root().ProviderSessionID; got == kept || notices != 1 {
		t.Errorf("it is conversation %q with %d notices", got, notices)
	}
	r.Say("And again")
	r.WantRoot(agent.OutcomeCompleted)
}
