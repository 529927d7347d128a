package command

import (
	"sync"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// lanes runs functions in order for each root session, and side by side for different
// ones. Messages go through it: one that joins a turn must not overtake the one that
// began it. A cancel and an answer do not wait in a lane: what they are for may be what
// the lane waits for.
type lanes struct {
	spawn func(func()) bool

	mu    sync.Mutex
	queue map[agent.SessionID][]func() // there while the lane's goroutine runs
}

// do queues f. After the service has closed it is not taken, and that is false.
func (l *lanes) do(root agent.SessionID, f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue == nil {
		l.queue = map[agent.SessionID][]func(){}
	}
	waiting, runs := l.queue[root]
	l.queue[root] = append(waiting, f)
	if !runs && !l.spawn(func() { l.run(root) }) {
		delete(l.queue, root)
		return false
	}
	return true
}

func (l *lanes) run(root agent.SessionID) {
	for {
		l.mu.Lock()
		waiting := l.queue[root]
		if len(waiting) == 0 {
			delete(l.queue, root)
			l.mu.Unlock()
			return
		}
		l.queue[root] = waiting[1:]
		l.mu.Unlock()
		waiting[0]()
	}
}
