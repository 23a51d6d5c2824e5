package brick

import "fmt"

// Settings puts into words what options settle, but for [Logger]: two plans of one
// layout whose options have equal settings are alike. Its error is the one that
// [NewPlan] would have.
func Settings(opts ...Option) (string, error) {
	o, err := newOptions(opts)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(o.settings()), nil
}
