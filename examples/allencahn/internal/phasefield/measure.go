package phasefield

// Energy returns the free energy of the cells of a box: that of each cell, and the
// gradient energy of the faces between it and its upper neighbours, so that the
// energies of all boxes add up to that of the domain. Ghost cells must hold the
// neighbours' values.
func (m Model) Energy(phi []float64, s Stencil) float64 {
	gradient, well := 0.0, 0.0
	n := s.Size[0]
	for k := range s.Size[2] {
		for j := range s.Size[1] {
			at := s.Index(0, j, k)
			_, y1 := s.neighbors(1, j, at)
			_, z1 := s.neighbors(2, k, at)
			row, north, above := phi[at:at+n], phi[y1:y1+n], phi[z1:z1+n]
			last := phi[at+n-1+s.Beyond[0][1]]
			for i, c := range row {
				east := last
				if i < n-1 {
					east = row[i+1]
				}
				dx, dy, dz := east-c, north[i]-c, above[i]-c
				gradient += dx*dx + dy*dy + dz*dz
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
