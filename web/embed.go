// Package web carries the built web view inside the binary. It owns nothing but the
// files: who may read them, and under which headers, is package api's.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Dist returns the built view, with index.html at its top. In a checkout where the
// view was never built it holds no index.html; the server then says how to build it.
func Dist() fs.FS {
	sub, err := fs.Sub(dist, "dist")
	if err != nil { // the directory is embedded, so its name cannot be wrong
		panic(err)
	}
	return sub
}
