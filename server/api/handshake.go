package api

import (
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

const (
	webSocketVersion  = "13"
	webSocketKeyBytes = 16
)

// checkHandshake says what is wrong with a request that wants to open a WebSocket, or nil.
// The library would say so too, in plain text: here it is a problem like every other.
func checkHandshake(w http.ResponseWriter, r *http.Request) *Problem {
	if !upgrades(r) || !r.ProtoAtLeast(1, 1) || !hasToken(r.Header, "Connection", "upgrade") {
		w.Header().Set("Upgrade", "websocket")
		w.Header().Set("Connection", "Upgrade")
		return newProblem(codeUpgradeRequired, "This path is a WebSocket: ask with Connection: Upgrade and Upgrade: websocket, over HTTP/1.1.")
	}
	if r.Header.Get("Sec-WebSocket-Version") != webSocketVersion {
		w.Header().Set("Sec-WebSocket-Version", webSocketVersion)
		return newProblem(agent.CodeInvalid, "Only version "+webSocketVersion+" of the WebSocket protocol is spoken.")
	}
	keys := r.Header.Values("Sec-WebSocket-Key")
	if len(keys) == 1 {
		if raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(keys[0])); err == nil && len(raw) == webSocketKeyBytes {
			return nil
		}
	}
	return newProblem(agent.CodeInvalid, "A WebSocket needs exactly one Sec-WebSocket-Key of 16 bytes in base64.")
}

// hasToken reports whether a header with a list of words has this one.
func hasToken(h http.Header, name, word string) bool {
	for _, v := range h.Values(name) {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}
