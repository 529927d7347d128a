package main

import (
	"fmt"
	"os"
	"sync"
	"testing"
)

// bench is the part of a test that the scripted models report to, without a test. It has
// what they use of [testing.TB]; whatever else is called fails at once.
type bench struct {
	testing.TB

	mu       sync.Mutex
	problems []string
	cleanups []func()
}

func (b *bench) Helper()      {}
func (b *bench) Name() string { return "modelserver" }

func (b *bench) Errorf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

func (b *bench) Fatal(args ...any) { b.Fatalf("%s", fmt.Sprint(args...)) }

func (b *bench) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	b.clean()
	os.Exit(1)
}

func (b *bench) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

func (b *bench) TempDir() string {
	dir, err := os.MkdirTemp("", "modelserver-")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			b.Errorf("%v", err)
		}
	})
	return dir
}

// said are the problems so far.
func (b *bench) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string{}, b.problems...)
}

// clean runs what was registered, the last first, once.
func (b *bench) clean() {
	b.mu.Lock()
	all := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	for i := len(all) - 1; i >= 0; i-- {
		all[i]()
	}
}
