/* SPDX-License-Identifier: MIT */
/* abi.c - is what kernels/nccl.h declares by hand what NVIDIA's own nccl.h says, and does its
 * library have every function that we look up? Compiled against the header of a release, then run
 * with its library, without a driver (make check-nccl): says the library's version. */
#include <nccl.h>

#include <stddef.h>
#include <stdio.h>

#include "kernels/comm.h"
#include "kernels/nccl.h"

#define SAME(a, b) _Static_assert((long long)(a) == (long long)(b), #a " is " #b)
#define PLACED(member, its) \
	SAME(offsetof(struct nccl_config, member), offsetof(ncclConfig_t, its)); \
	SAME(sizeof(((struct nccl_config *)0)->member), sizeof(((ncclConfig_t *)0)->its))
#define TYPED(function, ...) \
	_Static_assert(_Generic(&(function), ncclResult_t(*)(__VA_ARGS__) : 1, default : 0), \
		       #function " takes something else")

SAME(NCCL_SUCCESS, ncclSuccess);
SAME(NCCL_CUDA_ERROR, ncclUnhandledCudaError);
SAME(NCCL_SYSTEM_ERROR, ncclSystemError);
SAME(NCCL_INTERNAL_ERROR, ncclInternalError);
SAME(NCCL_REMOTE_ERROR, ncclRemoteError);
SAME(NCCL_IN_PROGRESS, ncclInProgress);
SAME(NCCL_UINT8, ncclUint8);
SAME(NCCL_FLOAT32, ncclFloat32);
SAME(NCCL_SUM, ncclSum);
SAME(sizeof(ncclResult_t), sizeof(int));
SAME(sizeof(ncclDataType_t), sizeof(int));
SAME(sizeof(ncclRedOp_t), sizeof(int));

SAME(sizeof(struct nccl_id), sizeof(ncclUniqueId));
/* a later one is longer: a library reads as much as `size` says */
_Static_assert(sizeof(struct nccl_config) <= sizeof(ncclConfig_t),
	       "ncclConfig_t has become shorter");
PLACED(size, size);
PLACED(magic, magic);
PLACED(version, version);
PLACED(blocking, blocking);
PLACED(cga_cluster_size, cgaClusterSize);
PLACED(min_ctas, minCTAs);
PLACED(max_ctas, maxCTAs);
PLACED(net_name, netName);
PLACED(split_share, splitShare);
SAME(NCCL_UNDEFINED, NCCL_CONFIG_UNDEF_INT);

TYPED(ncclGetVersion, int *);
TYPED(ncclGetUniqueId, ncclUniqueId *);
TYPED(ncclCommInitRankConfig, ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *);
TYPED(ncclCommDestroy, ncclComm_t);
TYPED(ncclCommAbort, ncclComm_t);
TYPED(ncclCommGetAsyncError, ncclComm_t, ncclResult_t *);
TYPED(ncclGroupStart, void);
TYPED(ncclGroupEnd, void);
TYPED(ncclSend, const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
TYPED(ncclRecv, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
TYPED(ncclReduce, const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,
      cudaStream_t);

/* What a release's own initializer writes is what we write. */
static int compare_config(void)
{
	ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
	int undefined = NCCL_UNDEFINED;

	if (theirs.magic == (unsigned)NCCL_CONFIG_MAGIC && theirs.blocking == undefined &&
	    theirs.minCTAs == undefined && theirs.netName == NULL && theirs.splitShare == undefined)
		return 0;
	fprintf(stderr, "NCCL_CONFIG_INITIALIZER is another one\n");
	return 1;
}

int main(void)
{
	char why[COMM_TEXT_BYTES], version[16];
	const struct nccl *nccl = nccl_open(why);

	if (!nccl) {
		fprintf(stderr, "%s\n", why);
		return 1;
	}
	nccl_version_text(nccl->version, version, sizeof(version));
	printf("NCCL %s: every function is there; \"%s\"\n", version,
	       nccl->error_string(NCCL_REMOTE_ERROR));
	if (nccl->version != NCCL_VERSION_CODE) {
		fprintf(stderr, "the header is of %d, the library of %d\n", NCCL_VERSION_CODE,
			nccl->version);
		return 1;
	}
	return compare_config();
}
