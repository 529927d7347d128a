package modeltest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
)

// maxRequest bounds a request body; a whole conversation is far below it.
const maxRequest = 64 << 20

// errOver ends a reply early, as its script wants.
var errOver = errors.New("reply is over")

// playing is a reply while its steps are played.
type playing struct {
	Stream
	model *Model
	ctx   context.Context //nolint:containedctx // the life of one request
	ask   Asked
}

// serve answers one request to the model.
func (m *Model) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := readBody(r)
	if r.Context().Err() != nil {
		return // given up before it was asked
	}
	var ask Asked
	if err == nil {
		ask, err = m.dialect.Read(r.Header, raw)
	}
	if err != nil {
		m.t.Errorf("modeltest: request that cannot be read: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	req, seq, reply := m.admit(Request{Thread: ask.Thread, Header: r.Header.Clone(), Body: raw}, ask.Name)
	p := &playing{Stream: m.dialect.Stream(m.t, w, ask, seq), model: m, ctx: r.Context(), ask: ask}
	begun := reply.wantsStatus() // such a reply has no beginning
	begin := func() {
		if !begun {
			p.Begin()
			begun = true
		}
	}
	for i, step := range reply {
		if _, silent := step.(silentStep); !silent {
			begin()
		}
		err := step.play(p)
		switch {
		case errors.Is(err, errOver):
			return
		case r.Context().Err() != nil:
			return // the program gave the request up, as it does on an interrupt
		case err != nil:
			m.t.Errorf("modeltest: agent %s, request %d, step %d: %v", req.Agent, req.N, i+1, err)
			p.Fail("script_error", err.Error())
			return
		}
	}
	begin()
	p.Complete()
}

// stray notes a request for something else.
func (m *Model) stray(w http.ResponseWriter, r *http.Request) {
	m.change(func() { m.strays = append(m.strays, r.Method+" "+r.URL.Path) })
	http.NotFound(w, r)
}

func readBody(r *http.Request) ([]byte, error) {
	var src io.Reader = http.MaxBytesReader(nil, r.Body, maxRequest)
	switch enc := r.Header.Get("Content-Encoding"); enc {
	case "", "identity":
	case "gzip":
		zr, err := gzip.NewReader(src)
		if err != nil {
			return nil, err
		}
		src = io.LimitReader(zr, maxRequest)
	default:
		return nil, fmt.Errorf("content encoding %q is not supported", enc)
	}
	return io.ReadAll(src)
}

var mark = regexp.MustCompile(`<<([A-Za-z0-9_.-]+)>>`)

// Marks are the names of all marks in a piece of a request, in order.
func Marks(raw []byte) []string {
	// Some encoders escape angle brackets.
	raw = bytes.ReplaceAll(raw, []byte(`\u003c`), []byte("<"))
	raw = bytes.ReplaceAll(raw, []byte(`\u003e`), []byte(">"))
	var names []string
	for _, found := range mark.FindAllSubmatch(raw, -1) {
		names = append(names, string(found[1]))
	}
	return names
}

var reference = regexp.MustCompile(`@\{(output|thread) ([^ }]+)(?: ([^ }]+))?\}`)

// expand replaces the references in all strings of v, a decoded JSON value.
func (p *playing) expand(v any) (any, error) {
	var err error
	switch x := v.(type) {
	case string:
		out := reference.ReplaceAllStringFunc(x, func(ref string) string {
			part := reference.FindStringSubmatch(ref)
			value, e := p.resolve(part[1], part[2], part[3])
			err = errors.Join(err, e)
			return value
		})
		return out, err
	case []any:
		for i := range x {
			if x[i], err = p.expand(x[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		for k := range x {
			if x[k], err = p.expand(x[k]); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

func (p *playing) resolve(kind, name, field string) (string, error) {
	if kind == "thread" {
		if thread := p.model.Thread(name); thread != "" {
			return thread, nil
		}
		return "", fmt.Errorf("agent %s has no thread yet", name)
	}
	output := p.ask.Output(name)
	if len(output) == 0 {
		return "", fmt.Errorf("no output of %s in the request", name)
	}
	var object map[string]any
	if err := json.Unmarshal(output, &object); err != nil {
		return "", fmt.Errorf("output of %s is no object: %.200s", name, output)
	}
	if value, ok := object[field].(string); ok {
		return value, nil
	}
	return "", fmt.Errorf("output of %s has no text %q: %.200s", name, field, output)
}
