package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
)

// state is what status prints for programs.
type state struct {
	Running          bool   `json:"running"`
	URL              string `json:"url,omitempty"`
	PID              int    `json:"pid,omitempty"`
	Version          string `json:"version,omitempty"`
	Sessions         int64  `json:"sessions"` // conversations: root sessions
	Agents           int64  `json:"agents"`   // below them, at any depth
	LiveTurns        int64  `json:"liveTurns"`
	PendingQuestions int64  `json:"pendingQuestions"`
	OpenOperations   int64  `json:"openOperations"`
}

func (a *app) status() *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "Say whether a daemon runs, where, and how much it has to do",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runStatus(cmd.Context()) },
	}
	cmd.Flags().String("url", "", "a daemon elsewhere (TURNKEEPER_URL, with TURNKEEPER_TOKEN)")
	return cmd
}

func (a *app) runStatus(ctx context.Context) error {
	d, err := a.remote(ctx)
	if err != nil {
		if a.json {
			if err := a.printJSON(state{}); err != nil {
				return err
			}
		}
		return err
	}
	s, err := d.state(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(s)
	}
	who := "elsewhere"
	if s.PID > 0 {
		who = "pid " + strconv.Itoa(s.PID)
	}
	return a.printPairs(
		[2]string{"daemon", fmt.Sprintf("%s, %s, version %s", s.URL, who, s.Version)},
		[2]string{"sessions", strconv.FormatInt(s.Sessions, 10)},
		[2]string{"agents below them", strconv.FormatInt(s.Agents, 10)},
		[2]string{"live turns", strconv.FormatInt(s.LiveTurns, 10)},
		[2]string{"open questions", strconv.FormatInt(s.PendingQuestions, 10)},
		[2]string{"open operations", strconv.FormatInt(s.OpenOperations, 10)},
	)
}
