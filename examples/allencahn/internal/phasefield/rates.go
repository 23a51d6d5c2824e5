package phasefield

// Rates are what a step multiplies with: the Laplacian in units of the spacing,
// and the force of the double well.
type Rates struct {
	Diffusion, Reaction float64
}

// Next returns the new value of a cell with the old value c, from those of its
// neighbours along x, y and z, lower ones first. Kernels for devices must do the
// same operations in the same order, without fusing any.
func (r Rates) Next(c, x0, x1, y0, y1, z0, z1 float64) float64 {
	laplacian := (((x0 + x1) + (y0 + y1)) + (z0 + z1)) - float64(6*c)
	force := c - float64(float64(c*c)*c)
	return (c + float64(r.Diffusion*laplacian)) + float64(r.Reaction*force)
}

// Step works out the new values of the cells of a box. Both arrays have the
// stencil's layout. Ghost cells of old must hold the neighbours' values; those of
// next aren't touched.
func (r Rates) Step(next, old []float64, s Stencil) {
	if s.Size[0] == 0 {
		return
	}
	n := s.Size[0]
	for k := range s.Size[2] {
		for j := range s.Size[1] {
			at := s.Index(0, j, k)
			y0, y1 := s.neighbors(1, j, at)
			z0, z1 := s.neighbors(2, k, at)
			r.row(next[at:at+n], old[at:], old[y0:], old[y1:], old[z0:], old[z1:],
				old[at+s.Beyond[0][0]], old[at+n-1+s.Beyond[0][1]])
		}
	}
}

// row works out a row along x from the old values of its cells and those of the
// rows around it; west and east are the cells beyond its ends.
func (r Rates) row(next, old, y0, y1, z0, z1 []float64, west, east float64) {
	n := len(next)
	old, y0, y1, z0, z1 = old[:n], y0[:n], y1[:n], z0[:n], z1[:n]
	left, c := west, old[0]
	for i := range n - 1 {
		right := old[i+1]
		next[i] = r.Next(c, left, right, y0[i], y1[i], z0[i], z1[i])
		left, c = c, right
	}
	next[n-1] = r.Next(c, left, east, y0[n-1], y1[n-1], z0[n-1], z1[n-1])
}
