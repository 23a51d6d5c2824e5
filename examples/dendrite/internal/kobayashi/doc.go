// Package kobayashi is the numerics of the dendrite example: the phase-field
// model of R. Kobayashi, "Modeling and numerical simulations of dendritic
// crystal growth", Physica D 63 (1993) 410-423, in two dimensions, by explicit
// Euler steps.
//
// The unknowns are the phase phi, 1 in the crystal and 0 in the melt, and the
// temperature T, 0 in the undercooled melt and 1 at equilibrium. With theta the
// direction of grad(phi), eps(theta) = E (1 + delta cos(n (theta - theta0))) and
// eps' its derivative:
//
//	tau dphi/dt = div(eps^2 grad(phi)) - d/dx(eps eps' dphi/dy) + d/dy(eps eps' dphi/dx)
//	              + phi (1 - phi) (phi - 1/2 + m(T) + a chi)
//	dT/dt       = laplace(T) + K dphi/dt
//	m(T)        = alpha/pi atan(gamma (Te - T))
//
// # Discretisation
//
// Fluxes live on the faces between cells. A flux needs the gradient on its face
// and thereby six cells, so that a cell depends on itself and its eight
// neighbours: one layer of ghost cells, corners included, is enough.
//
// # The same bits everywhere
//
// The new value of a cell is a function of its nine old values, its global
// indices and the number of the step, worked out in one fixed order. Products
// are rounded before they are added (the float64 conversions say so), so that no
// compiler may fuse them in one place and not in another. The noise chi is a
// hash of seed, cell and step. So the result does not depend on how the domain
// is cut, on the number of ranks, on the halo or on restarts.
package kobayashi
