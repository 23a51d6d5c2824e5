// Package publish saves the accepted state of a solver as a bundle: a directory
// that appears at once, complete, durable and checked, or not at all. It loads
// bundles on any number of ranks and any decomposition, bit for bit.
//
// [SaveBundle] and [LoadBundle] save and load named fields with time, increment
// and boundary conditions. A [Service] does so as a JSON configuration says: when
// to save, what to restart from, how many bundles to keep. [Directory] is the
// protocol alone, for callers who write the fields themselves. [OpenBundle] reads
// without MPI.
//
// The format and the protocol are described in docs/bundle-format.md.
//
// # What is promised
//
// Nothing is ever overwritten. A bundle's final name exists only when every byte
// and every name in it is on stable storage, unless [WithDurability] says
// otherwise. When a call fails on any rank it fails on all, with the same text,
// that of the lowest failing rank; then the final path has no bundle of ours, and
// what was staged is removed. The one exception is [ErrDurabilityUnknown]: the
// bundle is in place and complete, but the last fsync failed. A failed load leaves
// fields, clock, counter and boundary conditions as they were, but for
// [InPlace].
//
// A job that is killed leaves its staging directory behind, which never counts as
// a bundle; the next publication to the same path, or the next [NewService] on the
// directory, clears it away.
//
// # Cost
//
// Beside moving the bytes, a save on one node takes four small agreements of the
// ranks, a load five, whatever the number of fields. Staging memory and layout
// are kept between the saves of a [Service] and the writes of [Dumps]; [Reuse] does
// that for direct calls. A load holds one copy of the owned cells that it reads, but
// for [InPlace].
//
// # Collective or not
//
//	collective:  SaveBundle, LoadBundle, Directory, NewService, NewDumps,
//	             Service.Restore, Load, Save, MaybeSave, Dumps.Write, Rewind,
//	             BoundaryRecords, RestoreBoundaries
//	one rank:    OpenBundle and the methods of Bundle, ReadMetadata, Inspect,
//	             ParseMetadata, ParseConfig, NewPlans, Plans.Close,
//	             Service.Close, Dumps.Close
//
// # Concurrency
//
// The collective calls on one communicator follow each other in the same order on
// all ranks. Publications on different communicators may run at the same time. The
// fields of a call must not change while it runs. A [Bundle] may be read by
// several goroutines.
package publish
