/* SPDX-License-Identifier: MIT */
/* health.c - GPUs by NVML, links by sysfs, looked at before and behind the work. */
#include "worker/lbworker/check/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/gpu/nvml.h"
#include "common/gpu/xid.h"
#include "worker/lbworker/check/nics.h"

enum { XID_WAIT_MS = 50 };

struct health {
	char *sys;
	struct nvml *nvml; /* NULL: no driver */
	struct check_nic before[CHECK_NICS_MAX];
	int nics;
};

struct health *health_begin(const char *sys)
{
	struct health *h = xcalloc(1, sizeof(*h));

	h->sys = xstrdup(sys);
	h->nvml = nvml_open(); /* from here on it keeps XIDs for us */
	h->nics = nics_read(sys, h->before);
	return h;
}

int health_gpus(const struct health *h)
{
	return h->nvml ? nvml_count(h->nvml) : 0;
}

/* --- GPUs --------------------------------------------------------------------------------------- */

static void look_at_gpu(struct nvml *n, int gpu, struct check_result *out)
{
	int index = nvml_index(n, gpu);
	struct gpu_reading r;

	nvml_read(n, gpu, &r);
	if (r.ecc_uncorrected > 0)
		snprintf(out->fault, sizeof(out->fault),
			 "GPU %d: %" PRId64
			 " uncorrected memory errors (ECC) since its driver was loaded",
			 index, r.ecc_uncorrected);
	else if (r.throttle > 0 && (r.throttle & (THROTTLE_THERMAL | THROTTLE_HARDWARE)))
		snprintf(out->fault, sizeof(out->fault),
			 "GPU %d: its clocks are held down by %s, at %" PRId64 " MHz and %" PRId64
			 " degrees",
			 index, r.throttle & THROTTLE_THERMAL ? "heat" : "the hardware", r.sm_mhz,
			 r.celsius);
}

static void look_at_xids(struct nvml *n, struct check_result *out)
{
	int64_t xid;
	int gpu;

	while (!out->fault[0] && nvml_wait_xid(n, XID_WAIT_MS, &gpu, &xid)) {
		const struct xid_row *row = xid_find(xid);
		if (row->fault == XID_HARDWARE)
			snprintf(out->fault, sizeof(out->fault), "GPU %d: XID %" PRId64 ": %.100s",
				 gpu < 0 ? gpu : nvml_index(n, gpu), xid, row->text);
	}
}

/* --- links -------------------------------------------------------------------------------------- */

static int64_t errors_before(const struct health *h, const char *name, int64_t now)
{
	for (int i = 0; i < h->nics; i++)
		if (strcmp(h->before[i].name, name) == 0)
			return h->before[i].errors;
	return now;
}

void health_end(struct health *h, struct check_result *out)
{
	for (int gpu = 0; h->nvml && gpu < nvml_count(h->nvml) && !out->fault[0]; gpu++)
		look_at_gpu(h->nvml, gpu, out);
	if (h->nvml)
		look_at_xids(h->nvml, out);
	out->nics = nics_read(h->sys, out->nic);
	for (int i = 0; i < out->nics; i++)
		out->nic[i].errors -= errors_before(h, out->nic[i].name, out->nic[i].errors);
	if (h->nvml)
		nvml_close(h->nvml);
	free(h->sys);
	free(h);
}
