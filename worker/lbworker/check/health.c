/* SPDX-License-Identifier: MIT */
/* health.c - GPUs by NVML, links by sysfs, looked at before and behind the work. */
#include "worker/lbworker/check/health.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/gpu/nvml.h"
#include "common/gpu/past_xids.h"
#include "common/gpu/xid.h"
#include "worker/lbworker/check/nics.h"

enum { XID_WAIT_MS = 50, HOUR_S = 3600 };

struct health {
	struct health_options how;
	struct nvml *nvml; /* NULL: no driver */
	struct check_nic before[CHECK_NICS_MAX];
	int nics;
};

struct health *health_begin(const struct health_options *how)
{
	struct health *h = xcalloc(1, sizeof(*h));

	h->how = *how;
	h->nvml = nvml_open(); /* from here on it keeps XIDs for us */
	h->nics = nics_read(how->sys, h->before);
	return h;
}

int health_gpus(const struct health *h)
{
	return h->nvml ? nvml_count(h->nvml) : 0;
}

/* --- GPUs ------------------------------------------------------------------------------------- */

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

/* What is left of faults of before: it stays until somebody has mended it. */
static void look_at_past(struct nvml *n, int gpu, struct check_result *out)
{
	static const char *const wanted[RECOVERY_KINDS] = { "", "a reset of it",
							    "a reboot of the node",
							    "that nothing uses its links" };
	int index = nvml_index(n, gpu);
	struct gpu_past p;

	nvml_past(n, gpu, &p);
	if (p.remap_failed > 0)
		snprintf(out->fault, sizeof(out->fault),
			 "GPU %d: a row of its memory could not be replaced", index);
	else if (p.recovery > RECOVERY_NONE)
		snprintf(out->fault, sizeof(out->fault),
			 "GPU %d: after a fault its driver asks for %s", index,
			 p.recovery < RECOVERY_KINDS ? wanted[p.recovery] : "a reset, or more");
}

static void look_at_xids(struct nvml *n, struct check_result *out)
{
	int64_t xid;
	int gpu;

	while (!out->fault[0] && nvml_wait_xid(n, XID_WAIT_MS, &gpu, &xid)) {
		const struct xid_row *row = xid_find(xid);
		if (row->fault == XID_HARDWARE)
			snprintf(out->fault, sizeof(out->fault), "GPU %d: XID %" PRId64 ": %.100s",
				 gpu, xid, row->text);
	}
}

/* --- XIDs of before --------------------------------------------------------------------------- */

static bool is_recent(const struct health *h, const struct past_xid *x)
{
	return xid_find(x->xid)->fault == XID_HARDWARE && x->age_s <= h->how.xid_hours * HOUR_S;
}

/* Of a GPU that is there, and of which its driver says that there is nothing to be done: it was
 * reset since, or the fault was contained. */
static bool is_mended(const struct health *h, const struct past_xid *x)
{
	struct gpu_past p;

	for (int gpu = 0; h->nvml && gpu < nvml_count(h->nvml); gpu++) {
		nvml_past(h->nvml, gpu, &p);
		if (p.pci[0] && strncasecmp(p.pci, x->pci, strlen(p.pci)) == 0)
			return p.recovery == RECOVERY_NONE;
	}
	return false;
}

/* The log may reach less far back than it is asked about. */
static void say_none(const struct health *h, const struct past_xids *log, struct check_result *out)
{
	double asked_s = h->how.xid_hours * HOUR_S;
	bool is_short = log->reach_s >= 0 && log->reach_s < asked_s;

	snprintf(out->past, sizeof(out->past), "no XID of the hardware in the %.1f h%s (%s)",
		 (is_short ? log->reach_s : asked_s) / HOUR_S, is_short ? " that there are" : "",
		 log->source);
}

static void look_at_log(const struct health *h, struct check_result *out)
{
	struct past_xids log;

	past_xids_read(&log, h->how.kernel_log);
	if (!log.source[0]) {
		snprintf(out->past, sizeof(out->past), "XIDs of before cannot be read: %.120s",
			 log.why);
		return;
	}
	say_none(h, &log, out);
	for (size_t i = log.count; i-- > 0;) {
		const struct past_xid *x = &log.xid[i];
		char when[32] = "";
		if (!is_recent(h, x))
			continue;
		if (x->age_s >= 0)
			snprintf(when, sizeof(when), ", %.1f h ago", x->age_s / HOUR_S);
		bool is_over = is_mended(h, x);
		snprintf(out->past, sizeof(out->past), "XID %" PRId64 " of GPU %s%s (%s)%s", x->xid,
			 x->pci, when, log.source, is_over ? ", of which nothing is left" : "");
		if (is_over || x->age_s < 0) /* it may be of long ago */
			continue;
		if (!out->fault[0])
			snprintf(out->fault, sizeof(out->fault), "GPU %s: XID %" PRId64 "%s: %.80s",
				 x->pci, x->xid, when, xid_find(x->xid)->text);
		return;
	}
}

/* A GPU that is gone takes its XID along, but not the driver. */
static bool is_log_wanted(const struct health *h)
{
	return h->how.xid_hours > 0 &&
	       (h->nvml || h->how.kernel_log || access("/proc/driver/nvidia", F_OK) == 0);
}

/* --- links ------------------------------------------------------------------------------------ */

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
	for (int gpu = 0; h->nvml && gpu < nvml_count(h->nvml) && !out->fault[0]; gpu++)
		look_at_past(h->nvml, gpu, out);
	if (is_log_wanted(h))
		look_at_log(h, out);
	out->nics = nics_read(h->how.sys, out->nic);
	for (int i = 0; i < out->nics; i++)
		out->nic[i].errors -= errors_before(h, out->nic[i].name, out->nic[i].errors);
	if (h->nvml)
		nvml_close(h->nvml);
	free(h);
}
