package daemon

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/turnkeeper/turnkeeper/db"
)

// usage is what the kernel says of a process.
type usage struct {
	rss int64         // bytes
	cpu time.Duration // user and system
}

// ticks is the unit of CPU time in /proc: 100 a second on every Linux that Go runs on.
const tick = 10 * time.Millisecond

func usageOf(tb testing.TB, pid int) usage {
	tb.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		tb.Fatal(err)
	}
	var u usage
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "VmRSS:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				tb.Fatal(err)
			}
			u.rss = kb << 10
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		tb.Fatal(err)
	}
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, field := range f[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		u.cpu += time.Duration(n) * tick
	}
	return u
}

// idle watches a process that has nothing to do.
func idle(tb testing.TB, pid int, d time.Duration) (rss int64, cpuPercent float64) {
	tb.Helper()
	<-time.After(time.Second) // what the start left to do
	before := usageOf(tb, pid)
	<-time.After(d)
	after := usageOf(tb, pid)
	return after.rss, 100 * float64(after.cpu-before.cpu) / float64(d)
}

func medianOf[T cmp.Ordered](values []T) T {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// The bounds here are wide: the test runs beside others, and under the race detector. The
// floors of these figures are rows 18 and 19 of server/bench/floors.json.
func TestFootprint(t *testing.T) {
	var ours, yard []time.Duration
	var last *process
	for range 3 {
		d, p := startTime(t, roleMinimal, t.TempDir())
		p.kill()
		yard = append(yard, d)
		if d, last = startTime(t, roleDaemon, t.TempDir()); len(ours) < 2 {
			last.kill()
		}
		ours = append(ours, d)
	}
	rss, cpu := idle(t, last.cmd.Process.Pid, 2*time.Second)
	t.Logf("start %v (yardstick %v), idle %.1f MB and %.2f %% of a core", medianOf(ours), medianOf(yard), float64(rss)/1e6, cpu)
	if medianOf(ours) > 3*time.Second {
		t.Errorf("starts in %v, the yardstick in %v", medianOf(ours), medianOf(yard))
	}
	if rss > 250e6 {
		t.Errorf("holds %d MB while idle", rss/1e6)
	}
	if cpu > 5 {
		t.Errorf("uses %.1f %% of a core while idle", cpu)
	}
}

// BenchmarkStart is row 18: from the start of the process to its first 200, on a new
// directory.
func BenchmarkStart(b *testing.B) {
	for name, role := range map[string]string{"minimal": roleMinimal, "impl": roleDaemon} {
		b.Run(name, func(b *testing.B) {
			var times []float64
			for range b.N {
				d, p := startTime(b, role, b.TempDir())
				p.kill()
				times = append(times, float64(d)/1e6)
			}
			b.ReportMetric(medianOf(times), "start-ms")
		})
	}
}

// BenchmarkIdle is row 19: a daemon that has nothing to do.
func BenchmarkIdle(b *testing.B) {
	var rss, cpu []float64
	for range b.N {
		_, p := startTime(b, roleDaemon, b.TempDir())
		bytes, percent := idle(b, p.cmd.Process.Pid, 5*time.Second)
		rss, cpu = append(rss, float64(bytes)/1e6), append(cpu, percent)
		p.kill()
	}
	b.ReportMetric(medianOf(rss), "rss-MB")
	b.ReportMetric(medianOf(cpu), "cpu-%")
}

// BenchmarkRestart is row 21: from the start to the first 200 on a database with a million
// messages, after a clean end and after a kill -9 in mid turn.
func BenchmarkRestart(b *testing.B) {
	for _, how := range []struct {
		name string
		sig  syscall.Signal
	}{{"clean", syscall.SIGTERM}, {"killed", syscall.SIGKILL}} {
		b.Run(how.name, func(b *testing.B) {
			home := b.TempDir()
			fillMessages(b, home, 1_000_000)
			var times []float64
			for range b.N {
				p, c := spawnDaemon(b, home)
				ws := c.workspace()
				c.awaitChildren(c.play(ws, "fifty"), 50)
				p.end(how.sig)
				d, next := startTime(b, roleDaemon, home)
				next.kill()
				times = append(times, float64(d)/1e6)
			}
			b.ReportMetric(medianOf(times), "start-ms")
		})
	}
}

// fillMessages puts a history of n messages of 400 bytes into the home's database.
func fillMessages(b *testing.B, home string, n int) {
	b.Helper()
	p, c := spawnDaemon(b, home, "TURNKEEPER_DEMO_SPEED=100")
	ws := c.workspace()
	s := c.play(ws, "plain")
	c.await(ws.ID, "the end of the first turn", rootSettled)
	p.end(syscall.SIGTERM)
	d, err := db.Open(b.Context(), db.Options{Path: filepath.Join(home, "turnkeeper.db"), Synchronous: "normal"})
	if err != nil {
		b.Fatal(err)
	}
	// Copies of the one message that is there, under keys and ids of their own.
	if _, err := d.Writer.ExecContext(b.Context(), copyMessages(b, d), string(s.ID), n); err != nil {
		b.Fatal(err)
	}
	if _, err := d.Writer.ExecContext(b.Context(), "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
	if err := d.Close(); err != nil {
		b.Fatal(err)
	}
}

// copyMessages is the statement that multiplies the session's last message: every column as
// it is, except the key, the id and the body.
func copyMessages(b *testing.B, d *db.DB) string {
	b.Helper()
	rows, err := d.Writer.QueryContext(b.Context(), "SELECT name FROM pragma_table_info('messages')")
	if err != nil {
		b.Fatal(err)
	}
	defer rows.Close()
	var names, values []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			b.Fatal(err)
		}
		value := "m." + name
		switch name {
		case "pk":
			value = "m.pk + n.i"
		case "id":
			value = "m.id || '-' || n.i"
		case "seq":
			value = "m.seq + n.i"
		case "body":
			value = "printf('%.400c', 'x')"
		}
		names, values = append(names, name), append(values, value)
	}
	if err := rows.Err(); err != nil {
		b.Fatal(err)
	}
	return fmt.Sprintf(`WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
		INSERT INTO messages (%s) SELECT %s FROM n CROSS JOIN
		(SELECT m.* FROM messages m JOIN sessions s ON s.pk = m.session WHERE s.id = ?1 ORDER BY m.pk DESC LIMIT 1) m`,
		strings.Join(names, ", "), strings.Join(values, ", "))
}
