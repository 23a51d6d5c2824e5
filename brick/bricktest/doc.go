// Package bricktest is the conformance suite for the drivers of package brick:
// what any of them must do, whatever moves the bytes.
//
// A test calls [Run] on every rank of a communicator, with the options that
// choose the driver. The suite draws random arrays and cuts them up at random
// for some of the ranks to write and for others to read, and compares the files
// with plain index arithmetic and their checksums with another implementation's.
// Then it lets one rank fail in every way that a caller can make it fail, and
// checks that all ranks return the same error and that the plan still works.
package bricktest
