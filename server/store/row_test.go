package store

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// fill gives every field below v a value of its own, so that a field which is forgotten
// anywhere shows.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("value %d \"<&>\"\u2028\n", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 123456000+*n*1000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic("no way to fill a " + v.Type().String())
	}
}

func TestRowsKeepEveryField(t *testing.T) {
	n := 0
	var u agent.Usage
	fill(reflect.ValueOf(&u).Elem(), &n)
	if got := usageOf(usageText(u)); got != u {
		t.Errorf("usage %+v came back as %+v", u, got)
	}
	if usageText(agent.Usage{}) != "" || usageOf("") != (agent.Usage{}) {
		t.Error("no usage is not empty")
	}
	if d := usageMinus(u, u); d != (agent.Usage{}) {
		t.Errorf("u - u = %+v", d)
	}
	var h agent.Handles
	fill(reflect.ValueOf(&h).Elem(), &n)
	if got := handlesOf(handlesText(h)); got != h {
		t.Errorf("handles %+v came back as %+v", h, got)
	}
	var c agent.Capabilities
	fill(reflect.ValueOf(&c).Elem(), &n)
	if got := capabilitiesOf(text(c)); got != c {
		t.Errorf("capabilities %+v came back as %+v", c, got)
	}
}

// Every event's data is the entity as the API gives it.
func decode[T any](tb testing.TB, data json.RawMessage) T {
	tb.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		tb.Fatalf("%s: %v", data, err)
	}
	return v
}
