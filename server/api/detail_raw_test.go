package api

import (
	"database/sql"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// The yardstick of reading a tree: one statement by the root's index, every column
// scanned into plain variables, JSON appended by hand. None of it is the project's code.

const rawColumns = `s.id, s.workspace_id, s.kind, s.provider, s.title, s.cwd, s.model, s.agent_type, s.prompt, s.permission_mode, s.scenario,
 s.parent_id, s.parent_turn_id, s.parent_call_id, s.root_id, s.root_turn_id, s.provider_session_id, s.handles, s.capabilities, s.own_usage, s.tree_usage,
 s.pinned, s.pending, 0, s.created_at, s.updated_at,
 t.id, t.session_id, t.root_turn_id, t.cause, t.phase, t.outcome, t.error_code, t.error_text, t.native_id, t.usage,
 t.provider_id, t.provider_native, t.provider_outcome, t.provider_until, t.created_at, t.started_at, t.settled_at`

type rawRow struct {
	text  [21]string
	num   [5]int64
	turn  [14]string
	times [3]int64
}

func (r *rawRow) targets() []any {
	var out []any
	for i := range r.text {
		out = append(out, &r.text[i])
	}
	for i := range r.num {
		out = append(out, &r.num[i])
	}
	for i := range r.turn {
		out = append(out, &r.turn[i])
	}
	for i := range r.times {
		out = append(out, &r.times[i])
	}
	return out
}

func openRaw(b *testing.B, path string) *sql.DB {
	b.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=query_only(1)&_pragma=cache_size(-65536)&_pragma=mmap_size(268435456)")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	return db
}

func benchRaw(b *testing.B, path string, id agent.SessionID, size string) {
	db := openRaw(b, path)
	stmt, err := db.Prepare("SELECT " + rawColumns + " FROM sessions s CROSS JOIN turns t ON t.pk = s.latest_turn WHERE s.root = (SELECT pk FROM sessions WHERE id = ?1) AND s.deleted_at = 0 ORDER BY s.pk")
	if err != nil {
		b.Fatal(err)
	}
	defer stmt.Close() //nolint:errcheck // read only
	var out []byte
	for b.Loop() {
		out = readRaw(b, stmt, id, count(size)+1, out[:0])
	}
	b.ReportMetric(float64(len(out))/1e6, "MB")
}

func readRaw(b *testing.B, stmt *sql.Stmt, id agent.SessionID, want int, out []byte) []byte {
	rows, err := stmt.Query(string(id))
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var r rawRow
	to := r.targets()
	n := 0
	for ; rows.Next(); n++ {
		if err := rows.Scan(to...); err != nil {
			b.Fatal(err)
		}
		out = r.append(out)
	}
	if err := rows.Err(); err != nil || n != want {
		b.Fatalf("%d rows, %v", n, err)
	}
	return out
}

var (
	rawText = [21]string{
		"id", "workspaceId", "kind", "provider", "title", "cwd", "model", "agentType", "prompt", "permissionMode", "scenario",
		"parentAgentSessionId", "parentTurnId", "parentToolCallId", "rootAgentSessionId", "rootTurnId", "providerSessionId",
		"handles", "capabilities", "usage", "usageWithChildren",
	}
	rawTurn = [14]string{
		"id", "agentSessionId", "rootTurnId", "trigger", "phase", "outcome", "errorCode", "errorText", "nativeId", "usage",
		"providerId", "providerNative", "providerOutcome", "providerUntil",
	}
)

const rawCapabilities = `{"cancel":false,"childCancel":false,"guide":false,"guideWhileChildrenRun":false,"confirmsCancel":false,"confirmsChildCancel":false,"resume":false}`

const rawUsage = `{"inputTokens":0,"cachedInputTokens":0,"outputTokens":0,"reasoningTokens":0,"costMicros":0}`

func (r *rawRow) append(b []byte) []byte {
	b = append(b, '{')
	for i, v := range r.text {
		switch {
		case i >= 19:
			b = append(append(rawKey(b, rawText[i]), rawUsage...), ',')
		case i >= 17:
			if v == "" {
				v = "{}"
				if i == 18 {
					v = rawCapabilities
				}
			}
			b = append(append(rawKey(b, rawText[i]), v...), ',')
		case v != "":
			b = append(strconv.AppendQuote(rawKey(b, rawText[i]), v), ',')
		}
	}
	b = strconv.AppendInt(rawKey(b, "pendingInteractionCount"), r.num[1], 10)
	b = strconv.AppendInt(append(b, `,"activeChildCount":`...), r.num[2], 10)
	b = append(b, `,"attention":"none","createdAt":`...)
	b = rawTime(b, r.num[3])
	b = append(b, `,"updatedAt":`...)
	b = rawTime(b, r.num[4])
	if r.turn[5] == "" {
		b = append(b, `,"activeTurn":`...)
		b = r.appendTurn(b)
	}
	b = append(b, `,"latestTurn":`...)
	return append(r.appendTurn(b), '}', ',')
}

func (r *rawRow) appendTurn(b []byte) []byte {
	b = append(b, '{')
	for i, v := range r.turn {
		switch {
		case i == 9:
			b = append(append(rawKey(b, rawTurn[i]), rawUsage...), ',')
		case v != "":
			b = append(strconv.AppendQuote(rawKey(b, rawTurn[i]), v), ',')
		}
	}
	b = rawTime(rawKey(b, "createdAt"), r.times[0])
	if r.times[2] != 0 {
		b = rawTime(append(b, `,"settledAt":`...), r.times[2])
	}
	return append(b, '}')
}

func rawKey(b []byte, k string) []byte {
	b = append(b, '"')
	b = append(b, k...)
	return append(b, '"', ':')
}

func rawTime(b []byte, us int64) []byte {
	b = append(b, '"')
	b = time.UnixMicro(us).UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// benchRawRow is the yardstick of an unchanged tree: one keyed row over HTTP.
func benchRawRow(b *testing.B, path string) {
	db := openRaw(b, path)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var p string
		if err := db.QueryRow("SELECT path FROM workspaces WHERE pk = 1").Scan(&p); err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(p))
	}))
	defer s.Close()
	for b.Loop() {
		res, err := s.Client().Get(s.URL)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatal(err)
		}
		_ = res.Body.Close()
	}
}
