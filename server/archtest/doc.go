// Package archtest holds the rules of this repository that no compiler checks: who may
// import whom and why, where a provider may be named, what must be documented, which
// versions must agree. It has no code of its own, only tests.
package archtest
