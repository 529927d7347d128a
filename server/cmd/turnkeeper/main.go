// Command turnkeeper is the daemon and its command line in one binary. Everything it
// does is in server/cli; this only hands over.
package main

import (
	"os"

	"github.com/turnkeeper/turnkeeper/server/cli"
)

func main() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
