/* SPDX-License-Identifier: MIT */
/* meters.c - what the machines do for the trainer, each minute, into the spool; and what their GPUs
 * complain of. */
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "worker/lbrun/meter/meter.h"
#include "worker/lbrun/shepherd/shepherd.h"

static void on_minute(void *arg, json_t *line)
{
	struct shepherd *s = arg;

	journal_own(&s->journal, s->facts.launch.number, json_incref(line));
}

static void on_idle(void *arg, const char *text)
{
	struct shepherd *s = arg;

	journal_note(&s->journal, s->facts.launch.number, "gpu_idle", "%s", text);
	output_say(&s->output, "%s", text);
}

/* The trainer's end may follow from it: it is heard like a line that the trainer printed. */
static void on_xid(void *arg, const char *node, int64_t gpu, int64_t xid)
{
	static const char *const faults[] = { [XID_UNKNOWN] = "not known",
					      [XID_APPLICATION] = "application",
					      [XID_HARDWARE] = "hardware",
					      [XID_HARMLESS] = "harmless" };
	struct shepherd *s = arg;
	const struct xid_row *row = xid_find(xid);
	char text[200];
	struct heard line = { text, 0, node, -1, true, clock_mono_ms() };

	snprintf(text, sizeof(text), "XID %lld of GPU %lld, %s: %s", (long long)xid, (long long)gpu,
		 faults[row->fault], row->text);
	line.len = strlen(text);
	output_say(&s->output, "%s: %s", node, text);
	if (row->fault == XID_HARDWARE)
		trainer_protocol_node_error(s, node, text);
	else
		journal_note(&s->journal, s->facts.launch.number, "xid", "%s: %s", node, text);
	if (row->fault == XID_HARDWARE || row->fault == XID_APPLICATION)
		complaints_hear(&s->complaints, &line);
	s->facts.launch.is_hardware |= row->fault == XID_HARDWARE;
}

void meters_start(struct shepherd *s)
{
	struct meter_job job = {
		.folder = s->folder,
		.node = s->node,
		.every_ms = s->params.watch.usage_ms,
		.gpu = METER_ALL_GPUS,
	};

	if (job.every_ms <= 0)
		return;
	usage_open(&s->usage, s->folder, s->params.watch.idle_gpu_ms);
	s->usage.on_minute = on_minute;
	s->usage.on_idle = on_idle;
	s->usage.on_xid = on_xid;
	s->usage.arg = s;
	if (!s->policy.is_srun) /* else each rank's lbrun has one */
		meter_start(&job);
}

void meters_look(struct shepherd *s, int64_t now_ms)
{
	enum { LOOKS = 4 }; /* in a minute */

	if (!s->usage.folder || now_ms < s->usage_look_ms)
		return;
	s->usage_look_ms = now_ms + s->params.watch.usage_ms / LOOKS;
	usage_look(&s->usage);
}
