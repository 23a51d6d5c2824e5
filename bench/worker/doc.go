// Command worker is what runs under mpirun: it measures the cases of one launch.
//
//	mpirun -n 2 worker job.json
//
// job.json is a plan.Job. Rank 0 prints one plan.Line per contestant of a case.
//
// In each repetition of a case every contestant runs once. The ranks start at one
// point of time, that rank 0 sets and all sleep until; the time of a repetition goes
// from there to the return of the last rank. So all ranks must be on one node. What a
// contestant wrote is then compared with index arithmetic, byte for byte, and removed.
// A contestant whose output is wrong is taken out.
package main
