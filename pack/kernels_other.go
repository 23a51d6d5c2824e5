//go:build (!amd64 && !arm64) || purego

package pack

func available() []*kernelSet { return []*kernelSet{&generic} }
