package api

import "net/http"

func (a *API) stream(w http.ResponseWriter, r *http.Request) {
	newProblem(codeUpgradeRequired, "This path is a WebSocket.").write(w, r)
}
