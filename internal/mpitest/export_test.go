package mpitest

// Dir is where the job keeps its files while it lives.
func (j *Job) Dir() string { return j.dir }
