// Device measures how fast fields on a device move, beside what the device and its
// link can do at best:
//
//	go run ./bench/device -device cuda:0
//
// -parts chooses among these, which come in order of worth:
//
//	big       boxes whose first cell has an index beyond 2^31 and 2^32; 17 GB on the device
//	kernels   those that pack and unpack boxes, against a copy on the device of as many bytes
//	ring      saves and loads over rings of several sizes, against the same bundle of fields
//	          in pinned memory of the host, and against one copy of as many bytes
//	capture   captures and going back, against a copy
//	costs     what is done once, and calls that move nothing to speak of; what is done once
//	          counts in a process that does nothing else before
//	blocked   for how long a save keeps the solver
//	readings  owned cells, read and written as a publication does, against a copy
//	bundles   saves and loads with and without the mirror, against fields of the host
//
// What is compared takes turns, and each way's result is compared with index arithmetic
// before it is timed. A line is written as soon as it is known, with -also to a file too.
// What the device has too little free memory for is left out, with a line that says so.
//
// It ends with an error when cells are wrong, not when something is slow.
// bench/device-check.sh runs it after the tests.
package main
