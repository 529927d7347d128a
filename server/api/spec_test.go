package api

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "rewrite openapi/openapi.json")

const committed = "../../openapi/openapi.json"

func TestSpecIsCommitted(t *testing.T) {
	b, err := Spec()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(committed, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != string(want) {
		t.Fatalf("the document differs from openapi/openapi.json; run: go test ./server/api -run SpecIsCommitted -update")
	}
}
