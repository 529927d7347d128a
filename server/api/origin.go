package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// originCheck keeps other sites out: Host stops a page that has pointed its own name at
// us (DNS rebinding), Origin one that calls us across sites.
type originCheck struct {
	hosts   map[string]bool
	origins map[string]bool
	cross   *http.CrossOriginProtection
}

func newOriginCheck(hosts, origins []string) *originCheck {
	c := &originCheck{
		hosts:   map[string]bool{"localhost": true},
		origins: map[string]bool{},
		cross:   http.NewCrossOriginProtection(),
	}
	for _, h := range hosts {
		c.hosts[strings.ToLower(strings.Trim(h, "[]"))] = true
	}
	for _, o := range origins {
		if c.cross.AddTrustedOrigin(o) == nil { // a malformed one is trusted by nobody
			c.origins[strings.ToLower(o)] = true
		}
	}
	return c
}

// host reports whether we answer to the name that the request was sent to.
func (c *originCheck) host(r *http.Request) bool {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if c.hosts[name] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.IsLoopback()
}

// request reports whether a request that may change something comes from our own pages,
// or from no page at all.
func (c *originCheck) request(r *http.Request) bool { return c.cross.Check(r) == nil }

// socket is the same question for a WebSocket. Its handshake is a GET, which the check of
// requests lets pass, so the Origin header decides alone.
func (c *originCheck) socket(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" { // not a browser
		return true
	}
	if c.origins[strings.ToLower(origin)] {
		return true
	}
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && strings.EqualFold(u.Host, r.Host)
}

// fromLoopback reports whether the peer is on this machine.
func fromLoopback(r *http.Request) bool {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
