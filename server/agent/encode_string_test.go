package agent

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// A string is written as encoding/json writes it without escapes for HTML, whatever its bytes.
func TestStringsAreWrittenAsEncodingJSONDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.String(),
			rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.SampledFrom([]string{"", "\x7f", "\x00", "\xff", "a\xffb", "\u2028\u2029", "\U0001f600", strings.Repeat("é", 300)}),
		).Draw(t, "s")
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(s); err != nil {
			t.Fatal(err)
		}
		if got := string(AppendString(nil, s)) + "\n"; got != want.String() {
			t.Fatalf("%q: by hand %s, by json %s", s, got, want.String())
		}
	})
}
