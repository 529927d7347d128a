package acp

import (
	"bytes"
	"encoding/json"
)

// Opt is a member that is absent, null, or has a value. The zero value is absent. Its tag
// needs omitzero, so that absent stays absent.
type Opt[T any] struct {
	state optState
	value T
}

type optState uint8

const (
	optAbsent optState = iota
	optNull
	optValue
)

// Some is a member with a value.
func Some[T any](v T) Opt[T] { return Opt[T]{optValue, v} }

// Null is a member that is null.
func Null[T any]() Opt[T] { return Opt[T]{state: optNull} }

// Get returns the value, false where there is none.
func (o Opt[T]) Get() (T, bool) { return o.value, o.state == optValue }

// Or returns the value, or other where there is none.
func (o Opt[T]) Or(other T) T {
	if o.state == optValue {
		return o.value
	}
	return other
}

// Said reports whether the member was there, be it null.
func (o Opt[T]) Said() bool { return o.state != optAbsent }

// IsNull reports whether the member was null.
func (o Opt[T]) IsNull() bool { return o.state == optNull }

// IsZero makes omitzero leave an absent member out.
func (o Opt[T]) IsZero() bool { return o.state == optAbsent }

// MarshalJSON writes null or the value.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if o.state != optValue {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON is called only where the member is there.
func (o *Opt[T]) UnmarshalJSON(b []byte) error {
	*o = Opt[T]{}
	if bytes.Equal(bytes.TrimSpace(b), []byte("null")) {
		o.state = optNull
		return nil
	}
	if err := json.Unmarshal(b, &o.value); err != nil {
		return err
	}
	o.state = optValue
	return nil
}

// Meta is the member that agents and clients may fill as they like.
type Meta = json.RawMessage

// Empty is a capability that is there, or a result that says nothing more: {}.
type Empty struct {
	Meta Meta `json:"_meta,omitempty"`
}
