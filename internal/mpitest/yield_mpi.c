//go:build mpi && linux

// MPICH over UCX looks for messages without a pause and without giving its core away. Where
// there are more ranks than cores, the rank that is waited for then gets one only when
// a time slice of the others is over: a barrier of four ranks on two cores takes
// 10 ms in place of 10 us. MPICH has no setting for it, as Open MPI has. So the binary of a test
// stands in for the function with which MPICH looks for messages: after many looks in vain
// it yields.
//
// With another MPI, nobody calls it.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned int progress_function(void *);

unsigned int ucp_worker_progress(void *worker)
{
	static progress_function *next;
	static __thread unsigned int vain;

	progress_function *look = __atomic_load_n(&next, __ATOMIC_RELAXED);
	if (!look) {
		look = (progress_function *)dlsym(RTLD_NEXT, "ucp_worker_progress");
		__atomic_store_n(&next, look, __ATOMIC_RELAXED);
	}
	unsigned int events = look(worker);
	if (events)
		vain = 0;
	else if (++vain > 100)
		sched_yield();
	return events;
}
