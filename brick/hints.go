package brick

import "maps"

// maxSieved is the number of pieces of a row up to which each rank may read whole
// rows to get its own: all of them read each byte that often.
const maxSieved = 4

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
func defaultHints(write bool, row, shortest int64) map[string]string {
	hints := make(map[string]string)
	if shortest >= row {
		return hints
	}
	// Aggregators work within the cache.
	hints["cb_buffer_size"] = "1048576"
	if !write && maxSieved*shortest >= row {
		hints["romio_cb_read"] = "disable"
	}
	return hints
}
