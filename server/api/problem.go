package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// Problem is every error answer (RFC 9457). Clients switch on Code; Detail is for
// people.
type Problem struct { //nolint:errname // the name is the document's
	Type      string       `json:"type" doc:"URN of the kind of problem; one for each code"`
	Title     string       `json:"title" doc:"Text of the HTTP status"`
	Status    int          `json:"status"`
	Code      string       `json:"code" doc:"Stable word to switch on"`
	Detail    string       `json:"detail,omitempty" doc:"What happened here and what helps, for people"`
	RequestID string       `json:"requestId,omitempty" doc:"Finds the request in the daemon's log"`
	Errors    []FieldError `json:"errors,omitempty" doc:"What is wrong with which field"`

	cause error // logged, never shown
}

// FieldError is what is wrong with one part of a request.
type FieldError struct {
	Location string `json:"location" doc:"Where: body.content[0].text, query.limit, path.turnID"`
	Message  string `json:"message"`
}

const problemType = "application/problem+json"

// retrySeconds is what Retry-After says where trying again can help.
const retrySeconds = 1

func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func (p *Problem) Unwrap() error { return p.cause }

// GetStatus and ContentType are what huma asks of an error body.
func (p *Problem) GetStatus() int { return p.Status }

func (p *Problem) ContentType(string) string { return problemType }

// GetHeaders says when to come back, where that is worth while.
func (p *Problem) GetHeaders() http.Header {
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		return http.Header{"Retry-After": {strconv.Itoa(retrySeconds)}}
	}
	return nil
}

func newProblem(code agent.Code, detail string) *Problem {
	status := statusOf(code)
	return &Problem{
		Type:   "urn:turnkeeper:error:" + string(code),
		Title:  http.StatusText(status),
		Status: status,
		Code:   string(code),
		Detail: detail,
	}
}

// problemOf turns any error into what may be shown. Only an agent.Error speaks for
// itself; the text of everything else stays in the log.
func problemOf(ctx context.Context, err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*agent.Error](err); ok {
		p := newProblem(e.Code, e.Message)
		p.cause = err
		return p
	}
	if ctx.Err() != nil {
		p := newProblem(agent.CodeTimeout, "The request was given up before it was answered.")
		p.cause = err
		return p
	}
	p := newProblem(agent.CodeInternal, "Something failed inside the daemon; its log has the details under this request id.")
	p.cause = err
	return p
}

const invalidJSON = "The body is not valid JSON: "

// humaProblem is what huma calls for every refusal of its own: validation, body size,
// media type. Values are not echoed, nor is the text of an error that is not a detail of
// huma's own: they may be secrets.
func humaProblem(status int, msg string, errs ...error) huma.StatusError {
	p := newProblem(codeOf(status), msg)
	if status == 0 { // huma asks for an empty one in order to learn the schema
		return p
	}
	p.Status, p.Title = status, http.StatusText(status)
	for _, err := range errs {
		d, ok := errors.AsType[*huma.ErrorDetail](err)
		if !ok {
			p.cause = err
			continue
		}
		p.Errors = append(p.Errors, FieldError{Location: d.Location, Message: d.Message})
	}
	switch {
	case status == http.StatusBadRequest && len(p.Errors) > 0 && p.Errors[0].Location == "body":
		p.recode(codeInvalidJSON)
		p.Detail = invalidJSON + p.Errors[0].Message
	case status == http.StatusUnprocessableEntity && len(p.Errors) > 0:
		p.Detail = p.Errors[0].Location + ": " + p.Errors[0].Message
	}
	return p
}

// recode changes the code and keeps the status.
func (p *Problem) recode(code agent.Code) {
	p.Code, p.Type = string(code), "urn:turnkeeper:error:"+string(code)
}

// write sends p outside huma.
func (p *Problem) write(w http.ResponseWriter, r *http.Request) {
	p.RequestID = requestID(r.Context())
	h := w.Header()
	for k, v := range p.GetHeaders() {
		h[k] = v
	}
	h.Set("Content-Type", problemType)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(p.Status)
	if r.Method == http.MethodHead {
		return
	}
	_ = json.NewEncoder(w).Encode(p) // the client has gone: nobody is left to tell
}
