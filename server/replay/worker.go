package replay

import (
	"fmt"
	"sync"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// worker begins durable operations in the recording's time, one at a time. Carrying one
// out is package command's.
type worker struct {
	engine *engine
	wait   []agent.Claimed // messages that must not overtake another

	mu    sync.Mutex
	lanes map[agent.SessionID]int // messages on their way, by root
}

const (
	lease   = 2 * time.Minute
	atATime = 64
)

func (w *worker) enter(root agent.SessionID) { w.count(root, 1) }
func (w *worker) leave(root agent.SessionID) { w.count(root, -1) }

func (w *worker) count(root agent.SessionID, change int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lanes[root] += change
}

func (w *worker) free(root agent.SessionID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lanes[root] == 0
}

// round begins whatever is due and may begin, and reports whether there was anything.
// It is called when nothing moves.
func (w *worker) round() (bool, error) {
	e := w.engine
	claimed, err := e.store.Claim(e.ctx, client, lease, atATime)
	if err != nil {
		return false, fmt.Errorf("claim operations: %w", err)
	}
	due := append(w.wait, claimed...)
	w.wait = nil
	began := false
	for _, c := range due {
		guide := c.Operation.Kind == agent.OperationGuide
		if guide && !w.free(c.Root.ID) {
			w.wait = append(w.wait, c)
			continue
		}
		began = true
		e.still.work(1)
		if guide {
			w.enter(c.Root.ID)
		}
		go func() {
			defer e.still.work(-1)
			if guide {
				defer w.leave(c.Root.ID)
			}
			e.commands.CarryOut(e.ctx, c)
		}()
		if err := e.still.wait(); err != nil { // one at a time: their order must not be chance
			return began, err
		}
	}
	return began, nil
}
