/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fields.c - writes what was asked for into libslurm's job description.
 *
 * Most fields are a member of the description under the same name: those are rows of a table. What
 * is written in words becomes constants of this libslurm in field_words.c. */
#include "slurm/helper/fields.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/helper/field_words.h"

/* --- members of the same name ----------------------------------------------------------------- */

enum kind { TEXT, U8, U16, U32, U64, TIME };

struct row {
	const char *field;
	enum kind kind;
	size_t offset;
};

/* clang-format off */
#define ROW(kind, member) {#member, kind, offsetof(job_desc_msg_t, member)}
/* clang-format on */

/* clang-format off */
static const struct row rows[] = {
	ROW(TEXT, account), ROW(TEXT, acctg_freq), ROW(TEXT, array_inx), ROW(TEXT, batch_features),
	ROW(TIME, begin_time), ROW(TEXT, burst_buffer), ROW(TEXT, cluster_features),
	IF_CONTAINER(ROW(TEXT, container),) IF_EXTRA(ROW(TEXT, container_id),) ROW(U16, contiguous), ROW(U16, cores_per_socket),
	IF_SEGMENTS(ROW(TEXT, container_type),)
	ROW(U16, cpus_per_task), ROW(TIME, deadline), ROW(U32, delay_boot), ROW(TEXT, dependency),
	ROW(TEXT, exc_nodes), IF_EXTRA(ROW(TEXT, extra),) ROW(TEXT, features), ROW(U16, kill_on_node_fail),
	ROW(TEXT, licenses), ROW(TEXT, mail_user), ROW(U32, max_nodes), ROW(TEXT, mcs_label),
	ROW(U32, min_cpus), ROW(U32, min_nodes), ROW(TEXT, network), ROW(U16, ntasks_per_core),
	ROW(U16, ntasks_per_node), ROW(U16, ntasks_per_socket), ROW(U32, num_tasks),
	IF_OOM_KILL_STEP(ROW(U16, oom_kill_step),)
	ROW(U8, overcommit), ROW(TEXT, partition), ROW(U16, plane_size), ROW(U16, pn_min_cpus),
	ROW(U32, pn_min_tmp_disk), IF_PREFER(ROW(TEXT, prefer),) ROW(TEXT, qos), ROW(U16, reboot),
	IF_PREFER(ROW(TEXT, req_context),) ROW(TEXT, req_nodes), ROW(U32, req_switch),
	ROW(TEXT, reservation), ROW(U16, shared),
	ROW(U16, sockets_per_node), ROW(TEXT, std_err), ROW(TEXT, std_in), ROW(TEXT, std_out),
	ROW(U16, threads_per_core), ROW(U32, time_limit), ROW(U32, time_min), ROW(U32, wait4switch),
	ROW(U16, wait_all_nodes), ROW(U16, warn_signal), ROW(U16, warn_time), ROW(TEXT, wckey),
	ROW(TEXT, work_dir),
};
/* clang-format on */

/* -1 stands for "without end". */
static void put_number(void *at, enum kind kind, int64_t n)
{
	if (kind == U8)
		*(uint8_t *)at = (uint8_t)n;
	else if (kind == U16)
		*(uint16_t *)at = (uint16_t)n;
	else if (kind == U32)
		*(uint32_t *)at = n < 0 ? INFINITE : (uint32_t)n;
	else if (kind == U64)
		*(uint64_t *)at = (uint64_t)n;
	else
		*(time_t *)at = (time_t)n;
}

static void put_rows(const json_t *fields, job_desc_msg_t *desc, struct kept *kept)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		void *at = (char *)desc + rows[i].offset;
		const json_t *value = json_object_get(fields, rows[i].field);

		if (!value)
			continue;
		if (rows[i].kind == TEXT)
			*(char **)at = keep(kept, js_bytes_take(value));
		else
			put_number(at, rows[i].kind, json_integer_value(value));
	}
}

/* --- GPUs and other generic resources --------------------------------------------------------- */

