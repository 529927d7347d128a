package live

// Actors says how many sessions the registry holds.
func (l *Live) Actors() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.actors)
}
