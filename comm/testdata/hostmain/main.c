#include <mpi.h>
#include <stdio.h>

int fieldstone_step(int handle, int failing);

int main(void) {
	int rank, size, sum, ended;
	MPI_Comm odd_even;
	MPI_Init(NULL, NULL); /* no promise about threads */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_split(MPI_COMM_WORLD, rank % 2, 0, &odd_even);
	MPI_Comm_size(odd_even, &size);
	if (fieldstone_step((int)MPI_Comm_c2f(MPI_COMM_WORLD), 1)) return 1;
	if (fieldstone_step((int)MPI_Comm_c2f(odd_even), size - 1)) return 1;
	MPI_Finalized(&ended);
	if (ended) return 1;
	MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	printf("sum of ranks %d\n", sum);
	return MPI_Finalize();
}
