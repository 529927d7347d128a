package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/api"
	"github.com/turnkeeper/turnkeeper/server/hub"
	"github.com/turnkeeper/turnkeeper/server/store"
)

// BenchmarkEndToEnd is rows 8 to 10: from the moment a fact is there to the moment each
// client of the stream has it.
//
//	hubonly     no database: the same events, straight into the hub
//	impl        storage as it is, synchronous normal
//	inlineckpt  a plain transaction for each event, and SQLite copies its log inside the
//	            commits, as it does by default; the hub and the clients are the same
func BenchmarkEndToEnd(b *testing.B) {
	for _, kind := range []string{"hubonly", "impl", "inlineckpt"} {
		for _, clients := range []int{1, 10, 100} {
			for _, rate := range []int{200, 1000, 0} {
				name := fmt.Sprintf("%s/clients=%d/rate=%d", kind, clients, rate)
				if rate == 0 {
					name = fmt.Sprintf("%s/clients=%d/rate=max", kind, clients)
				}
				b.Run(name, func(b *testing.B) { endToEnd(b, kind, clients, rate) })
			}
		}
	}
}

// source makes one event; at is written into its payload. It returns when the event is out.
type source func(at time.Time) error

func endToEnd(b *testing.B, kind string, clients, rate int) {
	var emit source
	var front *pipeline
	switch kind {
	case "hubonly":
		front, emit = hubOnly(b, nil)
	case "inlineckpt":
		front, emit = hubOnly(b, plainTransactions(b))
	default:
		front, emit = stored(b)
	}
	var wg sync.WaitGroup
	latencies := &latencies{}
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	for range clients {
		s, err := front.client.follow(ctx, front.ws, front.after, front.epoch)
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer s.conn.CloseNow() //nolint:errcheck // read to the end
			if err := latencies.collect(ctx, s, b.N); err != nil {
				b.Error(err)
			}
		})
	}
	b.ResetTimer()
	if rate > 0 {
		paced(b, emit, rate)
	} else {
		saturated(b, emit, 64)
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(latencies.at(50), "p50-ms")
	b.ReportMetric(latencies.at(99), "p99-ms")
}

func paced(b *testing.B, emit source, rate int) {
	begin := time.Now()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for i := range b.N {
		due := begin.Add(time.Duration(i) * time.Second / time.Duration(rate))
		pause.Reset(time.Until(due))
		<-pause.C
		if err := emit(time.Now()); err != nil {
			b.Fatal(err)
		}
	}
}

