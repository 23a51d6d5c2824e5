// Command runfile measures how fast files of runs are written and read, beside a script
// that does the same with h5py (peer.py). It is given a plan.Job, as the worker is, and
// prints a plan.Line for each contestant of a case. bench starts it.
//
// The two take turns. Each has a process that keeps its arrays, and each makes sure that
// what it has written is on the disk. What one has written the other compares with
// arithmetic, and what is read is compared by who has read it, outside of the time.
//
// With the word checkpoints in place of a job it measures the objects and the processor time
// of a checkpoint of a run with many scalars, beside those of h5py's appends (appends.py).
package main
