package modeltest

import (
	"encoding/json"
	"fmt"
)

// Script holds the replies of each agent by name, in order.
type Script map[string][]Reply

// Reply answers one request of an agent to the model.
type Reply []Step

// Step is one thing a reply does. The set is closed; use the functions below.
type Step interface{ play(*playing) error }

type (
	gateStep   string
	silentStep string
	sayStep    struct {
		chunks []string
		gate   string // before the last chunk, if there is one
	}
	thinkStep  string
	statusStep struct {
		code int
		body string
	}
	failStep struct{ code, message string }
	dropStep struct{}
)

// Gate holds the reply until [Model.Open] is called with the same name. The program
// sees a model that has begun to answer and thinks.
func Gate(name string) Step { return gateStep(name) }

// Silent is a gate before anything at all is answered: the call hangs. It must stand
// before every other step.
func Silent(name string) Step { return silentStep(name) }

// Say sends an assistant message in one piece.
func Say(text string) Step { return SayIn(1, text) }

// SayIn sends an assistant message in n pieces of about equal length.
func SayIn(n int, text string) Step {
	n = max(1, n)
	runes := []rune(text) // a piece must not cut a character
	s := sayStep{}
	for i := range n {
		s.chunks = append(s.chunks, string(runes[len(runes)*i/n:len(runes)*(i+1)/n]))
	}
	return s
}

// SayPieces sends an assistant message in exactly these pieces.
func SayPieces(pieces ...string) Step { return sayStep{chunks: pieces} }

// SayAround sends an assistant message in two pieces with a gate between them.
func SayAround(gate, before, after string) Step {
	return sayStep{chunks: []string{before, after}, gate: gate}
}

// Think sends reasoning.
func Think(text string) Step { return thinkStep(text) }

// Status answers with an HTTP error instead of a stream. Only gates may stand
// before it and nothing after it.
func Status(code int, body string) Step { return statusStep{code, body} }

// Fail ends the reply with an error event in the stream.
func Fail(code, message string) Step { return failStep{code, message} }

// Drop cuts the connection in the middle of the stream.
func Drop() Step { return dropStep{} }

// ToolCall is a step in which the model calls a tool.
type ToolCall struct {
	ID, Namespace, Tool string
	Args                any
}

// Call makes the model call a tool. args is anything that encodes as a JSON
// object (nil: an empty one); its strings may hold [OutputOf] and [ThreadOf].
// The call id is the request's own unless set with As.
func Call(tool string, args any) ToolCall { return ToolCall{Tool: tool, Args: args} }

// As sets the call id, by which items on the program's side are known.
func (c ToolCall) As(id string) ToolCall { c.ID = id; return c }

// In sets the tool's namespace.
func (c ToolCall) In(namespace string) ToolCall { c.Namespace = namespace; return c }

// OutputOf stands for a field of the JSON object that the earlier tool call
// with this id returned.
func OutputOf(callID, field string) string { return "@{output " + callID + " " + field + "}" }

// ThreadOf stands for the id of an agent that has made a request, as the program names it.
func ThreadOf(agent string) string { return "@{thread " + agent + "}" }

// Mark is how a prompt names the agent that gets it.
func Mark(agent string) string { return "<<" + agent + ">>" }

// check refuses what could not be played.
func (s Script) check() error {
	for agent, replies := range s {
		for i, reply := range replies {
			for j, step := range reply {
				if err := checkStep(reply, j, step); err != nil {
					return fmt.Errorf("agent %s, reply %d, step %d: %w", agent, i+1, j+1, err)
				}
			}
		}
	}
	return nil
}

func checkStep(reply Reply, at int, step Step) error {
	switch s := step.(type) {
	case nil:
		return fmt.Errorf("no step")
	case ToolCall:
		if _, err := json.Marshal(s.Args); err != nil {
			return err
		}
	case statusStep:
		for _, before := range reply[:at] {
			if !isGate(before) {
				return fmt.Errorf("a status must be first")
			}
		}
	case silentStep:
		for _, before := range reply[:at] {
			if _, ok := before.(silentStep); !ok {
				return fmt.Errorf("nobody is silent after having spoken")
			}
		}
	}
	switch step.(type) {
	case statusStep, failStep, dropStep:
		if at < len(reply)-1 {
			return fmt.Errorf("nothing can follow the end of a reply")
		}
	}
	return nil
}

func isGate(s Step) bool {
	switch s.(type) {
	case gateStep, silentStep:
		return true
	}
	return false
}

// wantsStatus tells whether the reply is an HTTP error.
func (r Reply) wantsStatus() bool {
	if len(r) == 0 {
		return false
	}
	_, ok := r[len(r)-1].(statusStep)
	return ok
}
