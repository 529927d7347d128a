package daemon

import "fmt"

// Code is a stable word for why a daemon did not start.
type Code string

const (
	CodeRunning      Code = "already_running" // another daemon holds the directory
	CodeAddressTaken Code = "address_in_use"
	CodeAddress      Code = "address_unusable"
	CodeDirectory    Code = "home_unusable"
	CodeToken        Code = "token_unusable"
	CodeExposed      Code = "token_required" // others could reach it and no token was chosen
	CodeDatabase     Code = "database_unusable"
)

// StartError says why the daemon did not start and what helps, in one line.
type StartError struct {
	Code    Code
	Message string
	PID     int // of the daemon that runs already, if it is known
	Err     error
}

func (e *StartError) Error() string { return string(e.Code) + ": " + e.Message }

func (e *StartError) Unwrap() error { return e.Err }

func startErrorf(code Code, cause error, format string, args ...any) *StartError {
	return &StartError{Code: code, Message: fmt.Sprintf(format, args...), Err: cause}
}
