/* SPDX-License-Identifier: MIT */
/* nccl.h - what we use of NCCL, declared by hand after nccl.h of 2.18, whose numbers and shapes
 * later releases kept: a site's own library is opened at run time, and no header of it is needed to
 * build. */
#ifndef KERNELS_NCCL_H
#define KERNELS_NCCL_H

#include <stdbool.h>
#include <stddef.h>

enum nccl_result {
	NCCL_SUCCESS = 0,
	NCCL_CUDA_ERROR = 1,
	NCCL_SYSTEM_ERROR = 2,
	NCCL_INTERNAL_ERROR = 3,
	NCCL_REMOTE_ERROR = 6,
	NCCL_IN_PROGRESS = 7
};
enum nccl_type { NCCL_UINT8 = 1, NCCL_FLOAT32 = 7 };
enum nccl_operation { NCCL_SUM = 0 };

/* Names the meeting of a communicator: made by one rank, given to all. */
struct nccl_id {
	char bytes[128];
};

/* ncclConfig_t of 2.18; a later library reads as much of it as `size` says. */
struct nccl_config {
	size_t size;
	unsigned magic, version;
	int blocking, cga_cluster_size, min_ctas, max_ctas;
	const char *net_name;
	int split_share;
};
enum {
	NCCL_CONFIG_MAGIC = (int)0xcafebeef,
	NCCL_CONFIG_VERSION = 21801, /* of that shape */
	NCCL_UNDEFINED = (int)0x80000000
};

typedef struct ncclComm *nccl_comm;

struct nccl {
	void *library;
	int version;      /* 22703: 2.27.3 */
	char place[1024]; /* the file */

	enum nccl_result (*get_version)(int *version);
	enum nccl_result (*get_id)(struct nccl_id *id);
	enum nccl_result (*init)(nccl_comm *comm, int size, struct nccl_id id, int rank,
				 struct nccl_config *config);
	enum nccl_result (*destroy)(nccl_comm comm);
	enum nccl_result (*abort)(nccl_comm comm);
	enum nccl_result (*async_error)(nccl_comm comm, enum nccl_result *result);
	const char *(*error_string)(enum nccl_result result);
	const char *(*last_error)(nccl_comm comm); /* may be NULL: since 2.13 */
	enum nccl_result (*group_start)(void);
	enum nccl_result (*group_end)(void);
	/* stream: a cudaStream_t */
	enum nccl_result (*send)(const void *from, size_t count, enum nccl_type type, int peer,
				 nccl_comm comm, void *stream);
	enum nccl_result (*receive)(void *to, size_t count, enum nccl_type type, int peer,
				    nccl_comm comm, void *stream);
	enum nccl_result (*reduce)(const void *from, void *to, size_t count, enum nccl_type type,
				   enum nccl_operation operation, int root, nccl_comm comm,
				   void *stream);
};

/* $LB_NCCL_LIBRARY, else libnccl.so.2 where the loader looks, else in a Python environment. NULL
 * with a line in why (COMM_TEXT_BYTES of comm.h). Opened once, borrowed. */
const struct nccl *nccl_open(char *why);

/* "2.27.3" */
void nccl_version_text(int version, char *out, size_t bytes);

#endif
