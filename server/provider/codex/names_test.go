package codex

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const namedThread = `{"thread":{"id":"T1","parentThreadId":"T0","preview":%q,"agentNickname":"Bohr","agentRole":%s,"model":"m-small",` +
	`"source":{"subAgent":{"thread_spawn":{"parent_thread_id":"T0","agent_path":%s}}}}}`

// A child's title is its task, else its path, else its nickname; nickname and role stand
// beside it. They are asked for once, when its first turn begins, and nothing waits.
func TestNamesOfAChild(t *testing.T) {
	for _, c := range []struct {
		name             string
		edge             []string
		read             string
		title, agentType string
		prompt, path     string
	}{
		{"task known", spawnV1(rootThread, "r1", "call_a", "T1"), fmt.Sprintf(namedThread, "do call_a", "null", "null"), "do call_a", "Bohr", "do call_a", ""},
		{"path known", spawnV2(rootThread, "r1", "call_a", "T1"), fmt.Sprintf(namedThread, "", `"explorer"`, `"/root/T1"`), "T1", "Bohr [explorer]", "", "/root/T1"},
		{"a better one comes", spawnV2(rootThread, "r1", "call_a", "T1"), fmt.Sprintf(namedThread, "count the files\nof all", "null", `"/root/T1"`), "count the files", "Bohr", "count the files\nof all", "/root/T1"},
		{"no answer", spawnV2(rootThread, "r1", "call_a", "T1"), "", "T1", "", "", "/root/T1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStage(t)
			s.begin("go", "r1")
			s.send(c.edge...)
			s.quiet()
			s.send(started("T1", "c1", "r1"))
			read := s.expect(methodThreadRead)
			if c.read == "" {
				s.fail(read, "thread not loaded: T1")
			} else {
				s.answer(read, c.read)
			}
			s.send(completed("T1", "c1", "r1", "completed"), started("T1", "c2", "r1"))
			if s.srv.peek() != nil {
				t.Error("it is asked for more than once")
			}
			got := child(t, s.View(), "T1")
			if got.Title != c.title || got.AgentType != c.agentType || got.Prompt != c.prompt || got.Handles.AgentPath != c.path {
				t.Errorf("title %q, type %q, prompt %q, path %q", got.Title, got.AgentType, got.Prompt, got.Handles.AgentPath)
			}
			if c.read != "" && got.Model != "m-small" {
				t.Errorf("model %q", got.Model)
			}
		})
	}
}

// A child that was adopted without a word of its names gets them with its edge, and keeps
// its place in the tree.
func TestLateEdgeNamesAnAdoptedChild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		s.begin("go", "r1")
		edge := spawnV1(rootThread, "r1", "call_a", "T1")
		s.send(edge[0], started("T1", "c1", "r1"))
		<-time.After(adoptBound)
		s.fail(s.expect(methodThreadRead), "thread not loaded: T1")
		if c := child(t, s.View(), "T1"); c.Title != "" {
			t.Errorf("title %q", c.Title)
		}
		s.send(edge[1])
		if c := child(t, s.View(), "T1"); c.Title != "do call_a" || c.Prompt != "do call_a" || c.ParentSessionID != s.Root {
			t.Errorf("child %+v", c)
		}
		s.close()
	})
}

// Only a nickname is known: it is the title until something says more.
func TestNicknameIsTheLastResort(t *testing.T) {
	for _, c := range []struct {
		n    naming
		want string
		rank titleRank
	}{
		{naming{nickname: "Bohr"}, "Bohr", titleNickname},
		{naming{nickname: "Bohr", path: "/root/a"}, "a", titlePath},
		{naming{nickname: "Bohr", path: "/root/a", prompt: "\n task \n more"}, "task", titlePrompt},
		{naming{role: "explorer"}, "", untitled},
	} {
		if title, rank := c.n.title(); title != c.want || rank != c.rank {
			t.Errorf("%+v: %q %d", c.n, title, rank)
		}
	}
	if (naming{role: "explorer"}).agentType() != "explorer" {
		t.Error("a role alone is the type")
	}
	for s, want := range map[*agent.Session]titleRank{
		{Prompt: "p", Title: "t"}: titlePrompt, {Handles: agent.Handles{AgentPath: "/root/a"}}: titlePath, {Title: "t"}: titleNickname, {}: untitled,
	} {
		if got := rememberedRank(*s); got != want {
			t.Errorf("%+v: %d", s, got)
		}
	}
}
