/* SPDX-License-Identifier: MIT */
/* sbatch_tres.c - options of newer releases: what is for each task (--tres-per-task, --tres-bind),
 * in the words of --cpus-per-task, --gpus-per-task and --gpu-bind, which every release has;
 * --mem-update. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "slurm/batch/sbatch_setters.h"
#include "slurm/batch/sbatch_values.h"

#define U16 (UINT16_MAX - 2)

/* What stands behind the name of GPUs, "" where there is nothing; NULL: it is something else. */
static const char *behind_gpu(const char *text)
{
	static const char *const names[] = { "gres/gpu", "gres:gpu", "gpu" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(text, names[i], len) == 0 && strchr(":=", text[len]))
			return text + len + (text[len] != '\0');
	}
	return NULL;
}

/* "a100=2" as "a100:2", which every release reads. */
static void put_gpus(struct sbatch_choice *c, const char *field, const char *text)
{
	char *copy = xstrdup(text[0] ? text : "1");

	for (char *at = copy; (at = strchr(at, '='));)
		*at = ':';
	sbatch_put_text(c, field, copy);
	free(copy);
}

static int take_one(struct sbatch_choice *c, const char *item, struct err *err)
{
	const char *gpus = behind_gpu(item);
	int64_t cpus;

	if (gpus) {
		put_gpus(c, "gpus_per_task", gpus);
		return 0;
	}
	if (strncasecmp(item, "cpu", 3) != 0 || !item[3] || !strchr(":=", item[3]))
		return err_set(err, ERR_USAGE, "\"%.60s\": must be cpu=N or gres/gpu[:TYPE]=N",
			       item);
	if (sbatch_number(item + 4, 1, U16, &cpus, err) < 0)
		return -1;
	js_set_int(c->fields, "cpus_per_task", cpus);
	return 0;
}

SBATCH_SETTER(set_tres_per_task)
{
	char *copy = xstrdup(value), *rest = copy, *item;
	int rc = 0;

	(void)option;
	while (rc == 0 && (item = strsep(&rest, ",")))
		rc = take_one(c, item, err);
	free(copy);
	return rc;
}

SBATCH_SETTER(set_tres_bind)
{
	const char *how = behind_gpu(value);

	if (!how || !how[0] || strpbrk(how, "+;"))
		return err_set(err, ERR_USAGE,
			       "\"%.60s\": must be gres/gpu:HOW, as in gres/gpu:closest", value);
	json_object_set_new(c->fields, option->field, js_bytes(how));
	return 0;
}

/* "20@10": what is not used but for 20 %, after 10 minutes. */
SBATCH_SETTER(set_mem_update)
{
	const char *at = strchr(value, '@');
	char *margin = xstrndup(value, at ? (size_t)(at - value) : 0);
	int64_t percent = 0, seconds = 0;
	int rc = 0;

	(void)option;
	if (at)
		rc = sbatch_number(margin, 1, U16, &percent, err) < 0 ||
				     sbatch_duration(at + 1, &seconds, err) < 0
			     ? -1
			     : 0;
	free(margin);
	if (rc)
		return rc;
	if (seconds <= 0 || seconds > U16 * INT64_C(60))
		return err_set(err, ERR_USAGE, "\"%.60s\": must be PERCENT@TIME", value);
	js_set_int(c->fields, "mem_update", percent);
	js_set_int(c->fields, "mem_update_minutes", (seconds + 59) / 60);
	return 0;
}
