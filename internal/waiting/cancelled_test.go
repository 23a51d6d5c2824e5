package waiting

import (
	"context"
	"errors"
	"testing"
)

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if err := Cancelled(ctx); err != nil {
		t.Error(err)
	}
	why := errors.New("a signal")
	cancel(why)
	if err := Cancelled(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, why) || err.Error() != "context canceled: a signal" {
		t.Error(err)
	}
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(nil)
	if err := Cancelled(ctx); err != context.Canceled {
		t.Error(err)
	}
}
