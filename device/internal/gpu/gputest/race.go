//go:build linux && (amd64 || arm64) && race

package gputest

// raceDetector says that pools lose what they hold, so that calls allocate.
const raceDetector = true
