// Package waiting is what all waits on other ranks have in common, whatever they wait
// with.
//
// A [Meter] measures a wait by the time in which the one who waits has run: a process
// that was stopped, with its whole job, has not waited meanwhile.
//
// A [Call] notices steps of a collective call that take long, and warns about them: what
// this rank is doing is said with [Doing], and that it waits for the others with
// [ForOthers]. A context carries it from the call to what the call uses.
//
// The package imports nothing of this module.
package waiting
