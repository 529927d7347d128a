package tape

import (
	"bufio"
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What is played before anybody connects waits; each process is connected to once; what
// follows the end of one is not the next one's.
func TestProcessesOfATape(t *testing.T) {
	var heard []string
	handled := make(chan bool, 64)
	tape := New(func(idle bool) { handled <- idle }, func(line []byte) { heard = append(heard, string(line)) })
	if _, err := tape.Connect(); !errors.Is(err, &agent.Error{Code: agent.CodeProviderUnavailable}) {
		t.Errorf("before the first process: %v", err)
	}
	tape.Begin()
	tape.Play([]byte("{ \"a\": 1 }"))
	link, err := tape.Connect()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tape.Connect(); err == nil {
		t.Error("two have the same process")
	}
	tape.Play([]byte("no JSON"))
	lines := bufio.NewReader(link)
	for _, want := range []string{"{\"a\":1}\n", "no JSON\n"} {
		if got, err := lines.ReadString('\n'); got != want || err != nil {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
	}
	if _, err := link.Write([]byte("hello")); err != nil || len(heard) != 1 || heard[0] != "hello" {
		t.Errorf("heard %q, %v", heard, err)
	}
	tape.End("exit 3")
	tape.End("later")
	if _, err := lines.ReadString('\n'); !errors.Is(err, io.EOF) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := link.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) || link.Explain() != "exit 3" {
		t.Errorf("after the end: %v, %q", err, link.Explain())
	}
	tape.Play([]byte("lost"))
	tape.Begin()
	if next, err := tape.Connect(); err != nil || tape.Process() != 2 || next.Close(t.Context()) != nil {
		t.Errorf("process %d: %v", tape.Process(), err)
	}
	if len(handled) == 0 {
		t.Error("nobody was told that all was handled")
	}
}
