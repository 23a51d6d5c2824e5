package signals

import (
	"errors"
	"os"
	"testing"
)

func TestLookup(t *testing.T) {
	some := map[string]os.Signal{"SIGTERM": os.Kill, "SIGINT": os.Interrupt}
	for _, test := range []struct {
		what      string
		delivered map[string]os.Signal
		name      string
		want      os.Signal
		text      string // of the error
		missing   bool
	}{
		{"a signal that is delivered", some, "SIGINT", os.Interrupt, "", false},
		{"one that this system lacks", some, "SIGUSR1", nil,
			"SIGUSR1: this system has no such signal (it has SIGINT, SIGTERM): unsupported operation", true},
		{"a system without signals", nil, "SIGTERM", nil,
			"SIGTERM: this system has no such signal (it has none): unsupported operation", true},
		{"one that can't be caught", some, "SIGKILL", nil,
			`"SIGKILL" is not one of SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2`, false},
		{"no name", some, "", nil, `"" is not one of SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2`, false},
	} {
		t.Run(test.what, func(t *testing.T) {
			got, err := lookup(test.delivered, test.name)
			if got != test.want {
				t.Errorf("signal %v, want %v", got, test.want)
			}
			if (err == nil) != (test.text == "") || err != nil && err.Error() != test.text {
				t.Errorf("error %q, want %q", err, test.text)
			}
			if errors.Is(err, errors.ErrUnsupported) != test.missing {
				t.Errorf("error %v: unsupported: %t, want %t", err, !test.missing, test.missing)
			}
		})
	}
}

// All that a system delivers has a name here, and no two names are one signal.
func TestTheSignalsOfThisSystem(t *testing.T) {
	of := map[os.Signal]string{}
	for _, name := range names {
		sig, err := Lookup(name)
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if other, ok := of[sig]; ok {
			t.Errorf("%s and %s are both %v", name, other, sig)
		}
		of[sig] = name
	}
	if len(of) != len(delivered) {
		t.Errorf("%d signals can be named, %d are delivered", len(of), len(delivered))
	}
}
