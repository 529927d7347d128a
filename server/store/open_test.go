package store

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/turnkeeper/turnkeeper/db"
	"github.com/turnkeeper/turnkeeper/server/agent"
)

// A file that is not ours to open is refused in words that help, and not touched.
func TestFilesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		name, sql, says string
		code            agent.Code
	}{
		{"of a newer version", "CREATE TABLE future (x); PRAGMA user_version = 999", "written by a newer", agent.CodeInvalid},
		{"of another program", "CREATE TABLE bookmarks (url)", "another program", agent.CodeInvalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := pathIn(t)
			other, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Exec(c.sql); err != nil {
				t.Fatal(err)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Open(background(t), Options{Path: path, Logger: quiet()})
			if !errors.Is(err, code(c.code)) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
			if c.code == agent.CodeInvalid && strings.Contains(err.Error(), "newer") {
				var newer *db.NewerError
				if !errors.As(err, &newer) || newer.Have != 999 {
					t.Errorf("got %#v", err)
				}
			}
			after, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// The header says that the file has a log from here on; nothing else may change.
			if len(after) != len(before) || string(after[100:]) != string(before[100:]) {
				t.Error("the file was changed")
			}
		})
	}
	t.Run("that are no database", func(t *testing.T) {
		path := pathIn(t)
		if err := os.WriteFile(path, []byte(strings.Repeat("not a database. ", 400)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Open(background(t), Options{Path: path, Logger: quiet()})
		if !errors.Is(err, code(agent.CodeInternal)) || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("with a word that is no mode", func(t *testing.T) {
		if _, err := Open(background(t), Options{Path: pathIn(t), Synchronous: "sometimes", Logger: quiet()}); err == nil {
			t.Error("no error")
		}
	})
}

// A path may hold anything that a file system allows.
func TestOddPaths(t *testing.T) {
	for _, name := range []string{"with space", "50%", "what?", "a#b", "ünï"} {
		path := t.TempDir() + "/" + name + ".db"
		w := open(t, onDisk(path))
		w.begin()
		w.must(w.Close())
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A private database is one file's life, and leaves nothing.
func TestMemoryLeavesNothing(t *testing.T) {
	w := open(t, onDisk(Memory))
	w.begin()
	dir := w.db.Path
	w.must(w.Close())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}
