/* SPDX-License-Identifier: MIT */
/* known_nccl.c - releases of NCCL that are known to hang or to give wrong numbers; each row with who says
 * so. A list that ages: what is not here is not therefore sound. */
#include "kernels/nccl.h"

#include <stdlib.h>
#include <string.h>

enum { ANY = 0, HOPPER = 90, OLDEST = 21400 };

/* Releases [from, below) on GPUs of that compute capability. */
static const struct {
	int from, below, capability;
	const char *fault;
} rows[] = {
	{ 0, OLDEST, ANY, "older than 2.14, which lacks communicators that do not block" },
	/* docs.nvidia.com, release notes of 2.18.1: LL128 over PCI on HGX H100, data corruption */
	{ 21801, 21803, HOPPER,
	  "2.18.1 may corrupt data on H100 (its release notes, known issues: LL128)" },
	/* What Hopper needs is in later releases; sites that run it at scale ask for 2.23.4. */
	{ OLDEST, 22304, HOPPER, "H100 wants 2.23.4 or later" },
	/* github.com/NVIDIA/nccl/releases/tag/v2.29.3-1 (regression of 2.29.2: pytorch pull 174338) */
	{ 22902, 22903, ANY, "2.29.2 may hang (release notes of 2.29.3)" },
};

/* Google's GPUDirect-TCPX is a plug-in for one release. */
static bool is_tcpx(void)
{
	const char *net = getenv("NCCL_NET");

	return getenv("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME") || (net && strstr(net, "GPUDirectTCPX"));
}

const char *nccl_known_fault(int version, int capability)
{
	const int tcpx = 21800;

	if (is_tcpx())
		return version / 100 == tcpx / 100
			       ? NULL
			       : "GPUDirect-TCPX (NCCL_GPUDIRECTTCPX_…) is a plug-in for NCCL 2.18";
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (version >= rows[i].from && version < rows[i].below &&
		    (rows[i].capability == ANY || rows[i].capability == capability))
			return rows[i].fault;
	return NULL;
}
