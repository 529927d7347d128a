package hub

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// AppendEvent appends the frame of e: the event as one JSON object, with its type. The
// log of the HTTP API gives the same bytes. Data is taken over as it is: it was encoded
// once, when it was committed.
func AppendEvent(b []byte, e *agent.Event) []byte {
	b = append(b, `{"type":"event","seq":`...)
	b = strconv.AppendInt(b, e.Seq, 10)
	b = append(b, `,"time":"`...)
	b = e.Time.AppendFormat(b, time.RFC3339Nano)
	b = append(b, `","kind":`...)
	b = appendString(b, string(e.Kind))
	b = append(b, `,"agentSessionId":`...)
	b = appendString(b, string(e.SessionID))
	if e.TurnID != "" {
		b = append(b, `,"turnId":`...)
		b = appendString(b, string(e.TurnID))
	}
	b = append(b, `,"data":`...)
	if len(e.Data) == 0 {
		b = append(b, "{}"...)
	}
	b = append(b, e.Data...)
	return append(b, '}')
}

// frameOverhead is more than what AppendEvent adds to the data.
const frameOverhead = 320

func encodeEvent(e *agent.Event) []byte {
	return AppendEvent(make([]byte, 0, len(e.Data)+frameOverhead), e)
}

func encodeDelta(session agent.SessionID, message agent.MessageID, offset int64, text []byte) []byte {
	b := make([]byte, 0, len(text)+len(text)/8+200)
	b = append(b, `{"type":"delta","agentSessionId":`...)
	b = appendString(b, string(session))
	b = append(b, `,"messageId":`...)
	b = appendString(b, string(message))
	b = append(b, `,"offset":`...)
	b = strconv.AppendInt(b, offset, 10)
	b = append(b, `,"text":`...)
	b = appendString(b, string(text))
	return append(b, '}')
}

func encodeReset(reason Reason, epoch string, seq int64) []byte {
	b := append([]byte(`{"type":"reset","reason":`), strconv.Quote(string(reason))...)
	b = append(b, `,"epoch":`...)
	b = appendString(b, epoch)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, seq, 10)
	return append(b, '}')
}

// appendString appends s as a JSON string; ids, which are plain, take the short way.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, err := json.Marshal(s)
			if err != nil { // a string always encodes
				quoted = []byte(`""`)
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}
