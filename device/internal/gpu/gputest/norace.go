//go:build linux && (amd64 || arm64) && !race

package gputest

const raceDetector = false
