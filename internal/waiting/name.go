package waiting

import "context"

type nameKey struct{}

// Named returns a context that names the collective call of this module that a rank is in,
// so that ranks in different ones find out. A call within another one has the name of
// that. All ranks give the same name.
func Named(ctx context.Context, name string) context.Context {
	if ctx == nil || Name(ctx) != "" {
		return ctx
	}
	return context.WithValue(ctx, nameKey{}, name)
}

// Name returns the name of the call, empty where there is none.
func Name(ctx context.Context) string {
	if ctx == nil {
		return ""
	}
	name, _ := ctx.Value(nameKey{}).(string)
	return name
}
