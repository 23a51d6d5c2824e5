//go:build race

package field_test

// raceDetector makes pools forget at random, so that what they save is allocated.
const raceDetector = true
