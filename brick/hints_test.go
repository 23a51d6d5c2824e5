package brick

import (
	"maps"
	"testing"
)

func TestHints(t *testing.T) {
	type hints = map[string]string
	const row = 256
	split := hints{"cb_buffer_size": "1048576"}
	sieved := hints{"cb_buffer_size": "1048576", "romio_cb_read": "disable"}
	alone := hints{"romio_cb_read": "disable", "romio_ds_read": "disable"}
	for _, tc := range []struct {
		name     string
		write    bool
		shortest int64 // in cells
		user     hints
		want     hints
	}{
		{"whole planes are written as the library likes", true, 64 * row, nil, hints{}},
		{"whole planes are read by each rank", false, 64 * row, nil, alone},
		{"whole rows are written as the library likes", true, row, nil, hints{}},
		{"whole rows are read by each rank", false, row, nil, alone},
		{"split rows are written through a small buffer", true, row - 1, nil, split},
		{"split rows are read by each rank", false, row - 1, nil, sieved},
		{"rows in few pieces are read by each rank", false, row / 4, nil, sieved},
		{"rows in many pieces are read by each rank", false, row/4 - 1, nil, sieved},
		{"the user's hints are there", true, row, hints{"cb_nodes": "2"}, hints{"cb_nodes": "2"}},
		{"the user's hints come beside the defaults", true, row / 2, hints{"cb_nodes": "2"}, hints{"cb_buffer_size": "1048576", "cb_nodes": "2"}},
		{"the user's hints win", false, row / 2, hints{"cb_buffer_size": "4096", "romio_cb_read": "automatic"},
			hints{"cb_buffer_size": "4096", "romio_cb_read": "automatic"}},
	} {
		for _, elem := range []Element{Float64, Complex128} {
			user := maps.Clone(tc.user)
			p := &Plan{size: [3]int{row, 8, 8}, elem: elem, shortest: tc.shortest * int64(elem.Size()), opt: options{hints: tc.user}}
			if got := p.hints(tc.write); !maps.Equal(got, tc.want) {
				t.Errorf("%s (%s): hints are %v, want %v", tc.name, elem, got, tc.want)
			}
			if !maps.Equal(tc.user, user) {
				t.Errorf("%s: the user's hints became %v", tc.name, tc.user)
			}
		}
	}
}
