package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) open() *cobra.Command {
	var onlyPrint bool
	cmd := &cobra.Command{
		Use: "open", Short: "Open the running daemon's web view, signed in by a code that works once",
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runOpen(cmd.Context(), onlyPrint) },
	}
	cmd.Flags().BoolVar(&onlyPrint, "print", false, "only print the address")
	cmd.Flags().String("url", "", "a daemon elsewhere (TURNKEEPER_URL, with TURNKEEPER_TOKEN)")
	return cmd
}

func (a *app) runOpen(ctx context.Context, onlyPrint bool) error {
	d, err := a.remote(ctx)
	if err != nil {
		return err
	}
	url, err := d.loginURL(ctx)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(map[string]string{"url": url})
	} else {
		_, err = fmt.Fprintln(a.out, url)
	}
	if err != nil || onlyPrint {
		return err
	}
	if err := a.openBrowser(ctx, url); err != nil {
		return fmt.Errorf("no browser was opened (%w): open the address above yourself, within two minutes", err)
	}
	return nil
}
