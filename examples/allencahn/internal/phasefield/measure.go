package phasefield

// Energy returns the free energy of the cells of a box: that of each cell, and the
// gradient energy of the faces between it and its upper neighbours, so that the
// energies of all boxes add up to that of the domain. Ghost cells must hold the
// neighbours' values.
func (m Model) Energy(phi []float64, s Stencil) float64 {
	gradient, well := 0.0, 0.0
	for k := range s.Size[2] {
		for j := range s.Size[1] {
			for i := range s.Size[0] {
				at := s.Index(i, j, k)
				c := phi[at]
				for axis, n := range [3]int{i, j, k} {
					_, upper := s.neighbors(axis, n, at)
					d := phi[upper] - c
					gradient += d * d
				}
				v := 1 - c*c
				well += v * v
			}
		}
	}
	h := m.Spacing
	return m.Kappa * (gradient*h/2 + well*h*h*h/(4*m.Width*m.Width))
}

// Share returns how much of the cells of a box is of the phase 1, in cells.
func Share(phi []float64, s Stencil) float64 {
	share := 0.0
	for k := range s.Size[2] {
		for j := range s.Size[1] {
			at := s.Index(0, j, k)
			for _, c := range phi[at : at+s.Size[0]] {
				share += (1 + c) / 2
			}
		}
	}
	return share
}
