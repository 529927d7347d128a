package api

import (
	"html/template"
	"net/http"
	"strconv"
	"strings"
)

// page is one of the few pages that the daemon writes itself.
type page struct {
	title string
	text  string
	run   string // the command that helps
}

var (
	pageSignIn = page{
		"Sign in to Turnkeeper",
		"This browser is not signed in. On the machine where the daemon runs, this command opens the page with a one-time link:",
		"turnkeeper open",
	}
	pageCodeUsed = page{
		"This link has been used",
		"A link is good once, and only for two minutes. This command makes a new one:",
		"turnkeeper open",
	}
	pageNotBuilt = page{
		"The web view is not built",
		"This binary was built without it; the API is there all the same. In the source tree, this command builds the view and then the daemon:",
		"make build",
	}
)

// No style of its own: the policy lets nothing inline run, and these pages need none.
var pageTemplate = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Title}}</title>
<main>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
<p><kbd>{{.Run}}</kbd></p>
</main>
</html>
`))

func writePage(w http.ResponseWriter, status int, p page) {
	var b strings.Builder
	if err := pageTemplate.Execute(&b, map[string]string{"Title": p.title, "Text": p.text, "Run": p.run}); err != nil {
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String()))
}
