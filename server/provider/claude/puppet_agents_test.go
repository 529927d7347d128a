package claude

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// from are the members that say whose a line is.
func (k *kid) from(f fields) fields {
	if k != nil {
		f["parent_tool_use_id"], f["agent_id"] = k.call, k.task
	}
	return f
}

func (p *puppet) block(k *kid, role string, b fields) {
	p.serial++
	p.emit(role, k.from(fields{"message": fields{
		"id": fmt.Sprintf("msg_%d", p.serial), "role": role, "model": "m", "content": []fields{b}, "usage": fields{"input_tokens": 1},
	}}))
}

func (p *puppet) says(k *kid, text string) {
	p.block(k, typeAssistant, fields{"type": blockText, "text": text})
}

func (p *puppet) use(k *kid, call, tool string, input fields) {
	p.block(k, typeAssistant, fields{"type": blockToolUse, "id": call, "name": tool, "input": input})
}

func (p *puppet) result(k *kid, call, text string, failed bool) {
	p.block(k, typeUser, fields{"type": blockToolResult, "tool_use_id": call, "content": text, "is_error": failed})
}

// delegate launches a child and lets it say hello.
func (p *puppet) delegate(name string, parent *kid, background bool) *kid {
	k := p.edge(name, parent, background)
	p.started(k)
	p.says(k, "["+name+"] hi")
	return k
}

func (p *puppet) edge(name string, parent *kid, background bool) *kid {
	k := &kid{name: name, call: "toolu_" + name, task: "a" + name, run: "run-1-" + name, parent: parent, background: background, live: true}
	p.kids[name] = k
	p.use(parent, k.call, toolAgent, fields{"description": "Job of " + name, "prompt": "Do it.", "run_in_background": background})
	return k
}

func (p *puppet) started(k *kid) {
	p.level()
	f := fields{
		"task_id": k.task, "run_id": k.run, "tool_use_id": k.call, "description": "Job of " + k.name, "task_type": taskAgent,
		"is_backgrounded": k.background, "spawn_depth": 1,
	}
	if k.parent != nil {
		f["parent_task_id"], f["spawn_depth"] = k.parent.task, 2
	}
	p.emit("system/task_started", f)
	if k.background {
		p.result(k.parent, k.call, "Async agent launched successfully.", false)
	}
}

func (p *puppet) level() {
	tasks := []fields{}
	for _, name := range slices.Sorted(maps.Keys(p.kids)) {
		if k := p.kids[name]; k.live && k.background {
			tasks = append(tasks, fields{"task_id": k.task, "run_id": k.run, "task_type": taskAgent})
		}
	}
	p.emit("system/background_tasks_changed", fields{"tasks": tasks})
}

// finish ends a child: its terminal, and the result of its call if that waits.
func (p *puppet) finish(k *kid, status string) {
	if !k.live {
		return
	}
	k.live = false
	patch := map[string]string{taskStopped: taskKilled}[status]
	if patch == "" {
		patch = status
	}
	p.emit("system/task_updated", fields{"task_id": k.task, "run_id": k.run, "patch": fields{"status": patch, "error": "HTTP 500"}})
	p.emit("system/task_notification", fields{"task_id": k.task, "run_id": k.run, "tool_use_id": k.call, "status": status, "summary": "x"})
	if k.background {
		p.level()
		p.notice++
		return
	}
	p.result(k.parent, k.call, "report", status != taskCompleted)
}

func (p *puppet) stopTask(task string) {
	for _, k := range p.kids {
		if k.task == task {
			p.finish(k, taskStopped)
			if f := p.points["stopped"]; f != nil {
				f()
			}
			p.follow()
		}
	}
}

// interrupt ends everything, as one without the affordance does.
func (p *puppet) interrupt(id string) {
	var cancelled []string
	for _, q := range p.queue {
		cancelled = append(cancelled, q.uuid)
		p.fate(q.uuid, lifeCancelled)
	}
	p.queue, p.notice = nil, 0
	clear(p.asks)
	if p.open && p.deaf {
		p.deaf = false
		p.delegate("stray", nil, false)
	}
	for _, name := range slices.Sorted(maps.Keys(p.kids)) {
		if k := p.kids[name]; k.background {
			p.finish(k, taskStopped)
		}
	}
	p.notice = 0
	p.answer(id, fields{"still_queued": []string{}, "cancelled": cancelled})
	for _, name := range slices.Sorted(maps.Keys(p.kids)) {
		p.finish(p.kids[name], taskStopped)
	}
	if p.open {
		p.block(nil, typeUser, fields{"type": blockText, "text": interruptMark + "]"})
		p.end(fields{"subtype": "error_during_execution", "is_error": true, "terminal_reason": reasonAborted, "num_turns": 1})
		return
	}
	p.state(stateIdle)
}

// plain says hello, makes a tool call, says done and completes.
func (p *puppet) plain(string) {
	p.says(nil, "[root] hello")
	p.use(nil, "toolu_ls", "Bash", fields{"command": "ls"})
	p.result(nil, "toolu_ls", "a.txt", false)
	p.done("[root] done")
}

// join lets each child end at its point; after the last of them the root says done.
func (p *puppet) join(status string, names ...string) {
	for _, name := range names {
		k := p.kids[name]
		p.points[name] = func() {
			if !k.live {
				return
			}
			if len(names) > 1 {
				p.says(k, "["+name+"] bye")
			}
			p.finish(k, status)
			p.joined(names)
		}
	}
}

func (p *puppet) joined(names []string) {
	if !slices.ContainsFunc(names, func(n string) bool { return p.kids[n].live }) {
		p.done("[root] done")
	}
}

// garbage are lines that nobody understands.
var garbage = []string{
	`not json`, `[1,2]`, `{}`, `{"type":""}`, `{"type":"banana"}`, `{"type":"system","subtype":"no/such"}`, `{"type":"assistant","message":7}`,
	`{"type":"control_request"}`, `{"type":"control_request","request_id":"g1","request":{"subtype":"fly"}}`,
	`{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}`, `{"type":"system","subtype":"task_notification"}`,
	`{"type":"system","subtype":"task_started","task_id":"x1","task_type":"local_agent","parent_task_id":"nobody"}`,
	`{"type":"system","subtype":"task_notification","task_id":"x2","status":"completed"}`, `{"type":"system","subtype":"background_tasks_changed","tasks":3}`,
	`{"type":"stream_event","event":{"type":"content_block_delta","index":"x"}}`, strings.Repeat("x", 1000),
}
