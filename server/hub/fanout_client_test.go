package hub_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// clientEnv, set to an address, makes this test binary the process of the clients: its
// argument says how many. It prints how many messages have come, and the 99th percentile
// of their age, until its standard input ends.
const clientEnv = "TURNKEEPER_FANOUT_CLIENT"

func runClients(addr string, args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	var total atomic.Int64
	var ages ages
	conns := make([]net.Conn, n)
	var wg sync.WaitGroup
	for i := range conns {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		conns[i] = c
		r := bufio.NewReaderSize(c, 16<<10)
		if err := handshake(c, r); err != nil {
			return err
		}
		wg.Go(func() { receive(r, &total, &ages) })
	}
	ended := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(ended) }()
	for tick := time.NewTicker(500 * time.Microsecond); ; {
		select {
		case <-tick.C:
			fmt.Println(total.Load(), ages.p99())
			continue
		case <-ended:
		}
		break
	}
	for _, c := range conns {
		_ = c.Close()
	}
	wg.Wait()
	return nil
}

func handshake(c net.Conn, r *bufio.Reader) error {
	const hello = `{"type":"hello","v":1}`
	_, err := fmt.Fprintf(c, "GET /v1/workspaces/ws_1/events/stream HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nAuthorization: Bearer %s\r\n\r\n", secret)
	if err != nil {
		return err
	}
	status, err := r.ReadString('\n')
	if err != nil || !bytes.Contains([]byte(status), []byte("101")) {
		return fmt.Errorf("handshake: %q: %w", status, err)
	}
	for line := status; len(line) > 2; {
		if line, err = r.ReadString('\n'); err != nil {
			return err
		}
	}
	_, err = c.Write(append([]byte{0x81, 0x80 | byte(len(hello)), 0, 0, 0, 0}, hello...))
	return err
}

// receive counts the event frames of one connection.
func receive(r *bufio.Reader, total *atomic.Int64, a *ages) {
	var buf []byte
	for {
		b, err := readFrame(r, buf)
		if err != nil {
			return
		}
		buf = b
		if len(b) < 200 { // ready, heartbeat
			continue
		}
		total.Add(1)
		a.add(b)
	}
}

func readFrame(r *bufio.Reader, buf []byte) ([]byte, error) {
	var h [10]byte
	if _, err := io.ReadFull(r, h[:2]); err != nil {
		return nil, err
	}
	n := int(h[1])
	switch n {
	case 126:
		if _, err := io.ReadFull(r, h[2:4]); err != nil {
			return nil, err
		}
		n = int(binary.BigEndian.Uint16(h[2:4]))
	case 127:
		return nil, errors.New("a frame that large is not ours")
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	_, err := io.ReadFull(r, buf[:n])
	return buf[:n], err
}

// ages keeps how old some of the messages were when they came.
type ages struct {
	mu   sync.Mutex
	n    int
	list []int64
}

var timeKey = []byte(`"time":"`)

func (a *ages) add(frame []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n++; a.n%10 != 0 { // one in ten: looking costs the clients' time
		return
	}
	i := bytes.Index(frame, timeKey)
	if i < 0 {
		return
	}
	s := frame[i+len(timeKey):]
	sent, err := time.Parse(time.RFC3339Nano, string(s[:bytes.IndexByte(s, '"')]))
	if err != nil {
		return
	}
	if len(a.list) >= 5000 {
		a.list = a.list[1000:]
	}
	a.list = append(a.list, time.Since(sent).Microseconds())
}

func (a *ages) p99() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n%100 != 0 { // most lines only carry the total
		return -1
	}
	list := append([]int64(nil), a.list...)
	return percentile(list, 0.99)
}
