package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/faults.md says which tests keep known faults out; a reader must find them.
func TestFaultsNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	goTests, webTests := map[string]bool{}, ""
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "node_modules" || name == ".git" || name == ".cache" || name == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		isGo := strings.HasSuffix(path, "_test.go")
		if !isGo && !strings.Contains(path, ".test.") {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !isGo {
			webTests += string(source)
			return nil
		}
		for _, m := range declared.FindAllStringSubmatch(string(source), -1) {
			goTests[filepath.Base(filepath.Dir(path))+"."+m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| row") {
			continue
		}
		rows++
		named := 0
		for _, m := range regexp.MustCompile("`([a-z]+\\.Test\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			named++
			if !goTests[m[1]] {
				t.Errorf("there is no %s, of %s", m[1], cells[0])
			}
		}
		for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(cells[2], -1) {
			named++
			if !strings.Contains(webTests, `"`+m[1]+`"`) {
				t.Errorf("there is no test %q, of %s", m[1], cells[0])
			}
		}
		if named == 0 {
			t.Errorf("nothing keeps %s out", cells[0])
		}
	}
	if rows < 70 {
		t.Errorf("%d rows were read", rows)
	}
}
