package provider

// Go runs f in a goroutine of the runtime that reports to s. Where the sink can, a
// panic in f ends that runtime instead of the daemon; adapters start their goroutines
// with it.
func Go(s Sink, f func()) {
	if g, ok := s.(interface{ Go(f func()) }); ok {
		g.Go(f)
		return
	}
	go f()
}
