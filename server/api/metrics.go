package api

import (
	"context"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics has labels from closed sets only: the route's pattern, the class of the
// status, the kind of a diagnostic. Nothing a client sends becomes a label.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	sockets  prometheus.Gauge
	closes   *prometheus.CounterVec
	frames   prometheus.Counter
	writes   atomic.Int64 // system calls of all sockets
}

func newMetrics(a *API) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "turnkeeper_http_requests_total", Help: "Requests answered, by route and class of status.",
		}, []string{"route", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "turnkeeper_http_request_seconds", Help: "Time to answer, by route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}, []string{"route"}),
		sockets: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "turnkeeper_stream_clients", Help: "Open sockets of the stream.",
		}),
		closes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "turnkeeper_stream_closes_total", Help: "Sockets that ended, by reason.",
		}, []string{"reason"}),
		frames: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "turnkeeper_stream_frames_total", Help: "Frames handed to sockets.",
		}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.sockets, m.closes, m.frames,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), &storedCounts{api: a})
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
}

// begin starts the clock of one request and returns what stops it.
func (m *metrics) begin() func(r *http.Request, status int) {
	start := time.Now()
	return func(r *http.Request, status int) {
		if status == http.StatusSwitchingProtocols {
			return // a socket's life is not a request's time
		}
		route := routeOf(r.Pattern)
		m.requests.WithLabelValues(route, strconv.Itoa(status/100)+"xx").Inc()
		m.seconds.WithLabelValues(route).Observe(time.Since(start).Seconds())
	}
}

// routeOf is the pattern that matched, a closed set; "" means refused before the mux.
func routeOf(pattern string) string {
	switch pattern {
	case "":
		return "refused"
	case routePage:
		return "page"
	}
	return pattern
}

// storedCounts asks storage when it is scraped, and only then.
type storedCounts struct{ api *API }

const countsTimeout = 2 * time.Second

var (
	descSessions   = prometheus.NewDesc("turnkeeper_sessions", "Sessions stored, roots and children.", nil, nil)
	descRoots      = prometheus.NewDesc("turnkeeper_root_sessions", "Root sessions stored: conversations.", nil, nil)
	descLive       = prometheus.NewDesc("turnkeeper_live_turns", "Turns that have not settled.", nil, nil)
	descQuestions  = prometheus.NewDesc("turnkeeper_pending_interactions", "Questions that nobody has answered.", nil, nil)
	descOperations = prometheus.NewDesc("turnkeeper_open_operations", "Operations that are still to be carried out.", nil, nil)
	descBelow      = prometheus.NewDesc("turnkeeper_open_below_settled", "Live turns below a settled root turn; must be 0.", nil, nil)
	descRing       = prometheus.NewDesc("turnkeeper_hub_ring_bytes", "Encoded events kept for those who follow.", nil, nil)
	descTexts      = prometheus.NewDesc("turnkeeper_hub_text_bytes", "Text kept of messages that still stream.", nil, nil)
	descPages      = prometheus.NewDesc("turnkeeper_hub_log_reads_total", "Reads of the log for those who lag behind the ring.", nil, nil)
	descDiagnosed  = prometheus.NewDesc("turnkeeper_provider_diagnostics_total", "Provider frames that could not become facts.", []string{"kind"}, nil)
)

func (c *storedCounts) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSessions, descRoots, descLive, descQuestions, descOperations, descBelow, descRing, descTexts, descPages, descDiagnosed} {
		ch <- d
	}
}

func (c *storedCounts) Collect(ch chan<- prometheus.Metric) {
	if c.api.deps.Diagnostics != nil {
		for kind, n := range c.api.deps.Diagnostics() {
			ch <- prometheus.MustNewConstMetric(descDiagnosed, prometheus.CounterValue, float64(n), kind)
		}
	}
	if c.api.deps.Hub != nil {
		h := c.api.deps.Hub.Stats()
		ch <- prometheus.MustNewConstMetric(descRing, prometheus.GaugeValue, float64(h.RingBytes))
		ch <- prometheus.MustNewConstMetric(descTexts, prometheus.GaugeValue, float64(h.TextBytes))
		ch <- prometheus.MustNewConstMetric(descPages, prometheus.CounterValue, float64(h.PagesRead))
	}
	if c.api.deps.Reader == nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.api.closing, countsTimeout)
	defer cancel()
	n, err := c.api.deps.Reader.Counts(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(descBelow, err)
		return
	}
	for d, v := range map[*prometheus.Desc]int64{
		descSessions: n.Sessions, descRoots: n.RootSessions, descLive: n.LiveTurns, descQuestions: n.PendingQuestions,
		descOperations: n.OpenOperations, descBelow: n.OpenBelowSettled,
	} {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
}
