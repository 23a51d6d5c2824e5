package comm

import (
	"context"
	"fmt"

	"github.com/fieldstone-io/fieldstone/internal/waiting"
)

// A call is a collective call on a communicator: its name, and the call of this module
// that it is a part of, if that is known. Ranks compare both.
type call struct{ name, in string }

func called(ctx context.Context, name string) call { return call{name, waiting.Name(ctx)} }

func (k call) with(format string, args ...any) string {
	text := k.name + fmt.Sprintf(format, args...)
	if k.in != "" {
		text += " in " + k.in
	}
	return text
}

func (k call) text() string                    { return k.with("") }
func (k call) reduction(kind Op, n int) string { return k.with(" (%v of %d)", kind, n) }
func (k call) broadcast(root int) string       { return k.with(" from %d", root) }
func (k call) onAnError() call                 { return call{k.name + " on an error", k.in} }
