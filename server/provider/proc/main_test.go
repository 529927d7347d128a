package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// roleEnv makes the test binary play a child instead of running the tests.
const roleEnv = "PROC_TEST_ROLE"

// fastExit spares children under the race detector its second of goodbye.
const fastExit = "GORACE=atexit_sleep_ms=0"

func TestMain(m *testing.M) {
	if role := os.Getenv(roleEnv); role != "" {
		play(role)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// play is the life of a child. It reports "ready ..." on stdout once what it is
// meant to be is in place.
func play(role string) {
	switch role {
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "fail":
		fmt.Fprintln(os.Stderr, "first")
		fmt.Fprintln(os.Stderr, strings.Repeat("x", 3*maxStderrLine))
		fmt.Fprint(os.Stderr, "last")
		syscall.Exit(3) // os.Exit of a binary built for coverage has its own words on stderr
	case "environ":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "stubborn": // ends by SIGKILL only
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
		fmt.Println("ready")
		forever()
	case "polite": // ignores the end of input, obeys SIGTERM
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println("ready")
		<-c
		os.Exit(7)
	case "chatty":
		for {
			if _, err := os.Stdout.WriteString(strings.Repeat("y", 1000) + "\n"); err != nil {
				return
			}
		}
	case "wrapper": // a descendant in the group keeps stdout open
		fmt.Println("ready", spawn("stubborn-mute", nil, os.Environ()))
	case "wrapper-waits":
		fmt.Println("ready", spawn("stubborn-mute", nil, os.Environ()))
		play("stubborn")
	case "escape-marked": // a descendant outside of the group
		fmt.Println("ready", spawn("stubborn-mute", &syscall.SysProcAttr{Setsid: true}, os.Environ()))
	case "escape-clean": // one that cannot be recognised
		fmt.Println("ready", spawn("stubborn-mute", &syscall.SysProcAttr{Setsid: true}, nil))
		os.Stdout.WriteString(strings.Repeat("z", 32<<10))
	case "escape-chatty":
		fmt.Println("ready", spawn("chatty", &syscall.SysProcAttr{Setsid: true}, nil))
	case "stubborn-mute":
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
		os.NewFile(3, "ready").Close()
		forever()
	case "daemon": // starts a child of its own and waits to be killed
		p, err := Start(Config{Path: self(), Env: []string{roleEnv + "=stubborn", fastExit}, Owner: os.Getenv("TEST_OWNER")})
		if err != nil {
			panic(err)
		}
		line, _ := bufio.NewReader(p.Stdout()).ReadString('\n')
		fmt.Println(strings.TrimSpace(line), p.PID())
		forever()
	case "sweeper":
		killed, err := Sweep(os.Getenv(OwnerEnv))
		fmt.Println("ready", killed, err)
	default:
		panic("unknown role " + role)
	}
}

// forever waits for a signal nobody sends. (With an empty select the runtime
// would call this a deadlock and exit.)
func forever() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR2)
	<-c
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

// spawn starts a descendant that inherits stdout and returns once it is set up
// (its copy of the extra pipe is closed), or at once for one that only writes.
func spawn(role string, attr *syscall.SysProcAttr, env []string) int {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self())
	cmd.Env = append(append([]string{}, env...), roleEnv+"="+role, fastExit)
	cmd.Stdout, cmd.SysProcAttr = os.Stdout, attr
	if role == "stubborn-mute" {
		cmd.ExtraFiles = []*os.File{w}
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	w.Close()
	io.Copy(io.Discard, r)
	return cmd.Process.Pid
}
