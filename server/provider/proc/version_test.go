package proc

import "testing"

func TestOlderThan(t *testing.T) {
	for _, c := range []struct {
		version string
		want    bool
	}{{"2.1.331", true}, {"2.1.332", false}, {"2.1.333-beta", false}, {"2.0.999", true}, {"1.9.9", true}, {"3.0.0", false}, {"dev", false}, {"", false}, {"2.1", false}} {
		if got := OlderThan(c.version, "2.1.332"); got != c.want {
			t.Errorf("%q older: %v", c.version, got)
		}
	}
}
