package comm

import "context"

// OnRoot runs f on rank 0 alone, and agrees on its outcome: the error of f, or of
// its panic, on all ranks. own is an error that this rank brings along, on any
// rank; rank 0 doesn't run f if it has one. Collective.
func (c *Comm) OnRoot(ctx context.Context, own error, f func() error) error {
	if own == nil && c.rank == 0 {
		own = Protect(f)
	}
	return c.Agree(ctx, own)
}
