package api

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// The document promises the length of a name that commands really take.
func TestNamesAreAsLongAsTheDocumentSays(t *testing.T) {
	for _, c := range []struct {
		of   reflect.Type
		name string
	}{
		{reflect.TypeFor[NewAgentSession](), "Title"},
		{reflect.TypeFor[AgentSessionPatch](), "Title"},
		{reflect.TypeFor[NewWorkspace](), "Name"},
		{reflect.TypeFor[WorkspacePatch](), "Name"},
	} {
		f, ok := c.of.FieldByName(c.name)
		if got := f.Tag.Get("maxLength"); !ok || got != strconv.Itoa(agent.MaxTitle) {
			t.Errorf("%s of %s may have %q characters, want %d", c.name, c.of.Name(), got, agent.MaxTitle)
		}
	}
}
