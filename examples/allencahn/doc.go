// Command allencahn lets two phases separate and coarsen in three dimensions: the
// Allen-Cahn equation on any number of MPI ranks, each with its cells in host memory
// or on a GPU, with checkpoints from which it restarts on any other number of ranks
// and any other device.
//
// It is an example of a solver that keeps its fields where it computes. Read it in
// this order:
//
//	run.go         the solver's main loop: set up, restart, advance, save
//	device.go      the choice of a device
//	simulation.go  the state: a stepper on this rank's box of the grid
//	halo.go        faces to and from the neighbours
//	checkpoint.go  all there is to do for checkpoints and restarts
//	main.go        command line, MPI's beginning and end
//
// The numerics are in internal/phasefield, the memories and the kernel in
// internal/stepper. Nothing outside of the latter knows where the cells are.
//
// The results have the same bits on every device and number of ranks, and so do runs
// that were interrupted and those that were not.
//
//	allencahn -device cuda -start random -periodic xyz -out results
//	mpirun -n 4 allencahn -device host -start random -periodic xyz -out results -restart latest
package main
