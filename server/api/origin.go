package api

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

const localhost = "localhost"

// originCheck keeps other sites out: Host stops a page that has pointed its own name at
// us (DNS rebinding), Origin one that calls us across sites.
type originCheck struct {
	hosts   map[string]bool
	origins map[string]bool
	cross   *http.CrossOriginProtection
}

func newOriginCheck(hosts, origins []string) *originCheck {
	c := &originCheck{
		hosts:   map[string]bool{},
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
	name := hostName(r)
	return c.hosts[name] || isLoopback(name)
}

// hostName is the name that the request was sent to, without port.
func hostName(r *http.Request) string {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	return strings.ToLower(strings.Trim(name, "[]"))
}

func isLoopback(name string) bool {
	if name == localhost {
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

// local reports whether r was asked on this machine. A proxy that runs here is a peer of
// this machine that asks for somebody else: it is known by the name it was sent to or by
// what it adds.
func (c *originCheck) local(r *http.Request) bool {
	for _, h := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip", "Via"} {
		if len(r.Header.Values(h)) > 0 {
			return false
		}
	}
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && ap.Addr().Unmap().IsLoopback() && isLoopback(hostName(r))
}
