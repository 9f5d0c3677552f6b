/* SPDX-License-Identifier: MIT */
/* known_nccl.c - a row for each; with who says so. */
#include "common/gpu/known_nccl.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 21400, TCPX_RELEASE = 218 };

static const struct nccl_fault rows[] = {
	{ 21003, 21004, NCCL_ANY_GPU, false, "corrupts data when one NVLink is down",
	  "a newer NCCL", "github.com/NVIDIA/nccl/issues/596" },
	{ 1, OLDEST, NCCL_ANY_GPU, false,
	  "older than 2.14, which lacks communicators that do not block", "NCCL 2.23.4 or later",
	  "release notes of NCCL 2.14.3" },
	{ 21801, 21802, NCCL_ANY_GPU, false,
	  "may corrupt data where a NIC shares a PCI switch with one GPU only, as on HGX H100",
	  "a newer NCCL, or NCCL_IB_PCI_RELAXED_ORDERING=0", "release notes of NCCL 2.18.1" },
	/* What Hopper needs is in later releases; sites that run it at scale ask for 2.23.4. */
	{ OLDEST, 22304, GPU_HOPPER, false, "H100 wants 2.23.4 or later", "NCCL 2.23.4 or later",
	  "release notes of NCCL 2.19 to 2.23" },
	{ 22902, 22903, NCCL_ANY_GPU, false, "may hang", "NCCL 2.29.3",
	  "github.com/pytorch/pytorch/pull/174338" },
	{ OLDEST, 22903, NCCL_ANY_GPU, true, "may hang for ever when built by gcc before 10",
	  "NCCL 2.29.3", "release notes of NCCL 2.29.3" },
};

static const struct nccl_fault tcpx = {
	0,
	0,
	NCCL_ANY_GPU,
	false,
	"GPUDirect-TCPX (NCCL_GPUDIRECTTCPX_…) is a plug-in for NCCL 2.18",
	"the NCCL 2.18 of /usr/local/tcpx/lib64",
	"cloud.google.com, GPUDirect-TCPX",
};

/* Google's GPUDirect-TCPX is a plug-in for one release. */
static bool is_tcpx(void)
{
	const char *net = getenv("NCCL_NET");

	return getenv("NCCL_GPUDIRECTTCPX_SOCKET_IFNAME") || (net && strstr(net, "GPUDirectTCPX"));
}

static bool is_arm(void)
{
#ifdef __aarch64__
	return true;
#else
	return false;
#endif
}

const struct nccl_fault *nccl_known_fault(int version, int capability)
{
	if (version <= 0)
		return NULL;
	if (is_tcpx())
		return version / 100 == TCPX_RELEASE ? NULL : &tcpx;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (version >= rows[i].from && version < rows[i].below &&
		    (rows[i].capability == NCCL_ANY_GPU || rows[i].capability == capability) &&
		    (!rows[i].is_arm || is_arm()))
			return &rows[i];
	return NULL;
}

int nccl_version_of(const char *text)
{
	enum { MAJOR = 10000, MINOR = 100 };
	int major, minor, patch = 0;

	if (sscanf(text, "%d.%d.%d", &major, &minor, &patch) < 2) /* NOLINT(cert-err34-c) */
		return 0;
	return major * MAJOR + minor * MINOR + patch;
}
