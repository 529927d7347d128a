// Package codextest lets tests drive the real Codex app-server with no account
// and no network: [NewModel] is a scripted model (modeltest) that speaks the streaming
// Responses API, [Home] is a fresh home directory configured to use it, and [Binary]
// finds the installed executable.
//
// It owns the shapes of the model API as Codex 0.171.0 uses it. It must not
// know the app-server's own protocol nor the adapter: what a test says on stdin
// is the test's. It is for tests only and reports through testing.TB.
//
//	model := codextest.NewModel(t, modeltest.Script{
//		"root": {
//			{codextest.V1.Spawn("call_a", "a", "count the files")},
//			{codextest.V1.Wait("call_w", "call_a")},
//			{modeltest.Say("all counted")},
//		},
//		"a": {{modeltest.Gate("a"), modeltest.Say("12 files")}},
//	})
//	place := codextest.Home(t, codextest.Options{BaseURL: model.BaseURL()})
//	// start codextest.Binary(t) with "app-server", place.Env, place.Work …
//	model.Open("a")
package codextest
