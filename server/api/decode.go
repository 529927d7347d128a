package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// malformedError is what is wrong with a body, in our own words: a parser's text may quote
// what it was given, which may be a secret.
type malformedError string

func (e malformedError) Error() string { return string(e) }

// decodeJSON reads a request body. Two members of one name are refused: which of them
// counts would be the parser's choice, and another parser in front of us may choose
// otherwise.
func decodeJSON(data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return malformed(data, err)
	}
	if _, first := v.(*any); !first { // huma reads a body twice: for its schema, then into its type
		return nil
	}
	if !utf8.Valid(data) {
		return malformedError("it is not UTF-8")
	}
	if at, twice := repeatedName(data); twice {
		return malformedError(fmt.Sprintf("an object has the same name twice, near byte %d", at))
	}
	return nil
}

func malformed(data []byte, err error) error {
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		if syntax.Offset >= int64(len(data)) && !json.Valid(data) && unfinished(data) {
			return malformedError("it breaks off")
		}
		return malformedError(fmt.Sprintf("it stops being JSON near byte %d", syntax.Offset))
	}
	if fit, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return malformedError(fmt.Sprintf("a value is of the wrong type, near byte %d", fit.Offset))
	}
	return malformedError("it cannot be read")
}

// unfinished reports whether data is the beginning of a JSON value.
func unfinished(data []byte) bool {
	var v json.RawMessage
	return errors.Is(json.NewDecoder(bytes.NewReader(data)).Decode(&v), io.ErrUnexpectedEOF)
}

// repeatedName finds an object of a valid document that has two members of one name, and
// says where it was found.
func repeatedName(data []byte) (at int64, found bool) {
	type level struct {
		names map[string]struct{} // nil in a list
		value bool                // a member's value comes next
	}
	var open []level
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for {
		t, err := d.Token()
		if err != nil {
			return 0, false // the end: the document is valid
		}
		var in *level
		if len(open) > 0 {
			in = &open[len(open)-1]
		}
		if name, ok := t.(string); ok && in != nil && in.names != nil && !in.value {
			if _, twice := in.names[name]; twice {
				return d.InputOffset(), true
			}
			in.names[name], in.value = struct{}{}, true
			continue
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if in != nil {
				in.value = false
			}
			l := level{}
			if t == json.Delim('{') {
				l.names = map[string]struct{}{}
			}
			open = append(open, l)
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if in != nil {
				in.value = false
			}
		}
	}
}

// takesBody reports whether an operation's input has a body.
func takesBody(input reflect.Type) bool {
	_, ok := input.FieldByName("Body")
	return ok && input.Kind() == reflect.Struct
}

// shownNames is how many unexpected names a problem lists.
const shownNames = 8

// refuseBody is the middleware of operations that take no body: nothing, or an object
// without members, which some clients always send. Anything else was meant to say
// something, and would be lost in silence.
func refuseBody(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	if p := checkNoBody(r); p != nil {
		p.write(w, r)
		return
	}
	next(ctx)
}

func checkNoBody(r *http.Request) *Problem {
	if r.Body == nil || r.ContentLength == 0 {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, defaultBody+1))
	var late net.Error
	switch {
	case errors.As(err, &late) && late.Timeout():
		return newProblem(codeBodyTimeout, "The body did not come in time.")
	case err != nil || len(data) > defaultBody:
		return newProblem(codeBodyTooLarge, fmt.Sprintf("The body has more than %d bytes; none is taken here.", defaultBody))
	case len(bytes.TrimSpace(data)) == 0:
		return nil
	}
	var v any
	if err := decodeJSON(data, &v); err != nil {
		p := newProblem(codeInvalidJSON, invalidJSON+err.Error())
		p.Errors = []FieldError{{Location: "body", Message: err.Error()}}
		return p
	}
	members, ok := v.(map[string]any)
	if ok && len(members) == 0 {
		return nil
	}
	p := newProblem(codeValidation, "This call takes no body.")
	if !ok {
		p.Errors = []FieldError{{Location: "body", Message: "expected nothing, or an object without members"}}
		return p
	}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i == shownNames {
			break
		}
		p.Errors = append(p.Errors, FieldError{Location: "body." + strings.ToValidUTF8(name[:min(len(name), maxNameShown)], ""), Message: "unexpected property"})
	}
	return p
}

// maxNameShown is how much of an unexpected name is told back, in bytes.
const maxNameShown = 100
