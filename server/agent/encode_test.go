package agent

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

// fill sets every field that v reaches to something that is not its zero value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("é \"quoted\" \\ \n\t\x01 \u2028 <&> \xff " + v.Type().Name())
	case reflect.Int, reflect.Int64:
		v.SetInt(-42)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Slice:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	default:
		panic("no filling for " + v.Type().String())
	}
}

// sameJSON compares decoded values: encoding/json escapes <, > and &, which we do not.
func sameJSON(t *testing.T, got []byte, of any) {
	t.Helper()
	want, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(got, &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if err := json.Unmarshal(want, &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAppendIsEncodingJSON(t *testing.T) {
	var s Session
	sameJSON(t, AppendSession(nil, &s), s)
	fill(reflect.ValueOf(&s).Elem())
	sameJSON(t, AppendSession([]byte{}, &s), s)
	var turn Turn
	sameJSON(t, AppendTurn(nil, &turn), turn)
	fill(reflect.ValueOf(&turn).Elem())
	sameJSON(t, AppendTurn(nil, &turn), turn)
	var m Message
	sameJSON(t, AppendMessage(nil, &m), m)
	fill(reflect.ValueOf(&m).Elem())
	sameJSON(t, AppendMessage(nil, &m), m)
	op := Operation{Targets: []Target{}}
	sameJSON(t, AppendOperation(nil, &op), op)
	op.Targets = make([]Target, 2)
	fill(reflect.ValueOf(&op).Elem())
	sameJSON(t, AppendOperation(nil, &op), op)
}

// Times of one second share what is written of them; whatever they are, it is what
// encoding/json writes.
func TestAppendTimesOfOneSecond(t *testing.T) {
	base := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	times := []time.Time{
		{},
		base, base.Add(time.Nanosecond), base.Add(120 * time.Millisecond), base.Add(678_900 * time.Microsecond),
		base.Add(time.Second - 1), base.Add(time.Second), base.In(time.FixedZone("", 3600)), time.Unix(0, 5).UTC(), time.Unix(-1, 5).UTC(),
	}
	for _, a := range times {
		for _, b := range times {
			for _, c := range times {
				turn := Turn{CreatedAt: a, StartedAt: &b, SettledAt: &c}
				sameJSON(t, AppendTurn(nil, &turn), turn)
			}
		}
	}
}
