// Package shm gives out memory that is not Go's: page-aligned private memory
// ([Alloc]), and windows that the ranks of a node share ([Create], [Open]), in
// which they meet at a barrier ([Window.Meet]).
//
// Such memory has no garbage collector behind it. Who allocates frees, once, when
// nobody holds a slice of it any more: a later access ends the process.
package shm