/* "a:3,b:1" → "gres:gpu:a:3,gres:gpu:b:1"; what has the prefix keeps it. Owned by `kept`. */
static char *with_prefix(struct kept *kept, const char *prefix, const char *list)
{
	char *out = xstrdup("");

	for (const char *at = list; at && *at;) {
		size_t len = strcspn(at, ",");
		bool has = strncmp(at, "gres:", 5) == 0 || strncmp(at, "gres/", 5) == 0;
		char *longer = xasprintf("%s%s%s%.*s", out, *out ? "," : "", has ? "" : prefix,
					 (int)len, at);

		free(out);
		out = longer;
		at += len + (at[len] == ',');
	}
	return keep(kept, out);
}

/* "a100:2" and 4 CPUs → "cpu=4,gres/gpu:a100=2" (TASK_COUNT), and a GPU is bound to its task unless
 * it is said otherwise. */
static void put_per_task(const json_t *fields, job_desc_msg_t *desc, struct kept *kept)
{
	const char *gpus = js_str(fields, "gpus_per_task", NULL);
	int64_t cpus = js_int(fields, "cpus_per_task", 0);
	const char *count = gpus ? strpbrk(gpus, ":=") : NULL;
	char *of_cpus = cpus > 0 ? xasprintf("cpu" TASK_COUNT "%lld", (long long)cpus)
				 : xstrdup("");
	char *of_gpus = xstrdup("");

	if (gpus) {
		long number = strtol(count ? count + 1 : gpus, NULL, 10);

		free(of_gpus);
		of_gpus = xasprintf("gres/gpu%s%.*s" TASK_COUNT "%ld", count ? ":" : "",
				    count ? (int)(count - gpus) : 0, gpus, number);
		if (!desc->tres_bind)
			desc->tres_bind = keep(kept, xasprintf(BIND_GPU "per_task:%ld", number));
	}
	if (*of_cpus || *of_gpus)
		desc->tres_per_task = keep(kept,
					   xasprintf("%s%s%s", of_cpus,
						     *of_cpus && *of_gpus ? "," : "", of_gpus));
	free(of_cpus);
	free(of_gpus);
}

static void put_gres(const json_t *fields, job_desc_msg_t *desc, struct kept *kept)
{
	static const struct {
		const char *field;
		size_t offset;
	} gpus[] = {
		{ "gpus", offsetof(job_desc_msg_t, tres_per_job) },
		{ "gpus_per_node", offsetof(job_desc_msg_t, tres_per_node) },
		{ "gpus_per_socket", offsetof(job_desc_msg_t, tres_per_socket) },
		{ "gpus_per_task", offsetof(job_desc_msg_t, tres_per_task) },
	};
	const char *gres = js_str(fields, "gres", NULL);
	int64_t cpus = js_int(fields, "cpus_per_gpu", 0), mb = js_int(fields, "mem_per_gpu", -1);

	for (size_t i = 0; i < sizeof(gpus) / sizeof(gpus[0]); i++) {
		const char *list = js_str(fields, gpus[i].field, NULL);

		if (list)
			*(char **)((char *)desc + gpus[i].offset) = with_prefix(kept,
										GRES "gpu:", list);
	}
	if (gres && strcasecmp(gres, "none") != 0) {
		char *list = with_prefix(kept, GRES, gres), *before = desc->tres_per_node;

		desc->tres_per_node = before ? keep(kept, xasprintf("%s,%s", before, list)) : list;
	}
	if (cpus > 0)
		desc->cpus_per_tres = keep(kept, xasprintf(GRES "gpu:%lld", (long long)cpus));
	if (mb >= 0)
		desc->mem_per_tres = keep(kept, xasprintf(GRES "gpu:%lld", (long long)mb));
	if (js_str(fields, "gpu_bind", NULL))
		desc->tres_bind = keep(kept,
				       xasprintf(BIND_GPU "%s", js_str(fields, "gpu_bind", "")));
	if (js_str(fields, "gpu_freq", NULL))
		desc->tres_freq = keep(kept, xasprintf("gpu:%s", js_str(fields, "gpu_freq", "")));
	if (TASKS_HAVE_TRES)
		put_per_task(fields, desc, kept);
}

