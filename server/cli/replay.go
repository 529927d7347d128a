package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/turnkeeper/turnkeeper/server/replay"
)

func (a *app) replay() *cobra.Command {
	var provider string
	cmd := &cobra.Command{
		Use: "replay FILE", Short: "Feed a recording through the real adapter in virtual time and print the end",
		Long: "Feeds a recording of a provider's process (JSON lines) through the real adapter into a fresh\n" +
			"database in memory, and prints the sessions, turns and questions it ends with; --json prints\n" +
			"every entity whole. FILE may be - for standard input. Nothing is started and nothing is kept.\n" +
			"The exit code is 1 if the recording cannot be read or an invariant does not hold.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if provider == "" {
				return usageErrorf("say whose recording it is with --provider, for example --provider codex")
			}
			in, err := a.recording(args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			end, err := replay.Run(cmd.Context(), provider, in)
			if err != nil {
				return fmt.Errorf("replay %s: %w", args[0], err)
			}
			return a.printEnd(end)
		},
	}
	cmd.Flags().StringVar(&provider, "provider", "", "whose recording it is: codex, claude or acp")
	return cmd
}

func (a *app) recording(path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(a.in), nil
	}
	return os.Open(path)
}

// printEnd prints what a recording came to. An invariant that does not hold is an error
// after that: what is wrong must be there to be looked at.
func (a *app) printEnd(end *replay.End) error {
	var err error
	if a.json {
		err = a.printJSON(end)
	} else {
		err = end.Summary(a.out)
	}
	if err == nil && !end.Invariants.Hold() {
		i := end.Invariants
		err = fmt.Errorf("invariants do not hold: openBelowSettled %d, settledTwice %d; please report this with the recording", i.OpenBelowSettled, i.SettledTwice)
	}
	return err
}
