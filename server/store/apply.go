package store

import (
	"context"
	"fmt"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Apply commits one fact and tells what became of it. A refusal is a verdict, not an
// error, also of a fact that cannot be stored as it is (CodeInvalid). An error means that
// nothing was stored (CodeUnavailable where trying again helps). Applying a fact twice
// equals applying it once.
func (s *Store) Apply(ctx context.Context, f agent.Fact) (agent.Applied, error) {
	var out agent.Applied
	t, err := s.write(ctx, func(t *tx) (err error) {
		out, err = t.apply(f)
		return err
	})
	if unstorable(err) {
		s.opt.Logger.Error("a fact cannot be stored", "fact", fmt.Sprintf("%T", f), "session", f.Owner(), "error", err)
		return refused(agent.CodeInvalid), nil
	}
	if err != nil {
		return agent.Applied{}, fmt.Errorf("apply %T: %w", f, err)
	}
	out.RootSettled = len(t.idle) > 0
	if n := len(t.committed); n > 0 {
		out.Seq = t.committed[n-1].Seq
	}
	return out, nil
}

func refused(code agent.Code) agent.Applied {
	return agent.Applied{Verdict: agent.VerdictRefused, Code: code}
}

// apply resolves the owner, which every fact but a new child has, and hands the fact on.
func (t *tx) apply(f agent.Fact) (agent.Applied, error) {
	if f, ok := f.(agent.ChildStarted); ok {
		return t.startChild(f)
	}
	owner, err := t.session(f.Owner())
	switch {
	case err != nil:
		return agent.Applied{}, err
	case owner == nil:
		return refused(agent.CodeUnknownOwner), nil
	case owner.deleted:
		return refused(agent.CodeSessionDeleted), nil
	}
	switch f := f.(type) {
	case agent.SessionDescribed:
		return t.describe(owner, f)
	case agent.ProviderTurnStarted:
		return t.startProviderTurn(owner, f)
	case agent.ProviderTurnEnded:
		return t.endProviderTurn(owner, f)
	case agent.SessionLost:
		return t.loseSession(owner, f.Err)
	case agent.TurnStarted:
		return t.startTurn(owner, f)
	case agent.MessagePut:
		return t.putMessage(owner, f.Message)
	case agent.TextAppended:
		return t.appendText(owner, f)
	case agent.ProcessSeen:
		return t.seeProcess(owner, f.Process)
	}
	return t.applyToTurn(owner, f)
}

// applyToTurn handles the facts that are about one turn that must be known.
func (t *tx) applyToTurn(owner *ident, f agent.Fact) (agent.Applied, error) {
	var id agent.TurnID
	switch f := f.(type) {
	case agent.TurnSettled:
		id = f.Turn
	case agent.InteractionAsked:
		id = f.Interaction.TurnID
	case agent.InteractionEnded:
		id = f.Turn
	case agent.UsageReported:
		id = f.Turn
	default:
		return agent.Applied{}, fmt.Errorf("unknown fact %T", f)
	}
	r, err := t.turn(owner, id)
	if err != nil {
		return agent.Applied{}, err
	}
	if r == nil {
		return refused(agent.CodeUnknownOwner), nil
	}
	if r.Phase != agent.PhaseSettled {
		t.s.activity.heard(r.PK, owner.root, t.now)
	}
	var out agent.Applied
	switch f := f.(type) {
	case agent.TurnSettled:
		out, err = t.endTurn(owner, r, f)
	case agent.InteractionAsked:
		out, err = t.ask(owner, r, f.Interaction)
	case agent.InteractionEnded:
		out, err = t.endInteraction(owner, r, f)
	case agent.UsageReported:
		out, err = t.reportUsage(owner, r, f.Usage)
	}
	out.Turn = id
	return out, err
}

// describe merges what became known of a session.
func (t *tx) describe(owner *ident, f agent.SessionDescribed) (agent.Applied, error) {
	row := *owner.row
	take := func(mine *string, theirs string) {
		if theirs != "" {
			*mine = theirs
		}
	}
	if row.Titled == 0 { // a person's own title stays
		take(&row.Title, f.Title)
	}
	take(&row.Model, f.Model)
	take(&row.PermissionMode, f.PermissionMode)
	take(&row.AgentType, f.AgentType)
	take(&row.Prompt, f.Prompt)
	take(&row.ProviderSessionID, f.ProviderSessionID)
	take(&row.Handles, handlesText(handlesOf(row.Handles).Merge(f.Handles)))
	if f.Capabilities != nil {
		row.Capabilities = text(*f.Capabilities)
	}
	if row == *owner.row {
		return agent.Applied{Verdict: agent.VerdictUnchanged}, nil
	}
	if row.Handles != owner.row.Handles {
		if err := t.bindAliases(owner, row.Handles); err != nil {
			return agent.Applied{}, err
		}
	}
	if err := t.q.DescribeSession(bg, dbgen.DescribeSessionParams{
		Title: row.Title, Model: row.Model, PermissionMode: row.PermissionMode, AgentType: row.AgentType, Prompt: row.Prompt,
		ProviderSessionID: row.ProviderSessionID, Handles: row.Handles, Capabilities: row.Capabilities, PK: owner.pk,
	}); err != nil {
		return agent.Applied{}, fmt.Errorf("describe %s: %w", owner.id, err)
	}
	titled := row.Title != owner.row.Title
	*owner.row = row
	t.changed(owner)
	out := agent.Applied{Verdict: agent.VerdictApplied}
	if titled {
		return out, t.searchTitle(owner)
	}
	return out, nil
}

// bindAliases keeps the provider's names for a session as rows; the first binding of a
// name in a tree stands.
func (t *tx) bindAliases(i *ident, handles string) error {
	if handles == "" {
		return nil
	}
	if err := t.q.InsertAliases(bg, dbgen.InsertAliasesParams{Root: i.root, Session: i.pk, Handles: handles}); err != nil {
		return fmt.Errorf("aliases of %s: %w", i.id, err)
	}
	return nil
}

// reportUsage keeps the total of one turn and adds what is new to its session and to
// every session above it. Usage of a turn that has ended counts too: it was paid for.
func (t *tx) reportUsage(owner *ident, r *turnRow, u agent.Usage) (agent.Applied, error) {
	before := usageOf(r.Usage)
	if u == before {
		return agent.Applied{Verdict: agent.VerdictUnchanged}, nil
	}
	r.Usage = usageText(u)
	if err := t.q.SetTurnUsage(bg, dbgen.SetTurnUsageParams{Usage: r.Usage, PK: r.PK}); err != nil {
		return agent.Applied{}, fmt.Errorf("usage of %s: %w", r.ID, err)
	}
	t.emitTurn(agent.TurnUpdated, owner, r)
	more := usageMinus(u, before)
	if err := t.addUsage(owner, more, more); err != nil {
		return agent.Applied{}, err
	}
	if owner.kind == agent.KindChild {
		above, err := t.q.AncestorsBelowRoot(bg, owner.pk)
		if err != nil {
			return agent.Applied{}, fmt.Errorf("ancestors of %s: %w", owner.id, err)
		}
		for i := range above {
			i, err := t.session(above[i])
			if err != nil {
				return agent.Applied{}, err
			}
			if err := t.addUsage(i, agent.Usage{}, more); err != nil {
				return agent.Applied{}, err
			}
		}
		root, err := t.root(owner)
		if err != nil {
			return agent.Applied{}, err
		}
		if err := t.addUsage(root, agent.Usage{}, more); err != nil {
			return agent.Applied{}, err
		}
	}
	return agent.Applied{Verdict: agent.VerdictApplied}, nil
}

func (t *tx) addUsage(i *ident, own, tree agent.Usage) error {
	i.row.OwnUsage = usageText(usageOf(i.row.OwnUsage).Add(own))
	i.row.TreeUsage = usageText(usageOf(i.row.TreeUsage).Add(tree))
	if err := t.q.SetSessionUsage(bg, dbgen.SetSessionUsageParams{
		OwnUsage: i.row.OwnUsage, TreeUsage: i.row.TreeUsage, PK: i.pk,
	}); err != nil {
		return fmt.Errorf("usage of %s: %w", i.id, err)
	}
	t.changed(i)
	return nil
}
