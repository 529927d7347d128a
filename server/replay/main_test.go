package replay

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain takes a sample of what is drawn at random where everything takes many times as
// long, unless another number is asked for.
func TestMain(m *testing.M) {
	flag.Parse()
	if raceEnabled {
		asked := map[string]bool{}
		flag.Visit(func(f *flag.Flag) { asked[f.Name] = true })
		for name, value := range map[string]string{"orders": "1", "deaths": "1", "rapid.checks": "10"} {
			if !asked[name] {
				if err := flag.Set(name, value); err != nil {
					println(err.Error())
					os.Exit(2)
				}
			}
		}
	}
	goleak.VerifyTestMain(m)
}
