package api

import (
	"io"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// appender is a body that knows a faster way into JSON than reflection.
type appender interface{ appendJSON(b []byte) []byte }

// bodies are reused: a large tree has megabytes, and fresh memory costs page faults.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// jsonFormat is huma's JSON, with the short way for appenders.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		a, ok := v.(appender)
		if !ok {
			return huma.DefaultJSONFormat.Marshal(w, v)
		}
		buf := bodies.Get().(*[]byte) //nolint:forcetypeassert // the pool holds nothing else
		defer bodies.Put(buf)
		*buf = append(a.appendJSON((*buf)[:0]), '\n')
		_, err := w.Write(*buf)
		return err
	},
	Unmarshal: huma.DefaultJSONFormat.Unmarshal,
}

// sessionDetail and sessionPage are what their names say in package agent, as appenders.
type (
	sessionDetail agent.SessionDetail
	sessionPage   agent.SessionPage
)

func (d sessionDetail) appendJSON(b []byte) []byte {
	b = append(b, `{"session":`...)
	b = agent.AppendSession(b, &d.Session)
	b = appendSessions(append(b, `,"childSessions":`...), d.ChildSessions)
	b = strconv.AppendInt(append(b, `,"seq":`...), d.Seq, 10)
	b = agent.AppendString(append(b, `,"epoch":`...), d.Epoch)
	return append(b, '}')
}

func (p sessionPage) appendJSON(b []byte) []byte {
	b = appendSessions(append(b, `{"items":`...), p.Items)
	if p.NextCursor != "" {
		b = agent.AppendString(append(b, `,"nextCursor":`...), p.NextCursor)
	}
	b = strconv.AppendInt(append(b, `,"seq":`...), p.Seq, 10)
	return append(b, '}')
}

func appendSessions(b []byte, list []agent.Session) []byte {
	b = append(b, '[')
	for i := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = agent.AppendSession(b, &list[i])
	}
	return append(b, ']')
}
