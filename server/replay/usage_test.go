package replay

import (
	"cmp"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// What a tree has used adds up: a session's usage is that of its turns, and a root's with
// its children is that of all (B180: only the main agent was counted).
func TestUsageOfATreeAddsUp(t *testing.T) {
	eachRecording(t, func(t *testing.T, s suite, name string) {
		end := s.replay(t, name)
		own, all, rootOf := map[agent.SessionID]agent.Usage{}, map[agent.SessionID]agent.Usage{}, map[agent.SessionID]agent.SessionID{}
		for _, s := range end.Sessions {
			rootOf[s.ID] = cmp.Or(s.RootSessionID, s.ID)
		}
		for _, u := range end.Turns {
			own[u.SessionID] = own[u.SessionID].Add(u.Usage)
			root := rootOf[u.SessionID]
			all[root] = all[root].Add(u.Usage)
		}
		for _, s := range end.Sessions {
			if s.Usage != own[s.ID] {
				t.Errorf("session %s used %+v, its turns %+v", s.ID, s.Usage, own[s.ID])
			}
			if s.IsRoot() && s.UsageWithChildren != all[s.ID] {
				t.Errorf("the tree used %+v, its turns %+v", s.UsageWithChildren, all[s.ID])
			}
		}
	})
}
