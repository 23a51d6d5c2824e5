//go:build race

package publish

// raceDetector makes the long tests look at fewer states: it slows them tenfold,
// and races don't depend on what a crash leaves.
const raceDetector = true