func saturated(b *testing.B, emit source, producers int) {
	var left atomic.Int64
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	for range producers {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := emit(time.Now()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// pipeline is the part of the daemon behind which clients sit.
type pipeline struct {
	client *client
	ws     agent.WorkspaceID
	after  int64
	epoch  string
}

func serve(b *testing.B, reader api.Reader, h *hub.Hub) *client {
	b.Helper()
	const token = "a-token-for-the-benchmark"
	a := api.New(http.NewServeMux(), api.Deps{Reader: reader, Hub: h, Token: token, Logger: slog.New(slog.DiscardHandler)})
	server := httptest.NewServer(a.Handler())
	b.Cleanup(func() {
		if err := a.Close(context.Background()); err != nil {
			b.Error(err)
		}
		server.Close()
	})
	return &client{tb: b, url: server.URL, token: token, http: plainHTTP(b)}
}

// stored is the real path: store, hub, socket.
func stored(b *testing.B) (*pipeline, source) {
	b.Helper()
	path := filepath.Join(b.TempDir(), "bench.db")
	var h *hub.Hub
	st, err := store.Open(b.Context(), store.Options{
		Path: path, Synchronous: "normal", Mint: agent.NewMinter(uuid.NewString), Logger: slog.New(slog.DiscardHandler),
		OnCommit: func(events []agent.Event) { h.Publish(events) },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := st.Close(); err != nil {
			b.Error(err)
		}
	})
	h = hub.New(st, hub.Options{})
	front := &pipeline{client: serve(b, st, h)}
	session, turn := benchRoot(b, st, front)
	return front, func(at time.Time) error {
		_, err := st.Apply(context.Background(), agent.MessagePut{Message: benchMessage(session, turn, at)})
		return err
	}
}

// benchRoot begins a turn for the messages to belong to.
func benchRoot(b *testing.B, st *store.Store, front *pipeline) (agent.SessionID, agent.TurnID) {
	b.Helper()
	ctx := b.Context()
	ws, err := st.CreateWorkspace(ctx, "bench", b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	made, err := st.CreateSession(ctx, agent.NewSession{
		Workspace: ws.ID, Provider: "bench", Title: "bench", Cwd: ws.Path,
		Message: &agent.NewMessage{ClientMessageID: "1", Text: "go", Client: "test"},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := st.Apply(ctx, agent.ProviderTurnStarted{Session: made.Session.ID, Turn: made.Turn.ID, Key: "p1"}); err != nil {
		b.Fatal(err)
	}
	front.ws = ws.ID
	if front.after, front.epoch, _, err = st.Head(ctx, ws.ID); err != nil {
		b.Fatal(err)
	}
	return made.Session.ID, made.Turn.ID
}

// benchMessage is a whole message of 400 bytes that carries its time.
func benchMessage(s agent.SessionID, t agent.TurnID, at time.Time) agent.Message {
	stamp := strconv.FormatInt(at.UnixNano(), 10) + " "
	return agent.Message{
		ID: agent.MessageID(uuid.NewString()), SessionID: s, TurnID: t, Role: agent.RoleAssistant, Kind: agent.MessageText,
		Content: stamp + strings.Repeat("x", 400-len(stamp)), Status: agent.MessageCompleted,
	}
}

// noStorage is a log that has kept nothing: what the hub holds is all there is.
type noStorage struct {
	api.Reader // nil: nothing else is asked
	head       atomic.Int64
}

func (n *noStorage) Workspace(_ context.Context, id agent.WorkspaceID) (agent.Workspace, error) {
	return agent.Workspace{ID: id}, nil
}

func (n *noStorage) Head(context.Context, agent.WorkspaceID) (int64, string, int64, error) {
	return n.head.Load(), "bench", 1, nil
}

func (n *noStorage) Events(context.Context, agent.WorkspaceID, int64, int) (agent.Log, error) {
	return agent.Log{Seq: n.head.Load(), Epoch: "bench", Oldest: 1}, nil
}

// hubOnly makes the same events without our storage. before, if given, is done first for
// each, one after the other.
func hubOnly(b *testing.B, before func(data []byte) error) (*pipeline, source) {
	b.Helper()
	n := &noStorage{}
	h := hub.New(n, hub.Options{})
	var mu sync.Mutex
	front := &pipeline{client: serve(b, n, h), ws: "ws_bench", epoch: "bench"}
	return front, func(at time.Time) error {
		data, err := json.Marshal(benchMessage("ses_bench", "trn_bench", at))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if before != nil {
			if err := before(data); err != nil {
				return err
			}
		}
		h.Publish([]agent.Event{{
			Seq: n.head.Add(1), Time: at, Kind: agent.MessageCreated, SessionID: "ses_bench", RootSessionID: "ses_bench",
			TurnID: "trn_bench", Data: data, WorkspaceID: front.ws,
		}})
		return nil
	}
}

// latencies are those of all clients together.
type latencies struct {
	mu  sync.Mutex
	all []float64 // milliseconds
}

// collect reads n of the benchmark's messages. It looks for the time in the frame's bytes:
// decoding ten thousand frames a second would measure the clients.
func (l *latencies) collect(ctx context.Context, s *stream, n int) error {
	mine := make([]float64, 0, n)
	for len(mine) < n {
		_, raw, err := s.conn.Read(ctx)
		if err != nil {
			return err
		}
		now := time.Now()
		if nanos, ok := stampIn(raw); ok {
			mine = append(mine, float64(now.UnixNano()-nanos)/1e6)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, mine...)
	return nil
}

// stampIn finds the time that benchMessage put at the beginning of the content.
func stampIn(raw []byte) (nanos int64, ok bool) {
	if !bytes.Contains(raw, []byte(`"kind":"message.created"`)) {
		return 0, false
	}
	_, rest, ok := bytes.Cut(raw, []byte(`"content":"`))
	if !ok {
		return 0, false
	}
	digits, _, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return 0, false
	}
	nanos, err := strconv.ParseInt(string(digits), 10, 64)
	return nanos, err == nil
}

func (l *latencies) at(percent int) float64 {
	if len(l.all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.all))
	return sorted[min(len(sorted)-1, len(sorted)*percent/100)]
}
