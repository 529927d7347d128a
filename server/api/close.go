package api

import (
	"context"
	"errors"
	"time"
)

const (
	// restartBound is how long peers have, all at once, to take what is on its way, the
	// word "restart" and to answer it. It is well below the time in which people expect a
	// daemon to end.
	restartBound = time.Second
	// cutBound is how long a socket's goroutines have to end once its connection is closed
	// under them: they wait for nobody then.
	cutBound = 2 * time.Second
)

var errStuck = errors.New("api: a socket did not end although its connection was closed")

// Close ends every open socket with "restart" and waits for them. A peer that takes
// nothing, or does not answer, is cut off after a bound, at the latest when ctx ends: what
// peers do is no failure of ours. The error is one only where our own part does not end.
func (a *API) Close(ctx context.Context) error {
	a.socketMu.Lock()
	if a.endBy.IsZero() {
		a.endBy = time.Now().Add(restartBound)
	}
	a.close()
	for s := range a.open {
		s.cork.endBy(a.endBy)
	}
	a.socketMu.Unlock()
	done := make(chan struct{})
	go func() { a.sockets.Wait(); close(done) }()
	late := time.NewTimer(2 * restartBound) // those that end by themselves have done so long before
	defer late.Stop()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	case <-late.C:
	}
	a.cut()
	late.Reset(cutBound)
	select {
	case <-done:
		return nil
	case <-late.C:
		return errStuck
	}
}

// SetToken makes another token the one that counts. Cookies and login codes of the old one
// end with it, and so do the sockets that it opened: they are told 4401, and a peer that
// takes nothing is cut off after a bound.
func (a *API) SetToken(token string) {
	if !a.auth.replace(token) {
		return
	}
	end := time.Now().Add(restartBound)
	a.socketMu.Lock()
	defer a.socketMu.Unlock()
	for s := range a.open {
		if s.isRevoked() {
			s.cork.endBy(end)
		}
	}
}

// cut closes the connections of all sockets under them.
func (a *API) cut() {
	a.socketMu.Lock()
	defer a.socketMu.Unlock()
	for s := range a.open {
		s.cancel(errRestart)
		_ = s.cork.Close()
	}
}

// enter counts a socket in, unless the API is closing.
func (a *API) enter() bool {
	a.socketMu.Lock()
	defer a.socketMu.Unlock()
	if a.closing.Err() != nil {
		return false
	}
	a.sockets.Add(1)
	return true
}

// attend lets Close reach the connection of a socket that has entered.
func (a *API) attend(s *socket) {
	a.socketMu.Lock()
	defer a.socketMu.Unlock()
	a.open[s] = struct{}{}
	if !a.endBy.IsZero() { // closing began during its handshake
		s.cork.endBy(a.endBy)
	}
}

func (a *API) dismiss(s *socket) {
	a.socketMu.Lock()
	defer a.socketMu.Unlock()
	delete(a.open, s)
}
