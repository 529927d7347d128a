package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/api"
)

// version is set by the linker; a binary from `go install` knows its module's version.
var version = ""

// build is what this binary says of itself.
func build() api.Version {
	v := api.Version{Name: "turnkeeper", Version: version, Go: runtime.Version(), API: 1}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			v := build()
			if a.json {
				return a.printJSON(v)
			}
			_, err := fmt.Fprintf(a.out, "turnkeeper %s (%s, API %d)\n", v.Version, v.Go, v.API)
			return err
		},
	}
}

func (a *app) openapi() *cobra.Command {
	return &cobra.Command{
		Use: "openapi", Short: "Print the API's description (OpenAPI 3.1)",
		RunE: func(*cobra.Command, []string) error {
			doc, err := api.Spec()
			if err != nil {
				return err
			}
			_, err = a.out.Write(doc)
			return err
		},
	}
}
