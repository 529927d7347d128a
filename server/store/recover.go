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

// loseProviderTurns ends the provider turns that still ran. A reservation that never spoke
// takes nothing with it.
func (t *tx) loseProviderTurns(open *turnRow, cause *agent.Error) error {
	code, words := codeText(cause)
	if open.ProviderLive > open.ProviderReserved || open.Retained == "" {
		open.Retained, open.RetainedCode, open.RetainedText = agent.OutcomeInterrupted, code, words
	}
	if open.ProviderLive > 0 {
		if err := t.q.LoseProviderTurns(bg, dbgen.LoseProviderTurnsParams{
			ErrorCode: code, ErrorText: words, EndedAt: t.now, Turn: open.PK}); err != nil {
			return fmt.Errorf("provider turns of %s: %w", open.ID, err)
		}
		open.ProviderLive, open.ProviderReserved = 0, 0
		if open.ProviderPhase != agent.ProviderEnded {
			open.ProviderPhase, open.ProviderOutcome, open.shown = agent.ProviderEnded, agent.OutcomeInterrupted, true
		}
	}
	open.dirty = true
	t.touch(open.PK)
	return nil
}

// Recover ends what an earlier run of the daemon left and no process holds any more: it is
// called once, before anything else is written. Live turns end interrupted, outcomes that
// were retained are kept, leases are given back. Open cancels stay open: the worker
// completes them, as no runtime is there to be asked. A tree that cannot be recovered is
// logged and does not keep the daemon from starting.
func (s *Store) Recover(ctx context.Context) error {
	lost := agent.Errorf(agent.CodeDaemonRestart, "the daemon was restarted while this ran")
	var roots []dbgen.LiveRootTurnsRow
	var idle []agent.SessionID // with processes that no turn waits for
	err := s.read(ctx, func(q *dbgen.Queries) (err error) {
		if roots, err = q.LiveRootTurns(ctx); err == nil {
			idle, err = q.RootsWithProcesses(ctx)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("live root turns: %w", err)
	}
	for _, id := range lostRoots(roots, idle) {
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

// lostRoots are the roots that something of an earlier run is left of, each once.
func lostRoots(live []dbgen.LiveRootTurnsRow, idle []agent.SessionID) []agent.SessionID {
	var out []agent.SessionID
	for _, r := range live {
		out = append(out, r.SessionID)
	}
	for _, id := range idle {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
