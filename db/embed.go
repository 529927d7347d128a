// Package db owns the SQLite file: its schema, how it is opened and how it moves to a
// newer schema. It knows tables and pragmas, never what a row means; the statements
// are generated into db/dbgen from queries/.
package db

import "embed"

//go:embed migrations/*.sql
var migrations embed.FS
