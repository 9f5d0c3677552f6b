/* SPDX-License-Identifier: MIT */
/* xid.h - what an XID of NVIDIA's driver means, as its catalog has it: whose fault it is. */
#ifndef COMMON_GPU_XID_H
#define COMMON_GPU_XID_H

#include <stdint.h>

enum xid_fault {
	XID_UNKNOWN,     /* says nothing of whose fault it is */
	XID_APPLICATION, /* what ran on the GPU; counted like any failure of the trainer */
	XID_HARDWARE,    /* the GPU, its memory or links: the node is avoided */
	XID_HARMLESS,    /* a note, or what follows from an end */
};

struct xid_row {
	int64_t xid;
	enum xid_fault fault;
	const char *text;
};

/* Never NULL. */
const struct xid_row *xid_find(int64_t xid);

#endif
