// Package claudetest lets tests drive the real Claude Code with no account and no
// network: [NewModel] is a scripted model (modeltest) that speaks the Messages API, with
// and without streaming, [Home] is a fresh home with an environment of its own, and
// [Binary] finds the installed executable.
//
// It owns the shapes of the model API as Claude Code 2.1.332 uses it. It must not know
// the stream-json protocol nor the adapter: what a test says on stdin is the test's. It
// is for tests only and reports through testing.TB.
//
// A sub-agent is known by the header that carries its id, a root by that of its session.
//
//	model := claudetest.NewModel(t, modeltest.Script{
//		"root": {
//			{claudetest.Background("call_a", "a", "count the files")},
//			{modeltest.Say("started")},
//			{modeltest.Say("all counted")}, // the turn that Claude starts when the child has ended
//		},
//		"a": {{modeltest.Gate("a"), modeltest.Say("12 files")}},
//	})
//	place := claudetest.Home(t, claudetest.Options{BaseURL: model.BaseURL()})
//	// start claudetest.Binary(t) with place.Env, place.Work …
//	model.Open("a")
package claudetest
