// Package onedir makes sure that the ranks of a communicator mean one place by one
// path: the place that rank 0 sees.
//
// A path may lead to another directory on another node: one that is local to the node,
// another mount, a relative path in another working directory. Ranks that write to what
// they find there lose what they write, and ranks that read it mix two states. So every
// collective user of files does two things.
//
// The path becomes rank 0's absolute one on all ranks, with [Paths]. All ranks give the
// same path, but what they make of a relative one may differ: the way to one directory
// can have several names, and then rank 0's name must do for all.
//
// And one rank of each node but rank 0's looks whether it finds what rank 0 has. The
// ranks of a node share its mounts and its caches, so one of them answers for all. What
// is looked for depends on whether something may be written: a file that rank 0 makes
// under a name that nobody has seen before ([Look.Directory]), a nonce in a file that
// rank 0 has just made ([Look.Await]), or the content of files that are only read
// ([Look.Same], [Sample]). Network filesystems show things late, so a node looks several
// times before it fails.
//
// Where all ranks are on one node nothing of this costs a message or a call on the
// filesystem.
package onedir
