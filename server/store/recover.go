package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/turnkeeper/turnkeeper/db/dbgen"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// loseSession ends everything that the lost process held, in one transaction: provider
// turns, live children at every depth. A root turn whose outcome was retained with no
// provider turn running keeps it (decisions.md 9); an open cancel still decides.
func (t *tx) loseSession(root *ident, cause *agent.Error) (agent.Applied, error) {
	out := agent.Applied{Verdict: agent.VerdictUnchanged}
	if root.kind != agent.KindRoot {
		return refused(agent.CodeUnknownOwner), nil
	}
	if err := t.loseProcesses(root); err != nil {
		return out, err
	}
	left, err := t.loseSettled(root, cause)
	if err != nil {
		return out, err
	}
	if left {
		out.Verdict = agent.VerdictApplied
	}
	open, err := t.openRootTurn(root)
	if err != nil || open == nil {
		return out, err
	}
	out.Turn = open.ID
	keys, err := t.q.LiveBelow(bg, open.PK)
	if err != nil {
		return out, fmt.Errorf("live turns: %w", err)
	}
	if open.ProviderLive == 0 && open.Retained != "" && len(keys) == 0 {
		return out, nil // the loss was told before; only a cancel can hold the turn
	}
	out.Verdict = agent.VerdictApplied
	if err := t.loseProviderTurns(open, cause); err != nil {
		return out, err
	}
	rows, err := t.holdAll(keys)
	if err != nil {
		return out, err
	}
	var endings []ending
	for _, r := range rows {
		next, _, _ := agent.NextTurn(stateOf(&r.Turn), agent.Change{Step: agent.StepLose, Err: cause})
		endings = append(endings, ending{r, next})
	}
	return out, t.settleChildren(root, endings)
}

// loseSettled ends the provider turns that were left under settled root turns, and tells
// whether there were any. A canceled root turn does not wait for its provider's word; when
// the process has gone that word never comes, and what is shown must not say "running" for
// ever. The root turn's own outcome stays.
func (t *tx) loseSettled(root *ident, cause *agent.Error) (bool, error) {
	keys, err := t.q.SettledWithProvider(bg, root.pk)
	if err != nil {
		return false, fmt.Errorf("settled turns with provider turns: %w", err)
	}
	for _, pk := range keys {
		r, err := t.turnByPK(pk)
		if err == nil {
			err = t.endProviderTurns(r, cause)
		}
		if err != nil {
			return false, err
		}
		r.dirty = true
		t.touch(pk)
	}
	return len(keys) > 0, nil
}

// loseProviderTurns ends the provider turns that still ran. A reservation that never spoke
// takes nothing with it.
func (t *tx) loseProviderTurns(open *turnRow, cause *agent.Error) error {
	if open.ProviderLive > open.ProviderReserved || open.Retained == "" {
		open.Retained = agent.OutcomeInterrupted
		open.RetainedCode, open.RetainedText = codeText(cause)
	}
	if err := t.endProviderTurns(open, cause); err != nil {
		return err
	}
	open.dirty = true
	t.touch(open.PK)
	return nil
}

// endProviderTurns interrupts every provider turn of a root turn that has not ended.
func (t *tx) endProviderTurns(r *turnRow, cause *agent.Error) error {
	if r.ProviderLive == 0 {
		return nil
	}
	code, words := codeText(cause)
	if err := t.q.LoseProviderTurns(bg, dbgen.LoseProviderTurnsParams{
		ErrorCode: code, ErrorText: words, EndedAt: t.now, Turn: r.PK,
	}); err != nil {
		return fmt.Errorf("provider turns of %s: %w", r.ID, err)
	}
	r.ProviderLive, r.ProviderReserved = 0, 0
	if r.ProviderOutcome == "" {
		r.ProviderOutcome, r.ProviderUntil, r.shown = agent.OutcomeInterrupted, t.now, true
	}
	return nil
}

// Recover ends what an earlier run of the daemon left and no process holds any more: it is
// called once, before anything else is written. Live turns end interrupted, outcomes that
// were retained are kept, leases are given back. Open cancels stay open: the worker
// completes them, as no runtime is there to be asked. A tree that cannot be recovered is
// logged and does not keep the daemon from starting.
func (s *Store) Recover(ctx context.Context) error {
	lost := agent.Errorf(agent.CodeDaemonRestart, "the daemon was restarted while this ran")
	roots, err := s.lostRoots(ctx)
	if err != nil {
		return err
	}
	for _, id := range roots {
		if _, err := s.Apply(ctx, agent.SessionLost{Session: id, Err: lost}); err != nil {
			if ctx.Err() != nil || errors.Is(err, &agent.Error{Code: agent.CodeUnavailable}) {
				return err
			}
			s.opt.Logger.Error("a session could not be recovered", "session", id, "error", err)
		}
	}
	_, err = s.write(ctx, func(t *tx) error {
		_, err := t.q.RequeueOperations(bg, t.now)
		return err
	})
	if err != nil {
		return fmt.Errorf("requeue operations: %w", err)
	}
	return nil
}

// lostRoots are the roots that something of an earlier run is left of, each once: a turn
// that is open, a process that no turn waits for, a provider turn whose root turn did not.
func (s *Store) lostRoots(ctx context.Context) (out []agent.SessionID, err error) {
	var idle, settled []agent.SessionID
	err = s.read(ctx, func(q *dbgen.Queries) error {
		live, err := q.LiveRootTurns(ctx)
		if err == nil {
			idle, err = q.RootsWithProcesses(ctx)
		}
		if err == nil {
			settled, err = q.RootsSettledWithProvider(ctx)
		}
		for _, r := range live {
			out = append(out, r.SessionID)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("what is left of an earlier run: %w", err)
	}
	known := map[agent.SessionID]bool{}
	for _, id := range out {
		known[id] = true
	}
	for _, id := range slices.Concat(idle, settled) {
		if !known[id] {
			known[id] = true
			out = append(out, id)
		}
	}
	return out, nil
}
