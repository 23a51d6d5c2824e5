package waiting

import (
	"context"
	"errors"
	"fmt"
)

// Cancelled is the context's error, with its cause if that is another one.
func Cancelled(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); err != nil && !errors.Is(cause, err) {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
