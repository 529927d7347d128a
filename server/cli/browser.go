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
	name, err := a.browserCommand()
	if err != nil {
		return err
	}
	return exec.CommandContext(ctx, name, url).Run()
}

var errNoDesktop = errors.New("there is no desktop to open a browser on")

// browserCommand is the program that takes an address to show.
func (a *app) browserCommand() (string, error) {
	if browser, ok := a.env("BROWSER"); ok && browser != "" {
		return browser, nil
	}
	if runtime.GOOS == "darwin" {
		return "open", nil
	}
	_, x11 := a.env("DISPLAY")
	_, wayland := a.env("WAYLAND_DISPLAY")
	_, wsl := a.env("WSL_DISTRO_NAME")
	if !x11 && !wayland && !wsl {
		return "", errNoDesktop
	}
	if _, err := exec.LookPath("xdg-open"); err != nil {
		return "", err
	}
	return "xdg-open", nil
}