/* --- the rest --------------------------------------------------------------------------------- */

static void put_memory(const json_t *fields, job_desc_msg_t *desc)
{
	int64_t per_node = js_int(fields, "mem_per_node", -1);
	int64_t per_cpu = js_int(fields, "mem_per_cpu", -1);

	if (per_node >= 0)
		desc->pn_min_memory = (uint64_t)per_node;
	else if (per_cpu >= 0)
		desc->pn_min_memory = (uint64_t)per_cpu | MEM_PER_CPU;
}

enum { RANGES_BYTES = 64 }; /* brackets, where a shortest form is the longer one */

/* sbatch writes it in its shortest form, each node once. */
static void put_nodelist(job_desc_msg_t *desc, struct kept *kept)
{
	nodes_t list = desc->req_nodes ? slurm_hostlist_create(desc->req_nodes) : NULL;
	size_t bytes = desc->req_nodes ? strlen(desc->req_nodes) + RANGES_BYTES : 0;
	char *text;

	if (!list)
		return;
	slurm_hostlist_uniq(list);
	text = xcalloc(1, bytes);
	if (slurm_hostlist_ranged_string(list, bytes, text) >= 0)
		desc->req_nodes = text;
	keep(kept, text);
	slurm_hostlist_destroy(list);
}

static void put_plain(const json_t *fields, job_desc_msg_t *desc)
{
	const char *open_mode = js_str(fields, "open_mode", NULL);
	int64_t per_tres = js_int(fields, "ntasks_per_tres", js_int(fields, "ntasks_per_gpu", -1));

	if (json_object_get(fields, "num_tasks"))
		desc->bitflags |= JOB_NTASKS_SET;
	else if (json_object_get(fields, "implied_tasks"))
		desc->num_tasks = (uint32_t)js_int(fields, "implied_tasks", 0);
	if (json_object_get(fields, "cpus_per_task"))
		desc->bitflags |= JOB_CPUS_SET;
	else if (json_object_get(fields, "implied_cpus_per_task"))
		desc->cpus_per_task = (uint16_t)js_int(fields, "implied_cpus_per_task", 0);
	if (js_int(fields, "ntasks_per_core_infinite", 0))
		desc->ntasks_per_core = INFINITE16;
	if (per_tres > 0)
		desc->ntasks_per_tres = (uint16_t)per_tres;
	if (json_object_get(fields, "nice"))
		desc->nice = (uint32_t)((int64_t)NICE_OFFSET + js_int(fields, "nice", 0));
	if (json_object_get(fields, "core_spec"))
		desc->core_spec = (uint16_t)(js_int(fields, "core_spec", 0) |
					     (js_int(fields, "core_spec_is_threads", 0)
						      ? CORE_SPEC_THREAD
						      : 0));
	if (open_mode)
		desc->open_mode = strcmp(open_mode, "append") == 0 ? OPEN_MODE_APPEND
								   : OPEN_MODE_TRUNCATE;
	IF_POWER(if (strcasestr(js_str(fields, "power", ""), "level"))
			 desc->power_flags = SLURM_POWER_FLAGS_LEVEL;)
	if (!json_object_get(fields, "contiguous"))
		desc->contiguous = 0;
}

