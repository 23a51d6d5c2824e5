// Package brick reads and writes global arrays that are spread over the ranks
// of a communicator. Each rank owns one box of the domain, its brick; the file
// is the whole array, x fastest, without header, padding or any trace of how it
// was cut.
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
//	sums, err := plan.Write(ctx, []brick.WriteJob{{Name: "psi", Path: path, Source: source}})
//
// # Failures
//
// Every call that takes a context is collective and ends with the same error
// text on all ranks. A rank that fails stays in step with an empty contribution
// until the ranks agree on what happened, so that no rank waits for ever. The
// number of agreements of a call doesn't depend on the number of files.
//
// # Checksums
//
// [Plan.Write] and [Plan.Read] return the CRC-64/NVME of each whole file. It is
// accumulated from the pieces that pass through each rank (see package pack), so
// nothing is read twice and the number is the same for every decomposition.
//
// # Drivers
//
// [MPIIO] uses collective MPI-IO with a subarray view, in rounds of at most
// 1 GiB per rank. [POSIX] writes each run of contiguous cells with pwrite; it
// needs a filesystem that all ranks see coherently, as the ranks of one node do.
// [Auto] takes MPI-IO for the communicators of MPI with more than one rank.
//
// # Concurrency
//
// A Plan serves one call at a time. Plans on different communicators are
// independent of each other.
package brick
