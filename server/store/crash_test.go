package store

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A process that writes as fast as it can is killed at a random moment, again and again, on
// one file. Whatever it was told is committed must be there, state and events must agree,
// and recovery must reach an end where nothing says that it runs.
func TestKilledProcessLosesNothingItWasTold(t *testing.T) {
	path := pathIn(t)
	dice := rand.New(rand.NewPCG(7, uint64(os.Getpid())))
	rounds := 8
	if raceEnabled {
		rounds = 2
	}
	for round := range rounds {
		acknowledged := runAndKill(t, path, round, 20+dice.IntN(200))
		w := open(t, onDisk(path), func(o *Options) { o.Now = time.Now })
		seq, _, _, err := w.Head(background(t), w.ws)
		w.must(err)
		for message, at := range acknowledged {
			if at > seq {
				t.Fatalf("round %d: event %d was acknowledged, the log ends at %d", round, at, seq)
			}
			if n := query[int64](w, "SELECT count(*) FROM messages WHERE id = ? AND seq = ?", message, at); n != 1 {
				t.Fatalf("round %d: message %s was acknowledged and is not there", round, message)
			}
		}
		w.verifyRows()
		w.must(w.Recover(background(t)))
		counts, err := w.Counts(background(t))
		w.must(err)
		if held := query[int64](w, "SELECT count(*) FROM turns WHERE settled_at = 0 AND cancel = ''"); held != 0 || counts.OpenBelowSettled != 0 {
			t.Fatalf("round %d: after recovery %d turns run, %+v", round, held, counts)
		}
		finishCancels(w)
		w.verifyRows()
		if round == rounds-1 {
			w.verify() // of all rounds together
		}
		w.must(w.Close())
	}
}

// finishCancels does what the worker does after a start: nobody is there to be asked.
func finishCancels(w *world) {
	w.Helper()
	claimed, err := w.Claim(background(w), "after", 1, 100)
	w.must(err)
	for _, c := range claimed {
		_, err := w.CompleteCancel(background(w), c.Operation.ID, nil)
		w.must(err)
	}
	if n := query[int64](w, "SELECT count(*) FROM turns WHERE settled_at = 0"); n != 0 {
		w.Fatalf("%d turns still run", n)
	}
}

// runAndKill returns the messages that the process said are committed, with their numbers.
func runAndKill(t *testing.T, path string, round, after int) map[string]int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path, "TURNKEEPER_STORE_ROUND="+strconv.Itoa(round))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	told := map[string]int64{}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		message, at, ok := strings.Cut(lines.Text(), " ")
		seq, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			t.Fatalf("the process says %q", lines.Text())
		}
		told[message] = seq
		if n == after { // what is in the pipe by now still counts
			_ = cmd.Process.Kill()
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("the process ended by itself: %v", err)
	}
	return told
}

const crashEnv = "TURNKEEPER_STORE_CRASH"

// crashChild is the process that is killed: conversations that start children, say things,
// ask, are stopped and end, from several goroutines, until the end comes.
func crashChild() {
	round := os.Getenv("TURNKEEPER_STORE_ROUND")
	s, err := Open(bg, Options{Path: os.Getenv(crashEnv), Synchronous: "normal", Mint: agent.NewMinter(counter("r" + round + "_")), Logger: quiet()})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ws, err := s.CreateWorkspace(bg, "w", "/w")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var out sync.Mutex
	var wait sync.WaitGroup
	for p := range 6 {
		wait.Go(func() {
			for n := 0; ; n++ {
				crashLife(s, ws.ID, fmt.Sprintf("r%s-%d-%d", round, p, n), &out)
			}
		})
	}
	wait.Wait()
}

func crashLife(s *Store, ws agent.WorkspaceID, name string, out *sync.Mutex) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	apply := func(f agent.Fact) agent.Applied {
		a, err := s.Apply(bg, f)
		fail(err)
		return a
	}
	made, err := s.CreateSession(bg, agent.NewSession{Workspace: ws, Provider: "demo", Message: &agent.NewMessage{ClientMessageID: "1", Text: name}})
	fail(err)
	root, turn := made.Session.ID, made.Turn.ID
	apply(agent.ProviderTurnStarted{Session: root, Turn: turn, Key: "p"})
	for c := range 4 {
		kid := named(root, fmt.Sprint(c))
		apply(agent.ChildStarted{Session: kid.session, Turn: kid.turn, Parent: root, ParentTurn: turn, Title: "kid"})
		id := agent.MessageID(fmt.Sprintf("%s-%d", name, c))
		m := agent.Message{ID: id, SessionID: kid.session, TurnID: kid.turn, Role: agent.RoleAssistant, Kind: agent.MessageText, Status: agent.MessageStreaming}
		a := apply(agent.MessagePut{Message: m})
		out.Lock()
		fmt.Println(id, a.Seq)
		out.Unlock()
		apply(agent.TextAppended{Session: kid.session, Turn: kid.turn, Message: id, Text: "so far"})
		apply(agent.InteractionAsked{Interaction: question(kid, "q")})
		if c%2 == 0 {
			apply(agent.TurnSettled{Session: kid.session, Turn: kid.turn, Outcome: agent.OutcomeCompleted})
		}
	}
	apply(agent.ProviderTurnEnded{Session: root, Turn: turn, Key: "p", Outcome: agent.OutcomeCompleted})
	op, _, err := s.PrepareCancel(bg, root, turn, "test")
	fail(err)
	_, err = s.CompleteCancel(bg, op.ID, nil)
	fail(err)
}
