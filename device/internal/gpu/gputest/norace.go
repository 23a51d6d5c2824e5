//go:build linux && !race

package gputest

const raceDetector = false
