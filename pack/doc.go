// Package pack copies the owned cells of a padded brick to and from packed
// order, and computes the checksum of a file from pieces of it.
package pack
