// Package brick reads and writes global arrays that are spread over the ranks
// of a communicator. Each rank owns one box of the domain, its brick; the file
// is the whole array, x fastest, without header, padding or any trace of how it
// was cut, or the array is so a part of a file.
//
// A [Plan] is made once per layout: it checks on all ranks that the boxes tile
// the domain exactly, and settles driver, rounds and staging memory. It then
// writes and reads any number of files of that layout:
//
//	plan, err := brick.NewPlan(ctx, c, domain.Size, box, brick.Float64)
//	if err != nil {
//		return err
//	}
//	defer plan.Close()
//	sums, err := plan.Write(ctx, []brick.WriteJob{{Name: `field "psi"`, Path: path, Source: source}})
//
// # Parts of files
//
// An array may also be a part of a file that exists, such as one that another library
// has laid out and closed: with Within, it begins at byte Offset of the file, at any
// alignment, and what lies around it stays as it is. Several jobs of one call may be
// parts of one file, as long as they don't overlap:
//
//	sums, err := plan.Write(ctx, []brick.WriteJob{
//		{Name: `field "psi"`, Path: path, Source: psi, Within: true, Offset: 2424},
//		{Name: `field "phi"`, Path: path, Source: phi, Within: true, Offset: 2424 + plan.FileSize()},
//	})
//
// Such a file is never created and never truncated. If it ends before the array does it
// is extended when it is written; when it is read that is a [*SizeError]. Errors about
// it have its path beside the name of the job.
//
// # Collective or not
//
//	collective: NewPlan, Plan.Write, Plan.Read, Durable, Checksums
//	one rank:   Plan.Close, Plan.Box, Plan.FileSize, Plan.Driver, the options
//
// # Failures
//
// Every collective call ends with the same error text on all ranks, that of the
// lowest rank that failed: `rank 2: write field "psi": no space left on device`.
// The errno and the errors of this package can be found with errors.Is on every
// rank. A rank that fails stays in step with an empty contribution until the
// ranks agree on what happened, so that no rank waits for ever; a panic in a
// source or a sink and a cancelled context are failures of their rank like any
// other. The number of agreements of a call depends neither on the number of
// files nor on their size. (The steps of a window are no agreements: the ranks meet in the
// memory that they share. Nor are the messages of [MPIIO].)
//
// What the ranks must give alike (sizes, options, names, paths and offsets) is
// compared before anything is created.
//
// # Paths
//
// All ranks give the same path, and use the absolute one of rank 0: a relative path is
// relative to its working directory, at the time of the call. Where the ranks are on
// several nodes, one of each node makes sure that it sees rank 0's files before any rank
// reads or writes one: a path that is local to a node is an error that names the node and
// the path. Rank 0 leaves 16 random bytes for that where each array begins, which are
// replaced when it is written. Files that are read are compared by size and by samples.
//
// # Full disks
//
// The space of all files and parts is allocated before any rank writes. Where that
// promises nothing (copy on write, networks, unknown filesystems, and parts of files,
// whose space may be shared with a clone) what MPI-IO or several nodes wrote is read back and the
// checksums compared, for its implementations may call a write to a full disk a
// success.
//
// # Checksums
//
// [Plan.Write] and [Plan.Read] return the CRC-64/NVME of each array as it is on disk: of
// the whole file, or of the part. It is
// accumulated from the pieces that pass through each rank (see package pack), so
// nothing is read twice and the number is the same for every decomposition. What is
// written is also looked through for numbers that are NaN or infinite: their number is
// in the [Sum] beside the checksum, exact for every decomposition. The option [Sections]
// keeps a checksum of each so many z planes beside that of the array.
//
// # Drivers
//
// [POSIX] is for one rank: chunks of packed cells go straight into pwrite, from
// several goroutines where the rank has several cores. Forced on more ranks, it needs
// a filesystem that all of them see coherently, as the ranks of one node do. [Node] is
// for ranks that share a node. Long runs of cells are written in the same way; short
// rows (where x is split) go through memory that the ranks share, in the order of
// the file, from where each rank writes large pieces. [MPIIO] is
// for ranks on several nodes, and writes and reads by MPI-IO, which knows parallel and
// network filesystems. Each rank opens the files by itself and makes no collective call on
// them, for the libraries wait for ever in one of which a rank's part fails. Runs of less
// than 1 MiB are put together first: step by step, the ranks that have cells in a stretch
// of the file send each other what belongs into an equal share of it, and each writes its
// share at once. [Auto] takes the first of them that fits the communicator. The choice and its reason are
// logged and can be forced with [Using]. Package bricktest is the suite that every
// driver passes.
//
// # Memory
//
// A plan packs into two chunks of 2 MiB, allocated at the first call and kept until
// [Plan.Close]; MPI-IO takes up to 12 MiB where it puts rows together. The ranks of a node share one window of at
// most 64 MiB, made when a call needs it; where there can be none, a warning is logged
// and short rows are moved one by one. [Staging] sets other limits. Moving cells
// allocates nothing that grows with their number.
//
// Neither cells nor bytes are limited to 32 bits, of the file or of one rank; an
// axis has at most 2^31-1 cells, as MPI counts them.
//
// # Concurrency
//
// A Plan serves one call at a time. Plans on different communicators are
// independent of each other.
package brick
