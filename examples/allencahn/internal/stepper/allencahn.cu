// One time step of the Allen-Cahn equation on a device: Rates.Step of package
// phasefield, with the same operations in the same order. It is compiled without
// contraction, so the bits are the same too.
//
// A block takes a tile of 32 by 8 columns, and each thread of it one column, plane
// by plane through as many planes as a block has: two of the three cells along z are
// in registers then.
#include "fieldstone.h"

namespace {

constexpr u32 tileX = 32, tileY = 8, planes = 16;

// Rates.Next.
FIELDSTONE_DEVICE double advance(double c, double x0, double x1, double y0, double y1, double z0, double z1,
    double diffusion, double reaction)
{
	double laplacian = (((x0 + x1) + (y0 + y1)) + (z0 + z1)) - 6 * c;
	double force = c - c * c * c;
	return (c + diffusion * laplacian) + reaction * force;
}

} // namespace

// The cells nx by ny by nz of two arrays that begin with element first, neighbours
// row and slice elements apart. x0 to z1 lead from a cell at a side of the box to
// its neighbour beyond.
FIELDSTONE_KERNEL(256, allencahn_step,
    (double *__restrict__ next, const double *__restrict__ old, i64 first, i64 nx, i64 ny, i64 nz, i64 row, i64 slice,
        i64 x0, i64 x1, i64 y0, i64 y1, i64 z0, i64 z1, double diffusion, double reaction))
{
	u32 tilesX = (u32)((nx + tileX - 1) / tileX), tilesY = (u32)((ny + tileY - 1) / tileY);
	u32 tiles = BLOCK_X / tilesX;
	i64 x = (i64)(BLOCK_X % tilesX) * tileX + THREAD_X % tileX;
	i64 y = (i64)(tiles % tilesY) * tileY + THREAD_X / tileX;
	i64 z = (i64)(tiles / tilesY) * planes;
	if (x >= nx || y >= ny)
		return;
	i64 end = z + planes < nz ? z + planes : nz;

	i64 west = x == 0 ? x0 : -1, east = x == nx - 1 ? x1 : 1;
	i64 south = y == 0 ? y0 : -row, north = y == ny - 1 ? y1 : row;

	i64 at = first + x + y * row + z * slice;
	double below = old[at + (z == 0 ? z0 : -slice)], c = old[at];
	for (; z < end; z++, at += slice) {
		double above = old[at + (z == nz - 1 ? z1 : slice)];
		next[at] = advance(c, old[at + west], old[at + east], old[at + south], old[at + north], below, above,
		    diffusion, reaction);
		below = c;
		c = above;
	}
}
