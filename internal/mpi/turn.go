//go:build mpi

package mpi

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Some collective calls block until all ranks are in them, and keep the library to
// themselves meanwhile. When a process has two communicators at work, a rank may be in such
// a call of the one, and another rank in one of the other: then neither ends. So these
// calls take turns, and a turn begins on all ranks of a communicator or on none.
var turn sync.Mutex

// tryTurn begins this process's turn, unless another communicator has it. The ranks agree
// on the outcome before they go on; release ends the turn, and that of a turn that didn't
// begin does nothing. Where any number of threads may call the library there are no turns.
func tryTurn() (release func(), began bool) {
	if library.multiple {
		return func() {}, true
	}
	if !turn.TryLock() {
		return func() {}, false
	}
	return turn.Unlock, true
}

// meet waits until all ranks have come to a blocking call, for at most the limit, and have
// their turn for it, however long the calls of others take. The library is entered.
func (c *Comm) meet(limit time.Duration) (release func(), err error) {
	leave()
	defer enter()
	const digest = 1
	for {
		release, began := tryTurn()
		message := []int64{0, rand.Int64N(int64(maxSleep))}
		if !began {
			message[0] = 1
		}
		if _, err := c.Exchange(digest, Max, false, message, limit); err != nil {
			release()
			return nil, err
		}
		if message[0] == 0 {
			return release, nil
		}
		release()
		time.Sleep(time.Duration(message[1])) // the same on all ranks
	}
}
