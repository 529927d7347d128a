package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// tagged writes v, an object, with one more member in front: the one that tells which
// variant it is.
func tagged(key, tag string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if len(body) < 2 || body[0] != '{' {
		return nil, fmt.Errorf("acp: %s %s is no object", key, tag)
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, `{%q:%q`, key, tag)
	if len(body) > 2 {
		out.WriteByte(',')
	}
	out.Write(body[1:])
	return out.Bytes(), nil
}

// tagOf reads the member that tells which variant an object is.
func tagOf(key string, b []byte) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(b, &members) != nil {
		return ""
	}
	var tag string
	if json.Unmarshal(members[key], &tag) != nil {
		return ""
	}
	return tag
}
