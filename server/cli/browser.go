package cli

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
)

// openBrowser asks the desktop to show url and does not wait for the page. It fails
// where there is no desktop, as on a server.
func (a *app) openBrowser(ctx context.Context, url string) error {
	name, args, err := a.browserCommand()
	if err != nil {
		return err
	}
	return exec.CommandContext(ctx, name, append(args, url)...).Run()
}

var errNoDesktop = errors.New("there is no desktop to open a browser on")

func (a *app) browserCommand() (name string, args []string, err error) {
	if browser, ok := a.env("BROWSER"); ok && browser != "" {
		return browser, nil, nil
	}
	if runtime.GOOS == "darwin" {
		return "open", nil, nil
	}
	_, x11 := a.env("DISPLAY")
	_, wayland := a.env("WAYLAND_DISPLAY")
	_, wsl := a.env("WSL_DISTRO_NAME")
	if !x11 && !wayland && !wsl {
		return "", nil, errNoDesktop
	}
	if _, err := exec.LookPath("xdg-open"); err != nil {
		return "", nil, err
	}
	return "xdg-open", nil, nil
}
