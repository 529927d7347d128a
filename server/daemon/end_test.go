package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A peer that says nothing, or stops in the middle of a request, is cut off at the bound.
// It needs no token to be there, so it must not be able to make a stop fail.
func TestSilentPeersAreCutOffAndAreNoFailure(t *testing.T) {
	c, stop := startStoppable(t, t.TempDir(), nil)
	for name, said := range map[string]string{
		"nothing":       "",
		"half a header": "GET /healthz HTTP/1.1\r\nHost: 127",
		"half a body":   "POST /v1/workspaces HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + c.token + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(c.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(said)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	stop() // fails the test if Run returns an error
}

// Each signal that ends a daemon ends it in order: no listener file stays behind, and the
// exit code says that all is well.
func TestEverySignalEndsInOrder(t *testing.T) {
	for _, sig := range EndSignals() {
		t.Run(sig.String(), func(t *testing.T) {
			home := t.TempDir()
			p := spawn(t, roleDaemon, home)
			if _, said := p.listener(); said != "" {
				t.Fatal(said)
			}
			if err := p.cmd.Process.Signal(sig.(syscall.Signal)); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if _, err := os.Stat(filepath.Join(home, "listener.json")); !os.IsNotExist(err) {
				t.Errorf("the listener file is still there (%v)", err)
			}
		})
	}
}
