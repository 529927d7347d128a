package replay

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/turnkeeper/turnkeeper/server/agent"
	"github.com/turnkeeper/turnkeeper/server/provider"
	"github.com/turnkeeper/turnkeeper/server/provider/acp"
	"github.com/turnkeeper/turnkeeper/server/provider/claude"
	"github.com/turnkeeper/turnkeeper/server/provider/codex"
)

// line is one line of a recording.
type line struct {
	At  int64           `json:"t"` // ms
	Dir string          `json:"dir"`
	Msg json.RawMessage `json:"msg"`
}

// dialect reads the recordings of one provider. at is always a line's place.
type dialect interface {
	// adapter is the real one; what it opens is connected to this recording.
	adapter() provider.Adapter
	// begin and end are the life of the recorded process.
	begin()
	end(why string)
	// feed hands over a line that the process wrote.
	feed(at int, msg json.RawMessage)
	// read says what a line that was sent to the process meant to the person behind it.
	read(at int, msg json.RawMessage) intent
	// take and skip say whether the person's command of that line was given: what the
	// process answered to it belongs to the adapter's own request, or to nobody.
	take(at int)
	skip(at int)
}

// intent is a person's command.
type intent struct {
	kind     intentKind
	thread   string // the provider's name of the conversation
	native   string // the provider's name of the turn meant; "" is the one that runs
	text     string
	model    string
	call     agent.CallID
	response agent.Response
	known    bool // of an open: an earlier process had begun the conversation
	watch    bool // of an open: the provider may begin turns by itself
}

type intentKind string

const (
	wantsNothing intentKind = ""
	wantsOpen    intentKind = "open"
	wantsWatch   intentKind = "watch" // nothing, but the provider may begin turns by itself
	wantsSend    intentKind = "send"  // a message, wherever it goes
	wantsGuide   intentKind = "guide" // a message into the turn that runs
	wantsCancel  intentKind = "cancel"
	wantsAnswer  intentKind = "answer"
	wantsDelete  intentKind = "delete"
	wantsStop    intentKind = "stop"   // of the process that native names
	wantsReload  intentKind = "reload" // of a session that is open
)

// dialects is the table from provider names to what reads their recordings.
var dialects = map[string]func([]line, *still) dialect{
	"acp": func(lines []line, s *still) dialect {
		recorded := make([]acp.Recorded, len(lines))
		for i, l := range lines {
			recorded[i] = acp.Recorded(l)
		}
		return &acpDialect{play: acp.NewPlayback(recorded, s.read), still: s}
	},
	"codex": func(lines []line, s *still) dialect {
		recorded := make([]codex.Recorded, len(lines))
		for i, l := range lines {
			recorded[i] = codex.Recorded(l)
		}
		return &codexDialect{codex.NewPlayback(recorded, s.read), s}
	},
	"claude": func(lines []line, s *still) dialect {
		recorded := make([]claude.Recorded, len(lines))
		for i, l := range lines {
			recorded[i] = claude.Recorded(l)
		}
		return &claudeDialect{claude.NewPlayback(recorded, s.read), s}
	},
}

type codexDialect struct {
	play  *codex.Playback
	still *still
}

func (d *codexDialect) adapter() provider.Adapter {
	return codex.New(codex.Options{
		Logger:  slog.New(slog.DiscardHandler),
		Connect: func(context.Context, provider.OpenParams) (codex.Transport, error) { return d.play.Connect() },
		Park:    d.still.park,
	})
}

func (d *codexDialect) begin()                           { d.play.Begin() }
func (d *codexDialect) end(why string)                   { d.play.End(why) }
func (d *codexDialect) feed(at int, msg json.RawMessage) { d.play.Feed(at, msg) }
func (d *codexDialect) take(at int)                      { d.play.Take(at) }
func (d *codexDialect) skip(at int)                      { d.play.Skip(at) }

func (d *codexDialect) read(at int, msg json.RawMessage) intent {
	i := d.play.Intent(at, msg)
	kind := map[codex.IntentKind]intentKind{
		codex.IntentOpen: wantsOpen, codex.IntentWatch: wantsWatch, codex.IntentStart: wantsSend, codex.IntentSteer: wantsGuide,
		codex.IntentCancel: wantsCancel, codex.IntentAnswer: wantsAnswer, codex.IntentDelete: wantsDelete,
	}[i.Kind]
	return intent{kind: kind, thread: i.ThreadID, native: i.TurnID, text: i.Text, model: i.Model, call: i.CallID, response: i.Response}
}

type claudeDialect struct {
	play  *claude.Playback
	still *still
}

func (d *claudeDialect) adapter() provider.Adapter {
	return claude.New(claude.Options{
		Logger:  slog.New(slog.DiscardHandler),
		Connect: func(context.Context, provider.OpenParams) (claude.Transport, error) { return d.play.Connect() },
		Park:    d.still.park,
	})
}

func (d *claudeDialect) begin()                           { d.play.Begin() }
func (d *claudeDialect) end(why string)                   { d.play.End(why) }
func (d *claudeDialect) feed(at int, msg json.RawMessage) { d.play.Feed(at, msg) }
func (d *claudeDialect) take(at int)                      { d.play.Take(at) }
func (d *claudeDialect) skip(at int)                      { d.play.Skip(at) }

func (d *claudeDialect) read(at int, msg json.RawMessage) intent {
	i := d.play.Intent(at, msg)
	kind := map[claude.IntentKind]intentKind{
		claude.IntentOpen: wantsOpen, claude.IntentWatch: wantsWatch, claude.IntentStart: wantsSend,
		claude.IntentCancel: wantsCancel, claude.IntentAnswer: wantsAnswer, claude.IntentStop: wantsStop,
	}[i.Kind]
	return intent{kind: kind, thread: i.Session, native: i.Native, text: i.Text, model: i.Model, call: i.CallID, response: i.Response}
}

type acpDialect struct {
	play  *acp.Playback
	still *still
}

func (d *acpDialect) adapter() provider.Adapter {
	return acp.New(acp.Options{
		Agent: d.play.Agent(), Logger: slog.New(slog.DiscardHandler),
		Connect: func(context.Context, provider.OpenParams) (acp.Transport, error) { return d.play.Connect() },
		Park:    d.still.park,
	})
}

func (d *acpDialect) begin()                           { d.play.Begin() }
func (d *acpDialect) end(why string)                   { d.play.End(why) }
func (d *acpDialect) feed(at int, msg json.RawMessage) { d.play.Feed(at, msg) }
func (d *acpDialect) take(at int)                      { d.play.Take(at) }
func (d *acpDialect) skip(at int)                      { d.play.Skip(at) }

func (d *acpDialect) read(at int, msg json.RawMessage) intent {
	i := d.play.Intent(at, msg)
	kind := map[acp.IntentKind]intentKind{
		acp.IntentOpen: wantsOpen, acp.IntentStart: wantsSend, acp.IntentCancel: wantsCancel,
		acp.IntentAnswer: wantsAnswer, acp.IntentReload: wantsReload,
	}[i.Kind]
	return intent{
		kind: kind, thread: i.Session, native: i.Native, text: i.Text, call: i.CallID, response: i.Response,
		known: i.Known, watch: i.Watch,
	}
}
