package replay

import (
	"fmt"
	"sync"
	"time"
)

// still knows whether anything moves by itself.
type still struct {
	mu      sync.Mutex
	moved   *sync.Cond
	busy    int  // calls under way, less those that wait for the provider
	reading bool // the adapter asks for more
}

func newStill() *still {
	s := &still{reading: true} // nobody has connected yet
	s.moved = sync.NewCond(&s.mu)
	return s
}

// work counts calls that begin (+1) or end (-1).
func (s *still) work(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy += change
	s.moved.Broadcast()
}

// park hears from the adapter that a call begins (+1) or ceases (-1) to wait.
func (s *still) park(change int) { s.work(-change) }

// read hears from the adapter whether it has handled all of its input.
func (s *still) read(idle bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = idle
	s.moved.Broadcast()
}

// patience bounds, in real time, the wait for a step that should take milliseconds: a
// replay of a fault must end with a word and not hang.
const patience = 30 * time.Second

// wait returns when nothing moves.
func (s *still) wait() error {
	late := false
	defer time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.moved.Broadcast()
	}).Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.busy > 0 || !s.reading {
		if late {
			return fmt.Errorf("the replay does not come to rest: %d calls under way, input handled: %v", s.busy, s.reading)
		}
		s.moved.Wait()
	}
	return nil
}
