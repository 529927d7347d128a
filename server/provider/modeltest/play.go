package modeltest

import (
	"encoding/json"
	"net/http"
)

func (g gateStep) play(p *playing) error {
	if err := p.model.pass(p.ctx, string(g)); err != nil {
		return errOver // the client is gone or the test is over
	}
	return nil
}

func (s silentStep) play(p *playing) error { return gateStep(s).play(p) }

func (s sayStep) play(p *playing) error {
	var over error
	p.Text(func(yield func(string) bool) {
		for i, chunk := range s.chunks {
			if s.gate != "" && i == len(s.chunks)-1 {
				if over = gateStep(s.gate).play(p); over != nil {
					return
				}
			}
			if !yield(chunk) {
				return
			}
		}
	})
	return over
}

func (text thinkStep) play(p *playing) error { p.Think(string(text)); return nil }

func (c ToolCall) play(p *playing) error {
	args, err := p.arguments(c.Args)
	if err == nil {
		p.Call(c, args)
	}
	return err
}

// arguments encodes a call's arguments with their references resolved.
func (p *playing) arguments(args any) (string, error) {
	if args == nil {
		return "{}", nil
	}
	raw, err := json.Marshal(args)
	if err != nil {
		return "", err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return "", err
	}
	if tree, err = p.expand(tree); err != nil {
		return "", err
	}
	raw, err = json.Marshal(tree)
	return string(raw), err
}

func (s statusStep) play(p *playing) error { p.Status(s.code, s.body); return errOver }

func (f failStep) play(p *playing) error { p.Fail(f.code, f.message); return errOver }

func (dropStep) play(*playing) error {
	panic(http.ErrAbortHandler) // net/http's way to cut a connection
}
