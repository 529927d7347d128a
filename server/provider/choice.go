package provider

// Choice is what a person chose for a new session beyond its provider and model; "" is the
// provider's default.
type Choice struct {
	PermissionMode string
	Scenario       string
}

// Chooser is an Adapter that can say before a session exists whether it could be opened as
// it was chosen. Without it a wrong word would show only when the first turn fails.
type Chooser interface {
	// CheckChoice is nil, or CodeInvalid with what there is to choose from. It starts
	// nothing and asks nobody.
	CheckChoice(c Choice) error
}
