// What kernels need, spelled for clang's CUDA and HIP without any SDK, and for a
// C++ compiler of the host, which makes of a source of kernels a library for the
// fake HIP runtime.
//
//	FIELDSTONE_KERNEL(256, scale, (double *a, double s, i64 n))
//	{
//		i64 i = (i64)BLOCK_X * 256 + THREAD_X;
//		if (i < n)
//			a[i] *= s;
//	}
//
// The number of threads of a block is part of the kernel: to ask for it at run time
// would make the kernel depend on the arguments that a runtime adds. A source is one
// translation unit and, for the host, one library.
#pragma once

typedef int i32;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

#if defined(__CUDA__) || defined(__HIP__)

#define FIELDSTONE_DEVICE __attribute__((device)) __attribute__((always_inline)) inline

#if defined(__HIP__)
#define FIELDSTONE_KERNEL(threads, name, parameters) \
	extern "C" __attribute__((global)) __attribute__((amdgpu_flat_work_group_size(threads, threads))) \
	void name parameters
#define BLOCK_X ((u32)__builtin_amdgcn_workgroup_id_x())
#define BLOCK_Y ((u32)__builtin_amdgcn_workgroup_id_y())
#define BLOCK_Z ((u32)__builtin_amdgcn_workgroup_id_z())
#define THREAD_X ((u32)__builtin_amdgcn_workitem_id_x())
#define THREAD_Y ((u32)__builtin_amdgcn_workitem_id_y())
#define THREAD_Z ((u32)__builtin_amdgcn_workitem_id_z())
#else
#define FIELDSTONE_KERNEL(threads, name, parameters) \
	extern "C" __attribute__((global)) __attribute__((launch_bounds(threads))) \
	void name parameters
#define BLOCK_X ((u32)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((u32)__nvvm_read_ptx_sreg_ctaid_y())
#define BLOCK_Z ((u32)__nvvm_read_ptx_sreg_ctaid_z())
#define THREAD_X ((u32)__nvvm_read_ptx_sreg_tid_x())
#define THREAD_Y ((u32)__nvvm_read_ptx_sreg_tid_y())
#define THREAD_Z ((u32)__nvvm_read_ptx_sreg_tid_z())
#endif

#else

#include "host.h"

#endif
