// Package demo is a provider that needs nothing installed: it plays scripts. A person
// sees how delegation looks, and tests make anything happen that a real provider can
// do, at the moment they choose.
//
// It owns the scenario language, the built-in scenarios under scenarios/ and the player.
// It is an adapter like any other: it reports facts and takes commands through the
// contract of package provider, and knows nothing of storage or of the web view.
//
// # The scenario language
//
// One line is one step; what belongs to a step stands below it, indented further. A
// line that begins with # is a comment.
//
//	title  Two readers                     the scenario's name and its one-line description
//	about  Two agents read, one asks.
//
//	root                                   what the root agent does
//	  say I'll ask two readers.            streamed text; indented lines below continue it
//	  think Which files matter?            the same, as thinking
//	  tool shell go vet ./...              a tool call: name, then its input
//	    took 1.2s                          how long it runs
//	    fails                              it ends as failed
//	    stays                              the command runs on when the call has ended
//	    > ok                               lines of output
//	  spawn reader                         an agent in the background, at once
//	  spawn writer foreground              … and the next step waits for it
//	  spawn worker times 50                … many of a kind; {n} in its texts is its number
//	  spawn early late 2s                  … whose own events come 2 s before this edge
//	  orphan stray                         … whose edge never comes
//	  join                                 waits until the agents it spawned have ended
//	  wait 2s
//	  ask approval Run the tests?          approval, question, plan or elicitation
//	    command go test ./...              also: cwd, reason, text, diff
//	    withdraw 5s                        the provider takes it back if unanswered
//	    allow Run them                     a choice by role: allow, allow_always, deny,
//	      say Running.                     abort, other; its steps follow that answer
//	    deny Skip
//	    question size How big?             of kind question: several things asked at once
//	      choice Small
//	  usage input=1200 output=300          added to the turn's total; cached, reasoning, cost
//	  resume reader                        another turn of an agent that has ended
//	    say Once more.
//	  garbage                              a frame that means nothing
//	  die                                  the provider process ends
//	  fail The model is overloaded.        the turn ends as failed
//	  stop                                 the turn ends as interrupted
//	  end                                  the turn ends; steps after it are late events
//	  unasked                              a root turn nobody asked for
//	    say By the way.
//
//	agent reader                           one kind of agent; spawns may nest
//	  title Reader
//	  type explorer
//	  prompt Read it.
//	  ignores cancel
//	  say …
//
//	guidance                               what a message during the turn causes; {text} is it
//	  say Noted: {text}
//
//	after children                         a further provider turn after the last agent
//	after children reserved 30s            … announced before it speaks, for at most so long
//
//	ignores cancel                         nothing in the scenario answers a stop
//	every fact twice                       each event is reported twice
package demo
