package db

import "strings"

// EventColumns is the number of parameters of one row of InsertEvents.
const EventColumns = 7

// InsertEvents returns the statement that appends n events at once. It is built here
// because the generator cannot repeat a VALUES group, and one statement for all events of a
// change is what keeps the gate within its budget. OR FAIL spares SQLite the copy of every
// page that it would need to undo the statement alone: the caller undoes more than that.
func InsertEvents(n int) string {
	const head = "INSERT OR FAIL INTO events (pk, at, kind, session_id, turn_id, root_id, data) VALUES "
	const group = "(?,?,?,?,?,?,?)"
	var b strings.Builder
	b.Grow(len(head) + n*(len(group)+1))
	b.WriteString(head)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(group)
	}
	return b.String()
}
