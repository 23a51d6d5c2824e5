package brick

import "maps"

// hints are those that MPI-IO gets for a call, equal on all ranks: the defaults
// that fit, and above them the user's.
func (p *Plan) hints(write bool) map[string]string {
	hints := defaultHints(write, int64(p.size[0])*int64(p.elem.Size()), p.shortest)
	maps.Copy(hints, p.opt.hints)
	return hints
}

// defaultHints are for arrays with rows of so many bytes whose shortest contiguous
// run is the given one. One set serves all implementations: a program can't ask
// which component of Open MPI opens a file, and each ignores the keys of others.
// Whether to write in two phases is left to them: where rows are whole, forcing it
// costs more than it ever wins where they are split.
//
// Each rank reads by itself: in a collective read of ROMIO a rank whose read fails goes
// away, and those that it reads for wait for ever. Where rows are split it reads whole
// rows and picks its own; otherwise it reads just what it needs.
func defaultHints(write bool, row, shortest int64) map[string]string {
	hints := make(map[string]string)
	whole := shortest >= row
	if !write {
		hints["romio_cb_read"] = "disable"
	}
	if !write && whole {
		hints["romio_ds_read"] = "disable"
	}
	if !whole {
		hints["cb_buffer_size"] = "1048576" // aggregators work within the cache
	}
	return hints
}
