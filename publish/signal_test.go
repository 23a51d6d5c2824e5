package publish

import (
	"os"
	"testing"

	"github.com/fieldstone-io/fieldstone/internal/signals"
)

// signalNamed returns a signal, and skips a test that a system without it can't run.
func signalNamed(t testing.TB, name string) os.Signal {
	t.Helper()
	sig, err := signals.Lookup(name)
	if err != nil {
		t.Skip(err)
	}
	return sig
}

// raise sends a signal to this process.
func raise(sig os.Signal) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	return self.Signal(sig)
}
