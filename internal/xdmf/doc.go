// Package xdmf describes raw binary files and HDF5 datasets to visualisation
// programs: it writes XDMF 3 light data (".xmf") for fields on a uniform grid,
// one grid for each time of a series.
//
// # Order of axes
//
// A field's file is x fastest; XDMF lists the slowest axis first. So all
// dimensions, and with them the origin and the spacing, are written z y x. The
// XDMF library and ParaView's three readers take ORIGIN_DXDYDZ in that order.
// VisIt takes the numbers of the origin and of the spacing (not the dimensions)
// as x y z, so it shows a grid whose x and z differ there with the two swapped.
//
// # Centring
//
// The values of a field belong to the points origin + index*spacing. They are
// written as node-centred data on a mesh of as many nodes as the field has
// cells.
//
// # HDF5
//
// A dataset of a series has the axes t z y x. The field at one time is a
// hyperslab of it: a list of the start, the stride and the count along the four
// axes, and the dataset as a whole. The readers of XDMF 2 and 3 take the three
// axes that the hyperslab's own dimensions name, as there is one time in it.
//
// # Complex fields
//
// A complex128 field is an attribute of type vector with two components, the
// real and the imaginary part. Readers of XDMF 2 add a third component that is
// 0.
package xdmf
