package realtest

import (
	"slices"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/modeltest"
)

// Setup is one real program with its model.
type Setup struct {
	Provider string
	Adapter  provider.Adapter
	Model    *modeltest.Model
	Place    modeltest.Place
	// Thread is the program's id of the agent that a session is, as the model knows it.
	Thread func(agent.Session) string
	// Nameless says that the program gives the turns of its children no names.
	Nameless bool
	// Mode is the permission mode of the root session; "" leaves it to the adapter.
	Mode string
	// ModelName is the model that the session asks for; "" leaves it to the program.
	ModelName string
}

// leftovers fails the test for what must not be there when everything has ended.
func (s Setup) leftovers(t testing.TB) {
	t.Helper()
	if left := modeltest.ProcessesOf(t, s.Place.Home); len(left) > 0 {
		t.Errorf("left running: %v", left)
	}
	if over := s.Model.Overruns(); len(over) > 0 {
		t.Errorf("the model was asked more than its script: %v", over)
	}
	if strays := s.Model.Strays(); len(strays) > 0 {
		t.Errorf("asked of the model's server: %v", strays)
	}
}

// is tells whether the session is that agent of the script.
func (s Setup) is(x agent.Session, name string) bool {
	thread := s.Model.Thread(name)
	return thread != "" && s.Thread(x) == thread
}

// find is the child among sessions that runs as that agent of the script.
func (s Setup) find(sessions []agent.Session, name string) (agent.Session, bool) {
	at := slices.IndexFunc(sessions, func(x agent.Session) bool { return s.is(x, name) })
	if at < 0 {
		return agent.Session{}, false
	}
	return sessions[at], true
}
