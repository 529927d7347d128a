package orders

// Alphabets are parts of the whole alphabet in which each pair of things that can race
// meets, small enough to be replayed on a real database by Cover.
var Alphabets = map[string][]Event{
	"children": {
		ProviderStart, ProviderEnd, ContinuationStart, ContinuationEnd,
		ChildAStart, ChildAEnd, ChildBStart, ChildBEnd, ChildCStart, ChildCEnd, NestedStart, NestedEnd,
	},
	"two cancels": {
		ProviderStart, ProviderEnd, ChildAStart, ChildAEnd, NestedStart, NestedEnd,
		CancelPrepare, CancelComplete, StopAPrepare, StopAComplete,
	},
	"cancel and delete": {
		ProviderStart, ProviderEnd, ChildAStart, ChildAEnd, ChildBStart, ChildBEnd, CancelPrepare, CancelComplete, DeleteB,
	},
	"loss": {
		ProviderStart, ProviderEnd, ContinuationStart, ContinuationEnd,
		ChildAStart, ChildAEnd, ChildBStart, ChildBEnd, Death, Restart,
	},
	"everything that stops": {
		ProviderStart, ProviderEnd, ChildAStart, ChildAEnd, ChildBStart,
		StopAPrepare, StopAComplete, CancelPrepare, CancelComplete, DeleteB, Death, Restart,
	},
	"continuation and cancel": {
		ProviderStart, ProviderEnd, ContinuationStart, ContinuationEnd,
		CancelPrepare, CancelComplete, ChildBStart, ChildBEnd, Death, Restart,
	},
}
