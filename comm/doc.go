// Package comm is what a parallel program needs to act as one: communicators,
// agreement on errors, and waits that end when a rank is missing.
//
// A [Comm] is a group of ranks. [World] is the MPI job, [FromFortran] a
// communicator of a host program, [Self] a group of one that needs no MPI, and
// [Run] a group of goroutines in this process for tests and tools. All of them
// behave alike.
//
// # Agreement
//
// A rank that meets an error cannot just return: the others would wait for it
// in their next collective call. Instead it stays in step with an empty
// contribution and hands its error to [Comm.Agree], which returns nil on every
// rank or the same [*RankError] on every rank. The cause's errno and the
// sentinel errors of this module, and those that a program makes known with
// [Register], travel along, so that errors.Is is the same everywhere.
//
// # Watched waits
//
// A wait for ranks that don't come to a call has a limit, [Watch], ten minutes by
// default. When it runs out the call returns an error that wraps [ErrDead]. The
// communicator is then dead: messages are still pending in it, every later call
// returns at once with the same error, and the program can only [Comm.Abort].
//
// Ranks that have come and are at work are another matter: a disk may be slow. When
// the first agreement of a call that touches files has shown that all ranks are
// there, it goes on with a context of [Comm.AtWork], under which waits have no limit
// unless [WorkLimit] sets one. This module's packages do that, and log a warning
// every so often about what takes long. Callbacks of a solver, and the agreements
// after them, have the watch again ([Comm.Watched]), for a solver may hang. A call of the
// MPI library on a file can't be left at all; [HangLimit] ends the job then, if asked for.
//
// Time counts for a wait only while the rank that waits is running. A job that was
// suspended as a whole goes on when it is continued, however long that took.
//
// # Contexts
//
// A cancelled context never takes a rank out of a collective call, for that
// would leave the others waiting. It counts as a failure of its rank in the
// next [Comm.Agree] or [Comm.Meet], and thereby stops all ranks at the same
// place. The other calls accept a context so that a caller hands on one only;
// they move their data whether it is cancelled or not.
//
// # Collective or not
//
//	collective:   World, FromFortran, Finalize, Free, Split, SplitNode, Agree,
//	              AgreeMax, OnRoot, Meet, Broadcast, AllGather, AllReduceInt64,
//	              AllReduceFloat64, Node (at its first call)
//	two partners: SendRecv
//	one rank:     Self, Rank, Size, Collectives, Fortran, Handle, Abort, Register, Protect,
//	              AtWork, Watched, WaitLimit, WatchLimit
//
// All ranks make the collective calls of one communicator in the same order. Ranks that
// don't are found out: each call begins with a message of one length that names it, and
// the call of this module that it is a part of. All of them get an error that wraps
// [ErrMismatch], with one text that names both calls, and the communicator is of no more
// use. SendRecv has no such message.
//
// # Concurrency
//
// One goroutine at a time uses a Comm. Different communicators may be used at
// the same time: where MPI did not grant MPI_THREAD_MULTIPLE their calls take
// turns, and calls that block, as those on files, take turns on all ranks in
// the same order. A host program that initialised MPI with less than
// MPI_THREAD_SERIALIZED calls from its one thread for MPI.
package comm
