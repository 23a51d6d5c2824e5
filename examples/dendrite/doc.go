// Command dendrite grows a snow crystal: Kobayashi's phase-field model of
// dendritic solidification in two dimensions, on any number of MPI ranks, with
// checkpoints from which it restarts on any other number.
//
// It is an example of a solver that embeds Fieldstone. Read it in this order:
//
//	run.go         the solver's main loop: set up, restart, advance, save
//	simulation.go  the state: two fields on this rank's box of the grid
//	halo.go        ghost cells from the neighbours
//	checkpoint.go  all there is to do for checkpoints and restarts
//	runfiles.go    run files beside the bundles: output in segments, checkpoints
//	setup.go       what a run computes, as records
//	observe.go     the numbers in the output: energy, solid part, radial average
//	picture.go     reading a bundle without MPI
//	main.go        command line, MPI's beginning and end
//
// The numerics are in internal/kobayashi, sums that don't depend on the ranks in
// internal/exact. The program that kills, stops and restarts this one and compares
// the results is in demo.
//
// The results have the same bits on every number of ranks, process grid and halo
// width, and so do runs that were interrupted and those that were not.
package main
