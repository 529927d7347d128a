package claude

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/turnkeeper/turnkeeper/server/agent"
)

// The answer to the recorded question is the recorded answer.
func TestQuestionOfTheRoot(t *testing.T) {
	q := asked(t, "l_ask_user_question_root")[0]
	i := q.interaction
	want := []agent.Question{{ID: "q1", Text: "Which colour should we use?", Options: []agent.Option{
		{ID: "Red", Label: "Red", Role: agent.RoleOther, Description: "A warm colour"},
		{ID: "Blue", Label: "Blue", Role: agent.RoleOther, Description: "A cold colour"},
	}}}
	if d := cmp.Diff(want, i.Detail.Questions); d != "" || i.Kind != agent.InteractionQuestion || i.Title != "Colour" || q.agentID != "" {
		t.Errorf("%s\n%+v", d, i)
	}
	var recorded string
	for _, line := range linesOf(t, "l_ask_user_question_root", "out") {
		var a struct {
			Response struct {
				ID       string          `json:"request_id"`
				Response json.RawMessage `json:"response"`
			} `json:"response"`
		}
		if json.Unmarshal(line, &a) == nil && a.Response.ID == q.id {
			recorded = string(a.Response.Response)
		}
	}
	for _, r := range []agent.Response{{Answers: map[string]string{"q1": "Blue"}}, {Text: "Blue"}, {OptionID: "Blue"}} {
		var got, want any
		if json.Unmarshal([]byte(wireForm(t, q, r)), &got) != nil || json.Unmarshal([]byte(recorded), &want) != nil {
			t.Fatalf("recorded %q", recorded)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%+v: %s", r, d)
		}
	}
}

func TestAnswersToQuestions(t *testing.T) {
	q := promptOf(t, "AskUserQuestion", `{"questions":[{"question":"One?","options":[{"label":"A","description":"a","preview":"AA"}],"multiSelect":true},{"question":"Two?"}],"metadata":{"k":1}}`, "")
	if d := q.interaction.Detail.Questions; len(d) != 2 || !d[0].Multi || d[1].ID != "q2" || d[0].Options[0].Description != "a\nAA" || q.interaction.Title != "One?" {
		t.Errorf("%+v", q.interaction)
	}
	same := `"metadata":{"k":1},"questions":[{"question":"One?","options":[{"label":"A","description":"a","preview":"AA"}],"multiSelect":true},{"question":"Two?"}]}`
	for name, c := range map[string]struct {
		r    agent.Response
		want string
	}{
		"both":       {agent.Response{Answers: map[string]string{"q1": "A, B", "q2": " free "}}, `{"behavior":"allow","updatedInput":{"answers":{"One?":"A, B","Two?":"free"},` + same + `,"toolUseID":"t"}`},
		"one":        {agent.Response{Answers: map[string]string{"q2": "free"}}, `{"behavior":"allow","updatedInput":{"answers":{"One?":"The user did not answer this question.","Two?":"free"},` + same + `,"toolUseID":"t"}`},
		"declined":   {agent.Response{Action: "decline"}, `{"behavior":"deny","message":"The user does not want to answer.","toolUseID":"t"}`},
		"in words":   {agent.Response{Action: "cancel", Text: "Later."}, `{"behavior":"deny","message":"Later.","toolUseID":"t"}`},
		"none":       {agent.Response{Answers: map[string]string{"q1": " "}}, ""},
		"unknown":    {agent.Response{Answers: map[string]string{"q3": "x"}}, ""},
		"odd":        {agent.Response{Answers: map[string]string{"q01": "x"}}, ""},
		"one of two": {agent.Response{Text: "x"}, ""},
	} {
		if c.want == "" {
			if _, err := q.reply(c.r); !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if got := wireForm(t, q, c.r); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestPlanExit(t *testing.T) {
	q := promptOf(t, "ExitPlanMode", `{"plan":"1. Look\n2. Leap"}`, "")
	if i := q.interaction; i.Kind != agent.InteractionPlan || i.Detail.Text != "1. Look\n2. Leap" || len(i.Options) != 4 {
		t.Errorf("%+v", i)
	}
	for option, want := range map[string]string{
		"allow":            `{"behavior":"allow","updatedInput":{"plan":"1. Look\n2. Leap"},"updatedPermissions":[{"type":"setMode","mode":"default","destination":"session"}],"toolUseID":"t"}`,
		"mode:acceptEdits": `{"behavior":"allow","updatedInput":{"plan":"1. Look\n2. Leap"},"updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}],"toolUseID":"t"}`,
		"deny":             `{"behavior":"deny","message":"shorter","toolUseID":"t"}`,
		"stop":             `{"behavior":"deny","message":"shorter","interrupt":true,"toolUseID":"t"}`,
	} {
		if got := wireForm(t, q, agent.Response{OptionID: option, Text: "shorter"}); got != want {
			t.Errorf("%s\n got %s\nwant %s", option, got, want)
		}
	}
}

// An elicitation names no agent: its owner is not known (decisions.md 19).
func TestElicitation(t *testing.T) {
	for _, q := range asked(t, "l_mcp_elicitation_root_and_child") {
		if q.tool != "" {
			continue
		}
		i := q.interaction
		if !q.unowned || q.agentID != "" || q.call != "" || i.Kind != agent.InteractionElicitation || i.Title != "elicit asks" || i.Detail.Text != "Which colour?" || len(i.Detail.Questions) != 1 {
			t.Errorf("%+v", q)
		}
		for want, r := range map[string]agent.Response{
			`{"action":"accept","content":{"colour":"blue"}}`: {Answers: map[string]string{"colour": "blue"}},
			`{"action":"accept","content":{"colour":"red"}}`:  {Action: "accept", Text: "red"},
			`{"action":"decline"}`:                            {Action: "decline"},
			`{"action":"cancel"}`:                             {OptionID: "cancel"},
		} {
			if got := wireForm(t, q, r); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		for _, r := range []agent.Response{{Action: "accept"}, {OptionID: "perhaps"}} {
			if _, err := q.reply(r); !errors.Is(err, &agent.Error{Code: agent.CodeInvalidAnswer}) {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
}

func TestFormsOfOtherShapes(t *testing.T) {
	read := func(body string) (*inquiry, error) {
		f, err := decodeFrame([]byte(`{"type":"control_request","request_id":"r","request":{"subtype":"elicitation",` + body + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		return inquire(f.(*requestFrame), nil)
	}
	q, err := read(`"mcp_server_name":"s","message":"Sign in","mode":"url","url":"https://example.org/in"`)
	if err != nil || q.interaction.Detail.Text != "Sign in\n\nhttps://example.org/in" || len(q.interaction.Options) != 3 {
		t.Errorf("%+v, %v", q, err)
	}
	if got := wireForm(t, q, agent.Response{OptionID: "accept"}); got != `{"action":"accept"}` {
		t.Error(got)
	}
	q, err = read(`"mcp_server_name":"s","message":"?","title":"Where to","requested_schema":{"properties":{"a":{},"b":{},"c":{}}},"property_order":["c","a"]`)
	if err != nil || q.interaction.Title != "Where to" || q.interaction.Detail.Questions[0].ID != "c" || q.interaction.Detail.Questions[2].ID != "b" {
		t.Errorf("%+v, %v", q, err)
	}
	if _, err := read(`"mcp_server_name":7`); err == nil {
		t.Error("a server that is no word was taken")
	}
	if _, err := read(`"mcp_server_name":"s","requested_schema":{"required":7}`); err == nil {
		t.Error("a schema of another shape was taken")
	}
}