/* clang-format off */
/* What sbatch has learned since 24.05. */
static void put_newer(const json_t *fields, job_desc_msg_t *desc, struct kept *kept)
{
	(void)kept;
	(void)desc;
	(void)fields;
	IF_SEGMENT(
		if (json_object_get(fields, "segment"))
			desc->segment_size = (uint16_t)js_int(fields, "segment", 0);
		if (json_object_get(fields, "resv_ports"))
			desc->resv_port_cnt = (uint16_t)js_int(fields, "resv_ports", 0);
		if (js_int(fields, "stepmgr", 0))
			desc->bitflags |= STEPMGR_ENABLED;
	)
	IF_SEGMENTS(
		const char *resources = js_str(fields, "resources", NULL);

		if (resources) /* as sbatch has it: licenses of nodes */
			desc->licenses = keep(kept, xasprintf("%s%s%s", desc->licenses ? desc->licenses : "",
							      desc->licenses ? "," : "", resources));
		if (js_int(fields, "spread_segments", 0))
			desc->bitflags |= SPREAD_SEGMENTS;
		if (js_int(fields, "consolidate_segments", 0))
			desc->bitflags |= CONSOLIDATE_SEGMENTS;
		if (js_int(fields, "mem_update", 0)) {
			desc->mem_update_margin = (uint16_t)js_int(fields, "mem_update", 0);
			desc->mem_update_delay = (uint16_t)js_int(fields, "mem_update_minutes", 0);
		}
	)
}
/* clang-format on */

/* A field that is there, but not in this release, is no field to leave out. */
static int check_lacking(const json_t *fields, struct err *err)
{
	static const char *const lacking[] = SLURM_LACKS;

	for (const char *const *field = lacking; *field; field++) {
		char option[40];

		if (!json_object_get(fields, *field))
			continue;
		snprintf(option, sizeof(option), "%s", *field);
		for (char *at = option; (at = strchr(at, '_'));)
			*at = '-';
		return err_set(err, ERR_USAGE, "--%s: Slurm %d.%02d does not know it", option,
			       SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
			       SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER));
	}
	return 0;
}

int fields_apply(const json_t *fields, job_desc_msg_t *desc, struct kept *kept, struct err *err)
{
	if (check_lacking(fields, err) < 0)
		return -1;
	put_rows(fields, desc, kept);
	put_nodelist(desc, kept);
	put_memory(fields, desc);
	put_gres(fields, desc, kept);
	put_plain(fields, desc);
	put_newer(fields, desc, kept);
	return field_words_apply(fields, desc, kept, err);
}

/* --- errors ----------------------------------------------------------------------------------- */

static const struct blame {
	int code;
	const char *key;
	size_t member;
} blames[] = {
	{ ESLURM_INVALID_PARTITION_NAME, "slurm.partition", offsetof(job_desc_msg_t, partition) },
	{ ESLURM_PARTITION_NOT_AVAIL, "slurm.partition", offsetof(job_desc_msg_t, partition) },
	{ ESLURM_PARTITION_ASSOC, "slurm.partition", offsetof(job_desc_msg_t, partition) },
	{ ESLURM_USER_ID_MISSING, "slurm.partition", offsetof(job_desc_msg_t, partition) },
	{ ESLURM_INVALID_ACCOUNT, "slurm.account", offsetof(job_desc_msg_t, account) },
	{ ESLURM_INVALID_QOS, "slurm.qos", offsetof(job_desc_msg_t, qos) },
	{ ESLURM_INVALID_FEATURE, "slurm.constraint", offsetof(job_desc_msg_t, features) },
	{ ESLURM_INVALID_NODE_NAME, "slurm.nodelist", offsetof(job_desc_msg_t, req_nodes) },
	{ ESLURM_INVALID_LICENSES, "slurm.licenses", offsetof(job_desc_msg_t, licenses) },
	{ ESLURM_RESERVATION_INVALID, "slurm.reservation", offsetof(job_desc_msg_t, reservation) },
	{ ESLURM_RESERVATION_ACCESS, "slurm.reservation", offsetof(job_desc_msg_t, reservation) },
};

const char *fields_blame(const job_desc_msg_t *desc, int code, const char **value)
{
	for (size_t i = 0; i < sizeof(blames) / sizeof(blames[0]); i++) {
		*value = *(char *const *)((const char *)desc + blames[i].member);
		if (blames[i].code == code && *value)
			return blames[i].key;
	}
	return NULL;
}
