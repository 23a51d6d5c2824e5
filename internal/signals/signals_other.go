//go:build !unix && !windows

package signals

import "os"

// delivered is empty: WebAssembly has no signals.
var delivered map[string]os.Signal
