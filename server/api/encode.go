package api

import (
	"io"
	"strconv"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// streamer is a body that knows a faster way into JSON than reflection, in pieces: a
// large tree has megabytes, and memory for all of them at once costs more than encoding.
type streamer interface{ stream(p *pieces) }

const pieceBytes = 32 << 10

// pieces collects JSON and sends it on whenever a piece is full.
type pieces struct {
	b   []byte
	w   io.Writer
	err error // of the first write that failed; nothing is sent after it
}

func (p *pieces) flush() {
	if p.err == nil {
		_, p.err = p.w.Write(p.b)
	}
	p.b = p.b[:0]
}

var pieceBuffers = sync.Pool{New: func() any { return &pieces{b: make([]byte, 0, pieceBytes+8<<10)} }}

// jsonFormat is huma's JSON, with the short way for streamers and a strict reader.
var jsonFormat = huma.Format{
	Marshal: func(w io.Writer, v any) error {
		s, ok := v.(streamer)
		if !ok {
			return huma.DefaultJSONFormat.Marshal(w, v)
		}
		p := pieceBuffers.Get().(*pieces) //nolint:forcetypeassert // the pool holds nothing else
		p.w, p.err = w, nil
		s.stream(p)
		p.b = append(p.b, '\n')
		p.flush()
		err := p.err
		p.w = nil
		pieceBuffers.Put(p)
		return err
	},
	Unmarshal: decodeJSON,
}

// sessionDetail and sessionPage are what their names say in package agent, as streamers.
type (
	sessionDetail agent.SessionDetail
	sessionPage   agent.SessionPage
)

func (d sessionDetail) stream(p *pieces) {
	p.b = append(p.b, `{"session":`...)
	p.b = agent.AppendSession(p.b, &d.Session)
	p.b = append(p.b, `,"childSessions":`...)
	p.sessions(d.ChildSessions)
	p.b = strconv.AppendInt(append(p.b, `,"seq":`...), d.Seq, 10)
	p.b = agent.AppendString(append(p.b, `,"epoch":`...), d.Epoch)
	p.b = append(p.b, '}')
}

func (s sessionPage) stream(p *pieces) {
	p.b = append(p.b, `{"items":`...)
	p.sessions(s.Items)
	if s.NextCursor != "" {
		p.b = agent.AppendString(append(p.b, `,"nextCursor":`...), s.NextCursor)
	}
	p.b = strconv.AppendInt(append(p.b, `,"seq":`...), s.Seq, 10)
	p.b = append(p.b, '}')
}

func (p *pieces) sessions(list []agent.Session) {
	p.b = append(p.b, '[')
	for i := range list {
		if i > 0 {
			p.b = append(p.b, ',')
		}
		p.b = agent.AppendSession(p.b, &list[i])
		if len(p.b) >= pieceBytes {
			p.flush()
		}
	}
	p.b = append(p.b, ']')
}
