package signals

import (
	"os"
	"syscall"
)

// delivered are the two that Go makes of the events of a console: an interrupt, and the
// end of the console, the session or the system.
var delivered = map[string]os.Signal{
	"SIGINT":  syscall.SIGINT,
	"SIGTERM": syscall.SIGTERM,
}
