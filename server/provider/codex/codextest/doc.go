// Package codextest lets tests drive the real Codex app-server with no account
// and no network: [NewModel] is a scripted model behind a loopback HTTP server
// that speaks the streaming Responses API, [Home] is a fresh home directory
// configured to use it, and [Binary] finds the installed executable.
//
// It owns the shapes of the model API as Codex 0.171.0 uses it. It must not
// know the app-server's own protocol nor the adapter: what a test says on stdin
// is the test's. It is for tests only and reports through testing.TB.
//
// A script gives each agent a list of replies, one for each request the agent
// makes of the model. The agent that the user started is "root" unless its
// prompt holds <<name>>; a sub-agent has the name in the prompt it was spawned
// with (see [Mark]), or "sub". Steps of a reply are played in order, and a
// [Gate] step holds it there until the test opens the gate, so that every race
// between agents can be brought about without waiting for time to pass.
//
//	model := codextest.NewModel(t, codextest.Script{
//		"root": {
//			{codextest.V1.Spawn("call_a", "a", "count the files")},
//			{codextest.V1.Wait("call_w", "call_a")},
//			{codextest.Say("all counted")},
//		},
//		"a": {{codextest.Gate("a"), codextest.Say("12 files")}},
//	})
//	place := codextest.Home(t, codextest.Options{BaseURL: model.BaseURL()})
//	// start codextest.Binary(t) with "app-server", place.Env, place.Work …
//	model.Open("a")
package codextest
