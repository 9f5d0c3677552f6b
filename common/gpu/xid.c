/* SPDX-License-Identifier: MIT */
/* xid.c - the table of xid.h, from NVIDIA's "XID Errors" catalog. */
#include "common/gpu/xid.h"

#include <stddef.h>

/* clang-format off */
static const struct xid_row rows[] = {
	{ 8, XID_APPLICATION, "GPU stopped processing: a kernel ran too long" },
	{ 11, XID_APPLICATION, "invalid or corrupted push buffer stream" },
	{ 13, XID_APPLICATION, "graphics engine exception: an invalid address or instruction" },
	{ 31, XID_APPLICATION, "memory page fault: an illegal address" },
	{ 32, XID_APPLICATION, "invalid or corrupted push buffer stream" },
	{ 38, XID_HARDWARE, "driver firmware error" },
	{ 43, XID_APPLICATION, "GPU stopped processing" },
	{ 44, XID_HARDWARE, "graphics engine fault during context switch" },
	{ 45, XID_HARMLESS, "channels were cleaned up after an end" },
	{ 46, XID_HARDWARE, "GPU stopped processing and could not be reset" },
	{ 48, XID_HARDWARE, "double bit ECC error" },
	{ 54, XID_HARDWARE, "auxiliary power is not connected" },
	{ 61, XID_HARDWARE, "internal micro-controller breakpoint" },
	{ 62, XID_HARDWARE, "internal micro-controller halt" },
	{ 63, XID_HARMLESS, "a row of memory, or a page, will be replaced" },
	{ 64, XID_HARDWARE, "a row of memory, or a page, could not be replaced" },
	{ 68, XID_APPLICATION, "video processor exception" },
	{ 69, XID_APPLICATION, "graphics engine class error" },
	{ 74, XID_HARDWARE, "NVLink error" },
	{ 79, XID_HARDWARE, "GPU has fallen off the bus" },
	{ 92, XID_HARMLESS, "high rate of corrected ECC errors" },
	{ 94, XID_APPLICATION, "contained ECC error: only what used that memory is affected" },
	{ 95, XID_HARDWARE, "uncontained ECC error" },
	{ 109, XID_APPLICATION, "context switch timeout" },
	{ 110, XID_HARDWARE, "security fault" },
	{ 119, XID_HARDWARE, "GSP firmware does not answer" },
	{ 120, XID_HARDWARE, "GSP firmware error" },
	{ 121, XID_HARMLESS, "corrected error of the link between CPU and GPU" },
	{ 140, XID_HARDWARE, "unrecovered ECC error" },
	{ 143, XID_HARDWARE, "GPU could not be initialized" },
	{ 144, XID_HARDWARE, "NVLink error: SAW" },
	{ 145, XID_HARDWARE, "NVLink error: RLW" },
	{ 149, XID_HARDWARE, "NVLink error: NETIR" },
};
/* clang-format on */

const struct xid_row *xid_find(int64_t xid)
{
	static const struct xid_row unknown = { -1, XID_UNKNOWN, "look it up in NVIDIA's catalog" };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].xid == xid)
			return &rows[i];
	return &unknown;
}
