package codex

import (
	"cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider/show"
	"github.com/turnkeeper/turnkeeper/server/provider/wire"
)

// What a child is called. Its task says most to a person; the second multi-agent version
// hides that and gives the agent's path instead; the nickname that Codex draws is the last
// resort. The nickname is also how agents speak of each other, so it is asked for once and
// shown beside the title.

// titleRank orders titles by how much they say.
type titleRank uint8

const (
	untitled titleRank = iota
	titleNickname
	titlePath
	titlePrompt
)

// naming is what became known of a child, from its spawn edge or from thread/read.
type naming struct {
	prompt, path, nickname, role, model string
}

func (n naming) title() (string, titleRank) {
	switch {
	case show.Title(n.prompt) != "":
		return show.Title(n.prompt), titlePrompt
	case n.path != "":
		return show.Bounded(pathName(n.path), show.TitleLength), titlePath
	case n.nickname != "":
		return show.Bounded(n.nickname, show.TitleLength), titleNickname
	}
	return "", untitled
}

// agentType is nickname and role as Codex itself writes them: "Bohr [explorer]".
func (n naming) agentType() string {
	if n.nickname != "" && n.role != "" {
		return n.nickname + " [" + n.role + "]"
	}
	return cmp.Or(n.nickname, n.role)
}

// naming is what a thread says of its own names.
func (t threadInfo) naming() naming {
	spawn := t.spawn().SubAgent.ThreadSpawn
	return naming{
		prompt: t.Preview, path: spawn.AgentPath, model: t.Model,
		nickname: cmp.Or(t.AgentNickname, spawn.AgentNickname), role: cmp.Or(t.AgentRole, spawn.AgentRole),
	}
}

// rememberedRank is how much the title says that storage has of an old child.
func rememberedRank(s agent.Session) titleRank {
	switch {
	case s.Prompt != "":
		return titlePrompt
	case s.Handles.AgentPath != "":
		return titlePath
	case s.Title != "":
		return titleNickname
	}
	return untitled
}

// learn reports what is new of a child's names; a title gives way to a better one alone.
func (r *runtime) learn(t *thread, n naming) {
	title, rank := n.title()
	if rank <= t.titled {
		title = ""
	}
	d := agent.SessionDescribed{
		Session: t.session, Title: title, Prompt: n.prompt, Model: n.model, AgentType: n.agentType(),
		Handles: agent.Handles{AgentPath: n.path},
	}
	if d == (agent.SessionDescribed{Session: t.session}) {
		return
	}
	t.titled = max(t.titled, rank)
	r.Apply(d)
}

// lookUp asks once what Codex calls a child. Nothing waits for the answer, and without
// one the child keeps the names it has.
func (r *runtime) lookUp(t *thread) {
	if t.lookedUp {
		return
	}
	t.lookedUp = true
	r.send(methodThreadRead, threadReadParams{ThreadID: t.id}, requestBound, func(a wire.Answer) {
		var res threadResult
		if a.Decode(&res) == nil && t.owned() {
			r.learn(t, res.Thread.naming())
		}
	})
}
