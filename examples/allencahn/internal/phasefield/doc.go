// Package phasefield is the numerics of the Allen-Cahn example: the equation of
// S. M. Allen and J. W. Cahn, "A microscopic theory for antiphase boundary motion
// and its application to antiphase domain coarsening", Acta Metallurgica 27 (1979)
// 1085-1095, in three dimensions, by explicit Euler steps.
//
// The unknown phi is -1 in one phase and 1 in the other. It follows the gradient
// of the free energy
//
//	F = integral of kappa/2 |grad(phi)|^2 + kappa/(4 w^2) (1 - phi^2)^2
//
// with the mobility M:
//
//	dphi/dt = M kappa (laplace(phi) + (phi - phi^3) / w^2)
//
// A flat interface at rest is tanh(x / (sqrt(2) w)), w being its width. A curved
// one moves towards its centre of curvature with M kappa times the sum of its two
// principal curvatures, so that a sphere shrinks by dR^2/dt = -4 M kappa.
//
// # Discretisation
//
// The Laplacian has seven points. A wall lets nothing through: the cell beyond it
// counts as equal to the one before it.
//
// # The same bits everywhere
//
// The new value of a cell is a function of its old value and those of its six
// neighbours, worked out in the order of [Rates.Next]. Products are rounded before
// they are added (the float64 conversions say so), so that no compiler may fuse
// them. The kernels for devices do the same operations in the same order. So the
// result depends neither on the device nor on how the domain is cut.
package phasefield
