package waiting

import (
	"context"
	"time"
)

// Rest sleeps, and no longer than the context lives.
func Rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
