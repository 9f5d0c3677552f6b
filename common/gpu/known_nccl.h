/* SPDX-License-Identifier: MIT */
/* known_nccl.h - releases of NCCL that are known to hang or to give wrong numbers. A list that
 * ages: what is not in it is not therefore sound. */
#ifndef COMMON_GPU_KNOWN_NCCL_H
#define COMMON_GPU_KNOWN_NCCL_H

#include <stdbool.h>

enum { NCCL_ANY_GPU = 0, GPU_HOPPER = 90 };

struct nccl_fault {
	int from, below; /* releases [from, below), as ncclGetVersion has them: 22304 is 2.23.4 */
	int capability;  /* of the GPU: 90 is 9.0, H100; NCCL_ANY_GPU */
	bool is_arm;     /* on aarch64 only */
	const char *trouble, *fix, *source;
};

/* What is known against that version (0: not known) on a GPU of that compute capability (0: not
 * known); NULL: nothing. Where NCCL_NET or NCCL_GPUDIRECTTCPX_… chooses Google's plug-in, the
 * release that this is for is the only one that does. */
const struct nccl_fault *nccl_known_fault(int version, int capability);

/* "2.23.4" → 22304; 0: it is none. */
int nccl_version_of(const char *text);

#endif
