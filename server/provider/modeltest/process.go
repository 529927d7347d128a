package modeltest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
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
	list, err := processesOf(home)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func processesOf(home string) ([]Proc, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var left []Proc
	for _, path := range environs {
		env, err := os.ReadFile(path)
		if err != nil || !strings.Contains("\x00"+string(env), "\x00HOME="+home+"\x00") {
			continue // another user's, or just gone
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		cmd, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		left = append(left, Proc{pid, strings.TrimSpace(strings.ReplaceAll(string(cmd), "\x00", " "))})
	}
	return left, nil
}

// UntilGone waits until no process of a home has a command line that holds the text.
// Nobody tells of the end of another's child, so that there is nothing to wait for.
func UntilGone(ctx context.Context, home, text string) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		left, err := processesOf(home)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(left, func(p Proc) bool { return strings.Contains(p.Command, text) }) {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("modeltest: still running: %v: %w", left, ctx.Err())
		}
	}
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
