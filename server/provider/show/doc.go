// Package show turns what a tool was given and what it gave into the text that a
// transcript keeps: bounded, with a title of one line, plans and diffs in one form. It
// owns those bounds and forms, so that every provider's work reads alike. It must not know
// any provider, session or turn, and imports nothing of this module.
package show
