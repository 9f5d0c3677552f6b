/* SPDX-License-Identifier: MIT */
/* needs.c - the fields of a job, as far as one machine can give what they ask for. */
#include "slurm/local/needs.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/sbatch_options.h"

/* --- GPUs as words ---------------------------------------------------------------------------- */

/* "2" or "a100:2" */
static bool is_count(const char *item)
{
	const char *colon = strchr(item, ':');

	return colon != item && text_is_digits(colon ? colon + 1 : item);
}

/* "gres:gpu:a100:2" → ":a100:2"; NULL: these are no GPUs */
static const char *after_gpu(const char *item)
{
	if (strncmp(item, "gres:", 5) == 0 || strncmp(item, "gres/", 5) == 0)
		item += 5;
	return strncmp(item, "gpu", 3) == 0 && strchr(":=", item[3]) ? item + 3 : NULL;
}

static bool is_of_gpus(const char *item)
{
	return after_gpu(item) != NULL;
}

/* Of GPUs: "gpu", "gpu:2", "gpu:a100" or "gpu:a100:2". */
static bool is_gres(const char *item)
{
	const char *rest = after_gpu(item);

	return !rest || !*rest || (rest[0] == ':' && is_count(rest + 1)) ||
	       (rest[0] == ':' && isalpha((unsigned char)rest[1]) && !strchr(rest + 1, ':'));
}

/* The first of "a,b" that `is_right` does not take; owned, NULL: there is none. */
static char *first_other(const char *list, bool (*is_right)(const char *item))
{
	while (*list) {
		size_t len = strcspn(list, ",");
		char *item = xstrndup(list, len);

		if (len > 0 && !is_right(item))
			return item;
		free(item);
		list += len + (list[len] == ',');
	}
	return NULL;
}

/* What Slurm refuses must not pass for no GPU at all. */
static int check_gpus(const json_t *fields, struct err *err)
{
	static const char *const lists[][2] = { { "gpus", "gpus" },
						{ "gpus_per_node", "gpus-per-node" },
						{ "gpus_per_task", "gpus-per-task" },
						{ "gpus_per_socket", "gpus-per-socket" },
						{ "gres", "gres" } };

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		bool is_list_of_gres = strcmp(lists[i][0], "gres") == 0;
		char *wrong = first_other(js_str(fields, lists[i][0], ""),
					  is_list_of_gres ? is_gres : is_count);

		if (wrong)
			err_set(err, ERR_REFUSED,
				"--%s: \"%.100s\" is no number of GPUs; write it like \"%s\"",
				lists[i][1], wrong, is_list_of_gres ? "gpu:a100:2" : "a100:2");
		free(wrong);
		if (wrong)
			return -1;
	}
	return 0;
}

/* --- what only Slurm can do ------------------------------------------------------------------- */

static int check_kind(const json_t *fields, struct err *err)
{
	const char *dependency = js_str(fields, "dependency", "");

	if (js_int(fields, "warn_time", 0) > 0 && js_int(fields, "warn_signal", SIGUSR1) != SIGUSR1)
		return err_set(err, ERR_REFUSED,
			       "--signal: without Slurm only USR1 announces the end");
	if (dependency[0] && strcasecmp(dependency, "singleton") != 0)
		return err_set(err, ERR_REFUSED,
			       "--dependency: there are no jobs of Slurm on this machine to wait "
			       "for; lbctl submit --after-ok RUN waits for a run");
	if (json_object_get(fields, "begin_time"))
		return err_set(err, ERR_REFUSED,
			       "--begin: without Slurm no job waits for a time; a line of the "
			       "crontab (lbctl cron) starts it then");
	return 0;
}

/* The rest of what one machine does not read is about how many tasks lie where, which matters to
 * srun alone. */
char *needs_unused(const json_t *fields)
{
	enum { LIST_BYTES = 512 };
	char *other = first_other(js_str(fields, "gres", ""), is_of_gpus);
	struct buf out;
	const json_t *option;
	size_t i;
	char *list;

	buf_init(&out, LIST_BYTES);
	for (i = 0; i < sbatch_option_count; i++)
		if (sbatch_options[i].of_cluster &&
		    json_object_get(fields, sbatch_options[i].field))
			buf_addf(&out, ", --%s", sbatch_options[i].name);
	if (js_int(fields, "shared", 1) == 0)
		buf_addf(&out, ", --exclusive");
	if (other)
		buf_addf(&out, ", --gres");
	free(other);
	json_array_foreach(json_object_get(fields, "plugin_options"), i, option) {
		char *text = js_bytes_take(option);

		buf_addf(&out, ", %s", text);
		free(text);
	}
	buf_add(&out, "", 0);
	list = buf_take(&out);
	if (list[0]) {
		memmove(list, list + 2, strlen(list + 2) + 1);
		return list;
	}
	free(list);
	return NULL;
}

/* --- what one machine has --------------------------------------------------------------------- */

int needs_read(const json_t *fields, struct needs *out, struct err *err)
{
	bool has_own_cpus = js_int(fields, "cpus_per_task", 0) > 0 ||
			    js_int(fields, "cpus_per_gpu", 0) > 0;
	int64_t minutes = js_int(fields, "time_limit", 0);
	json_t *totals;

	if (check_kind(fields, err) < 0 || check_gpus(fields, err) < 0)
		return -1;
	totals = batch_totals(fields);
	*out = (struct needs){
		.nodes = js_int(fields, "min_nodes", 0),
		.slots.gpus = js_int(totals, "gpus", 0),
		.slots.cpus = has_own_cpus ? js_int(totals, "cpus", 0) : 0,
		.slots.mem_mb = js_int(totals, "mem_mb", 0),
		.time_seconds = js_int(fields, "time_seconds", minutes > 0 ? minutes * 60 : 0),
		.warn_seconds = js_int(fields, "warn_time", 0),
		.array = js_str(fields, "array_inx", NULL),
	};
	json_decref(totals);
	return 0;
}
