package modeltest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Proc is a process that is running.
type Proc struct {
	PID     int
	Command string
}

// ProcessesOf lists processes whose environment names that home: whatever the program
// started has it, in whatever group or session.
func ProcessesOf(t testing.TB, home string) []Proc {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	var left []Proc
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(env), "\x00HOME="+home+"\x00") {
			continue // another user's, or just gone
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		left = append(left, Proc{pid, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " "))})
	}
	return left
}

// Kill kills the processes of a home whose command line holds the text, and no others.
func Kill(t testing.TB, home, text string) {
	t.Helper()
	for _, p := range ProcessesOf(t, home) {
		if strings.Contains(p.Command, text) {
			if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
}
