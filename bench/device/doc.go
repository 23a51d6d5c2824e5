// Device measures how fast fields on a device move, beside what the device and its
// link can do at best:
//
//	go run ./bench/device -device cuda:0
//
// The kernels that pack and unpack boxes are compared with a copy on the device of as
// many bytes; a field's owned cells, read as a publication reads them, with one copy
// to pinned memory; and publications and loads of a field on the device with those of
// a field of the host. What is compared takes turns, and each way's result is compared
// with index arithmetic before it is timed.
//
// It ends with an error when cells are wrong, not when something is slow.
// bench/device-check.sh runs it after the tests.
package main
