/* SPDX-License-Identifier: MIT */
/* meter.c - the process that measures: a reading every few seconds, a file every minute, and at
 * once for an XID. */
#include "worker/lbrun/meter/meter.h"

#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "common/base/strv.h"
#include "worker/lbrun/end/beside.h"
#include "worker/lbrun/meter/minute.h"

enum {
	READINGS = 12,     /* in a minute */
	XID_LOOK_MS = 250, /* where there are GPUs */
	XIDS_MAX = 32,     /* the newest are kept */
	ALIVE_LOOK_MS = 1000,
};

struct meter {
	const struct meter_job *job;
	pid_t watched;
	int fd; /* of it; -1 = the kernel is too old */
	char *path;
	struct nvml *nvml;
	struct minute minute;
	json_t *usage; /* of the last minute; NULL = none yet */
	json_t *xids;
	int64_t seq, xid_count;
};

/* --- readings --------------------------------------------------------------------------------- */

/* How many of the GPUs are this one's, from *first on. */
static int own_gpus(const struct meter *m, int *first)
{
	int count = nvml_count(m->nvml), gpu = m->job->gpu;

	*first = gpu > 0 ? gpu : 0;
	if (gpu == METER_ALL_GPUS)
		return count;
	return gpu >= 0 && gpu < count ? 1 : 0;
}

static void read_all(struct meter *m)
{
	int first, count = own_gpus(m, &first);
	struct machine_reading machine;
	struct gpu_reading gpu;

	machine_read(m->watched, &machine);
	minute_machine(&m->minute, &machine);
	for (int i = 0; i < count; i++) {
		nvml_read(m->nvml, first + i, &gpu);
		minute_gpu(&m->minute, i, nvml_index(m->nvml, first + i), &gpu);
	}
}

static void write_file(const struct meter *m)
{
	json_t *o = json_object();

	js_set_int(o, "seq", m->seq);
	js_set_str(o, "node", m->job->node);
	js_set_int(o, "rank", m->job->rank);
	if (m->usage)
		json_object_set(o, "usage", m->usage);
	json_object_set(o, "xids", m->xids);
	js_set_int(o, "xid_count", m->xid_count);
	js_save_visible(m->path, o, NULL);
}

static void end_minute(struct meter *m, int64_t now_ms)
{
	json_decref(m->usage);
	m->usage = minute_line(&m->minute, now_ms);
	m->seq++;
	write_file(m);
	minute_begin(&m->minute, now_ms);
}

static void hear_xids(struct meter *m)
{
	int64_t xid, before = m->xid_count;
	int gpu;

	while (nvml_wait_xid(m->nvml, 0, &gpu, &xid)) {
		json_t *o = json_object();

		js_set_int(o, "gpu", gpu);
		js_set_int(o, "xid", xid);
		js_set_int(o, "time_ms", clock_wall_ms());
		json_array_append_new(m->xids, o);
		if (json_array_size(m->xids) > XIDS_MAX)
			json_array_remove(m->xids, 0);
		m->xid_count++;
	}
	if (m->xid_count > before)
		write_file(m);
}

/* --- the process ------------------------------------------------------------------------------ */

/* Waits; false when the one that is measured has ended. */
static bool wait_for(const struct meter *m, int64_t ms)
{
	struct pollfd fd = { .fd = m->fd, .events = POLLIN };

	if (m->fd < 0 && ms > ALIVE_LOOK_MS)
		ms = ALIVE_LOOK_MS;
	if (poll(&fd, 1, (int)ms) > 0)
		return false;
	return !pid_is_gone(m->watched);
}

static void __attribute__((noreturn)) measure(struct meter *m)
{
	int64_t step_ms = m->job->every_ms / READINGS, read_ms, end_ms, now_ms = clock_mono_ms();

	m->nvml = m->job->gpu == METER_NO_GPU ? NULL : nvml_open();
	m->xids = json_array();
	m->path = path_join("%s/usage/%lld.json", m->job->folder, (long long)m->job->rank);
	machine_read(m->watched, &m->minute.last);
	minute_begin(&m->minute, now_ms);
	read_ms = now_ms + step_ms;
	end_ms = now_ms + m->job->every_ms;
	for (;;) {
		int64_t wait_ms = read_ms > now_ms ? read_ms - now_ms : 0;

		if (m->nvml && wait_ms > XID_LOOK_MS)
			wait_ms = XID_LOOK_MS;
		if (!wait_for(m, wait_ms))
			_exit(0);
		now_ms = clock_mono_ms();
		if (m->nvml)
			hear_xids(m);
		if (now_ms < read_ms)
			continue;
		read_all(m);
		read_ms = now_ms + step_ms;
		if (now_ms < end_ms)
			continue;
		end_minute(m, now_ms);
		end_ms = now_ms + m->job->every_ms;
	}
}

static int process_fd(pid_t pid)
{
#ifdef SYS_pidfd_open
	return (int)syscall(SYS_pidfd_open, pid, 0);
#else
	(void)pid;
	return -1;
#endif
}

void meter_start(const struct meter_job *job)
{
	struct meter m = { .job = job, .watched = getpid() };
	char *folder;

	if (job->every_ms <= 0)
		return;
	folder = path_join("%s/usage", job->folder);
	if (folder_make(folder, 0750, NULL) == 0 && beside_begin("lbrun-meter", NULL, 0)) {
		m.fd = process_fd(m.watched);
		measure(&m);
	}
	free(folder);
}

/* --- of a rank -------------------------------------------------------------------------------- */

/* In "cpu:4,gres/gpu:1" since Slurm 23.11. */
static bool has_own_gpus(void)
{
	const char *each = getenv("SLURM_TRES_PER_TASK");

	return getenv("SLURM_GPUS_PER_TASK") || (each && strstr(each, "gres/gpu"));
}

/* As many GPUs as ranks on this node: one is each's. Else the first rank sees to all. */
static int gpu_of_rank(void)
{
	/* of "4(x2),3", a count for each node, the first: nodes with other counts are rare, and
	 * there the first rank sees to all */
	int local = env_number("SLURM_LOCALID"), ranks = env_number("SLURM_STEP_TASKS_PER_NODE");
	struct nvml *n = nvml_open();
	int count = nvml_count(n);

	nvml_close(n);
	if (ranks > 1 && count == ranks)
		return local;
	return local == 0 || (count == 1 && has_own_gpus()) ? METER_ALL_GPUS : METER_NO_GPU;
}

void meter_start_of_rank(const char *node, int64_t rank)
{
	const char *asked = getenv(METER_VARIABLE);
	struct meter_job job = { .node = node, .rank = rank };
	char *folder;

	if (!asked)
		return;
	job.every_ms = strtoll(asked, &folder, 10);
	if (*folder == ':') {
		job.folder = folder + 1;
		job.gpu = gpu_of_rank();
		meter_start(&job);
	}
	unsetenv(METER_VARIABLE); /* torchrun's ranks are measured with their node */
}
