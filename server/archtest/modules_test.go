package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

type goMod struct {
	Require []struct{ Path, Version string }
	Replace []any
}

func readGoMod(t *testing.T, path string) goMod {
	t.Helper()
	out, err := goTool("mod", "edit", "-json", path)
	if err != nil {
		t.Fatal(err)
	}
	var m goMod
	if err := json.Unmarshal(out, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m goMod) version(path string) string {
	for _, r := range m.Require {
		if r.Path == path {
			return r.Version
		}
	}
	return ""
}

// The SQLite driver is C translated against one exact libc. Its authors ask for exactly
// the version that its own go.mod names: another one may corrupt memory in silence. Any
// `go get` of something else can raise it (docs/adr/0001).
func TestLibcIsTheOneThatSQLiteAsksFor(t *testing.T) {
	out, err := goTool("list", "-m", "-f", "{{.GoMod}}", "modernc.org/sqlite")
	if err != nil {
		t.Fatal(err)
	}
	want := readGoMod(t, strings.TrimSpace(string(out))).version("modernc.org/libc")
	out, err = goTool("list", "-m", "-f", "{{.Version}}", "modernc.org/libc")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(out)); got != want || want == "" {
		t.Errorf("modernc.org/libc is %s, but modernc.org/sqlite asks for %s: go get modernc.org/libc@%s", got, want, want)
	}
}

// `go install …@latest` refuses a module with replace directives.
func TestNothingIsReplaced(t *testing.T) {
	if m := readGoMod(t, "go.mod"); len(m.Replace) > 0 {
		t.Errorf("go.mod has replace directives: %v", m.Replace)
	}
}

// npm packages can contain Go files, and ./... would build them.
func TestNodeModulesAreIgnored(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root(), "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(raw, []byte("ignore ./web/node_modules")) {
		t.Error("go.mod lacks: ignore ./web/node_modules")
	}
}

// licences that ask no more than to keep their text, by a phrase that only they contain.
var licences = []struct{ name, phrase string }{
	{"MIT", "permission is hereby granted, free of charge, to any person obtaining"},
	{"Apache-2.0", "apache license version 2.0"},
	{"BSD", "redistribution and use in source and binary forms, with or without modification"},
	{"ISC", "permission to use, copy, modify, and/or distribute this software for any purpose"},
	{"ISC", "permission to use, copy, modify, and distribute this software for any purpose"},
	{"MPL-2.0", "mozilla public license version 2.0"},
	{"Unlicense", "this is free and unencumbered software released into the public domain"},
}

// The binary may hold only what lets anybody pass it on.
func TestLicencesOfGoModules(t *testing.T) {
	out, err := goTool("list", "-deps", "-json=Module", "./server/cmd/turnkeeper")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{module: true}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *struct{ Path, Dir string } }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module == nil || seen[p.Module.Path] {
			continue
		}
		seen[p.Module.Path] = true
		if name := licenceOf(t, p.Module.Dir); name == "" {
			t.Errorf("%s has no licence that is known to be permissive", p.Module.Path)
		}
	}
}

func licenceOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		upper := strings.ToUpper(e.Name())
		if !strings.HasPrefix(upper, "LICENSE") && !strings.HasPrefix(upper, "LICENCE") && !strings.HasPrefix(upper, "COPYING") && upper != "UNLICENSE" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.ToLower(strings.Join(strings.Fields(string(raw)), " "))
		for _, l := range licences {
			if strings.Contains(flat, l.phrase) {
				return l.name
			}
		}
	}
	return ""
}

// permissive are the licences that packages of the web view may have, as npm names them.
var permissive = []string{"MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "(MPL-2.0 OR Apache-2.0)"}

// What the browser is sent is part of the binary; what only builds or tests it is not.
func TestLicencesOfTheWebView(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(root(), "web", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			License string
			Dev     bool
		}
	}
	if err := json.Unmarshal(raw, &lock); err != nil {
		t.Fatal(err)
	}
	for path, p := range lock.Packages {
		if path != "" && !p.Dev && !slices.Contains(permissive, p.License) {
			t.Errorf("web: %s has licence %q, which is not known to be permissive", path, p.License)
		}
	}
}
