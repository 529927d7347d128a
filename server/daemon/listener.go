package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Listener is the content of the listener file: where the daemon of this directory can
// be reached. It is there only while the daemon is ready.
type Listener struct {
	URL       string    `json:"url"`
	Address   string    `json:"address"`
	PID       int       `json:"pid"`
	Version   string    `json:"version"`
	StartedAt time.Time `json:"startedAt"`
}

// ReadListener reads the listener file. It may be left over from a daemon that was
// killed: whoever uses it must find out whether anybody answers.
func ReadListener(path string) (Listener, error) {
	var l Listener
	raw, err := os.ReadFile(path)
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(raw, &l)
}

// listen takes the address, or a free port beside it where anyPort allows that.
func listen(ctx context.Context, address string, anyPort bool) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err == nil {
		return l, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, startErrorf(CodeAddress, err, "cannot listen on %s: %v", address, err)
	}
	host, _, splitErr := net.SplitHostPort(address)
	if anyPort && splitErr == nil {
		if l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0")); err == nil {
			return l, nil
		}
	}
	return nil, startErrorf(CodeAddressTaken, err, "something else listens on %s; take a free port with --listen %s, or end what holds it", address, net.JoinHostPort(host, "0"))
}

// urlOf is what a browser on this machine opens: an address that means "everywhere" is
// not one that it can go to.
func urlOf(addr net.Addr) string {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return "http://" + addr.String()
	}
	host := tcp.IP.String()
	if tcp.IP.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
