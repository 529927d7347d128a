package daemon

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// playMinimal is the yardstick of start and memory: SQLite and thirty operations of the
// same library, and nothing of this project. It runs until it is killed.
func playMinimal() int {
	ctx := context.Background()
	file, err := sql.Open("sqlite", "file:"+os.Getenv("TURNKEEPER_HOME")+"/minimal.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer file.Close()
	if _, err := file.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS things (id INTEGER PRIMARY KEY, name TEXT) STRICT"); err != nil {
		fmt.Println(err)
		return 1
	}
	mux := http.NewServeMux()
	api := humago.New(mux, huma.DefaultConfig("Minimal", "1"))
	type answer struct {
		Body struct {
			Things int64 `json:"things"`
		}
	}
	for i := range 30 {
		path := fmt.Sprintf("/things%d", i)
		if i == 0 {
			path = "/healthz"
		}
		huma.Register(api, huma.Operation{OperationID: fmt.Sprintf("read%d", i), Method: http.MethodGet, Path: path},
			func(ctx context.Context, _ *struct{}) (*answer, error) {
				var a answer
				return &a, file.QueryRowContext(ctx, "SELECT count(*) FROM things").Scan(&a.Body.Things)
			})
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(Listener{URL: "http://" + l.Addr().String(), PID: os.Getpid()}); err != nil {
		return 1
	}
	fmt.Println(http.Serve(l, mux)) //nolint:gosec // a yardstick on loopback, killed by its test
	return 1
}
