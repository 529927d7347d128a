#!/usr/bin/env bash
# Prints the path of a Chromium or Chrome that runs, bringing one where none is
# installed. Messages go to stderr. In order: TURNKEEPER_CHROMIUM, what is installed,
# Debian's package (as root, or with a sudo that asks nothing), Playwright's own build.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { echo "browser.sh: $*" >&2; }

# runs PATH: it starts at all. A stub that only tells to install a snap does not.
runs() { [ -x "$1" ] && timeout 30 "$1" --version </dev/null >/dev/null 2>&1; }

found() { echo "$1"; exit 0; }

installed() {
	local name path
	for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
		path="$(command -v "$name" 2>/dev/null)" && runs "$path" && found "$path"
	done
	for path in \
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
		"/Applications/Chromium.app/Contents/MacOS/Chromium" \
		"$HOME/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
		"$HOME/Applications/Chromium.app/Contents/MacOS/Chromium"; do
		runs "$path" && found "$path"
	done
	return 0
}

# Ubuntu's package of the same name is a stub for a snap: only Debian's is a browser.
debian() {
	[ -r /etc/os-release ] && grep -qx 'ID=debian' /etc/os-release && command -v apt-get >/dev/null || return 0
	local as_root=()
	if [ "$(id -u)" -ne 0 ]; then
		sudo -n true 2>/dev/null || return 0
		as_root=(sudo -n)
	fi
	say "no browser is installed; installing Debian's chromium"
	{
		"${as_root[@]}" apt-get update -qq &&
			"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium
	} </dev/null >&2 || say "apt-get could not install chromium"
	installed
}

playwright() {
	[ -d web/node_modules/playwright-core ] || return 0
	local path deps=()
	where() { (cd web && node -e 'console.log(require("playwright-core").chromium.executablePath())'); }
	path="$(where)" || return 0
	runs "$path" && found "$path"
	[ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null && deps=(--with-deps)
	say "no browser is installed; fetching Playwright's build of Chromium"
	(cd web && npx playwright-core install "${deps[@]}" chromium) </dev/null >&2 || say "Playwright could not install its Chromium"
	runs "$path" && found "$path"
	return 0
}

if [ -n "${TURNKEEPER_CHROMIUM:-}" ]; then
	runs "$TURNKEEPER_CHROMIUM" && found "$TURNKEEPER_CHROMIUM"
	say "TURNKEEPER_CHROMIUM=$TURNKEEPER_CHROMIUM does not run"
	exit 1
fi
installed
debian
playwright
say "no browser could be found or installed. Install one and try again:"
if [ "$(uname)" = Darwin ]; then
	say "    brew install --cask chromium"
else
	say "    sudo apt-get install chromium      (or set TURNKEEPER_CHROMIUM to one that is installed)"
fi
exit 1
