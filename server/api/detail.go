package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// stallGranularity bounds how long a 304 can hide that a silent agent has become
// "stalled": that mark comes from the clock, without an event.
const stallGranularity = 30 // seconds

type detailOut struct {
	Status int
	ETag   string `header:"ETag"`
	// A cached copy may be used only after asking: it changes with every event.
	CacheControl string `header:"Cache-Control"`
	Body         sessionDetail
}

// getSession answers the whole tree. The tag is the workspace's newest number: as long
// as that stands, nothing of the tree can have changed, and 304 costs one keyed read.
func (a *API) getSession(ctx context.Context, in *struct {
	SessionPath
	IfNoneMatch string `header:"If-None-Match" doc:"ETag of the copy at hand"`
},
) (*detailOut, error) {
	if in.IfNoneMatch != "" {
		tag, ok, err := a.unchanged(ctx, in.SessionPath, in.IfNoneMatch)
		if err != nil {
			return nil, err
		}
		if ok {
			return &detailOut{Status: http.StatusNotModified, ETag: tag, CacheControl: "private, no-cache"}, nil
		}
	}
	d, err := a.deps.Reader.Detail(ctx, in.Workspace, in.Session)
	if err != nil {
		return nil, err
	}
	return &detailOut{
		Status: http.StatusOK, Body: sessionDetail(d), CacheControl: "private, no-cache",
		ETag: a.tag(in.Session, d.Epoch, d.Seq, live(d)),
	}, nil
}

// live reports whether anything of the tree runs, and so can go silent.
func live(d agent.SessionDetail) bool {
	return d.Session.ActiveTurn != nil || d.Session.ActiveChildCount > 0
}

func (a *API) tag(id agent.SessionID, epoch string, seq int64, live bool) string {
	if live {
		return fmt.Sprintf("\"%s.%s.%d.%d\"", id, epoch, seq, a.now().Unix()/stallGranularity)
	}
	return fmt.Sprintf("\"%s.%s.%d\"", id, epoch, seq)
}

// unchanged finds, among the tags of the copies a client holds, the one that is still
// true.
func (a *API) unchanged(ctx context.Context, in SessionPath, header string) (string, bool, error) {
	seq, epoch, _, err := a.deps.Reader.Head(ctx, in.Workspace)
	if err != nil {
		return "", false, err
	}
	idle, live := a.tag(in.Session, epoch, seq, false), a.tag(in.Session, epoch, seq, true)
	for t := range strings.SplitSeq(header, ",") {
		t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
		if t == idle || t == live {
			return t, true, nil
		}
	}
	return "", false, nil
}
