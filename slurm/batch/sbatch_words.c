/* SPDX-License-Identifier: MIT */
/* sbatch_words.c - what each option of sbatch asks for whose value is one of some words, or a list
 * of them. */
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/batch/sbatch_setters.h"
#include "slurm/batch/sbatch_values.h"

#define SETTER SBATCH_SETTER
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Which of them the first `len` characters of `at` are, whatever their case; -1: none. */
static ptrdiff_t find_word(const char *const *words, size_t count, const char *at, size_t len)
{
	for (size_t i = 0; i < count; i++)
		if (strlen(words[i]) == len && strncasecmp(at, words[i], len) == 0)
			return (ptrdiff_t)i;
	return -1;
}

SETTER(set_exclusive)
{
	static const struct {
		const char *word;
		int64_t shared;
	} words[] = {
		{ "exclusive", 0 }, { "allocation", 0 }, { "oversubscribe", 1 },
		{ "user", 2 },      { "mcs", 3 },        { "topo", 4 },
	};
	static const char newer[] = "exclusive=topo"; /* a field: not every release has it */

	json_object_del(c->fields, newer);
	for (size_t i = 0; i < COUNT(words); i++) {
		if (strcasecmp(value ? value : "exclusive", words[i].word) == 0) {
			js_set_int(c->fields, option->field, words[i].shared);
			if (strcmp(words[i].word, "topo") == 0)
				js_set_int(c->fields, newer, 1);
			return 0;
		}
	}
	return sbatch_not_among(value, "user, mcs or topo", err);
}

/* Words that the helper knows; a later one does not undo an earlier one. */
static void add_word(struct sbatch_choice *c, const char *field, const char *word)
{
	json_t *list = json_object_get(c->fields, field);

	if (!list) {
		list = json_array();
		json_object_set_new(c->fields, field, list);
	}
	json_array_append_new(list, json_string(word));
}

static void drop_flag(struct sbatch_choice *c, const char *word)
{
	json_t *list = json_object_get(c->fields, "flags");

	for (size_t i = json_array_size(list); i-- > 0;) {
		if (strcmp(json_string_value(json_array_get(list, i)), word) == 0)
			json_array_remove(list, i);
	}
}

SETTER(set_job_flag)
{
	(void)value;
	(void)err;
	add_word(c, "flags", option->field);
	return 0;
}

/* A later option undoes an earlier one. */
SETTER(set_gres_flags)
{
	static const char *const flags[] = { "disable-binding", "enforce-binding",
					     "multiple-tasks-per-sharing", "one-task-per-sharing" };
	static const char *const words[] = { "gres-disable-binding", "gres-enforce-binding",
					     "gres-multiple-tasks-per-sharing",
					     "gres-one-task-per-sharing" };

	(void)option;
	for (size_t i = 0; i < COUNT(words); i++)
		drop_flag(c, words[i]);
	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ",");
		ptrdiff_t i = find_word(flags, COUNT(flags), at, len);

		if (i < 0)
			return sbatch_not_among(
				value,
				"disable-binding or enforce-binding, and perhaps "
				"multiple-tasks-per-sharing or one-task-per-sharing",
				err);
		add_word(c, "flags", words[i]);
		at += len + (at[len] == ',');
	}
	return 0;
}

SETTER(set_kill_on_invalid_dep)
{
	(void)option;
	if (strcasecmp(value, "yes") != 0 && strcasecmp(value, "no") != 0)
		return sbatch_not_among(value, "yes or no", err);
	add_word(c, "flags",
		 strcasecmp(value, "yes") == 0 ? "kill-invalid-dep" : "no-kill-invalid-dep");
	return 0;
}

SETTER(set_no_kill)
{
	if (!value || strcasecmp(value, "set") == 0)
		js_set_int(c->fields, option->field, 0);
	else if (strcasecmp(value, "off") == 0 || strcasecmp(value, "no") == 0)
		json_object_del(c->fields, option->field);
	else
		return sbatch_not_among(value, "off, or nothing", err);
	return 0;
}

SETTER(set_mail_type)
{
	static const char *const types[] = {
		"NONE",           "ARRAY_TASKS",   "BEGIN",         "END",       "FAIL",
		"INVALID_DEPEND", "REQUEUE",       "ALL",           "STAGE_OUT", "TIME_LIMIT",
		"TIME_LIMIT_90",  "TIME_LIMIT_80", "TIME_LIMIT_50",
	};
	bool is_known = false;

	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ",");
		ptrdiff_t i = find_word(types, COUNT(types), at, len);

		if (i == 0)
			return 0;
		if (i > 0)
			add_word(c, option->field, types[i]);
		is_known = is_known || i > 0;
		at += len + (at[len] == ',');
	}
	return is_known ? 0
			: sbatch_not_among(value,
					   "NONE, BEGIN, END, FAIL, REQUEUE, ALL, STAGE_OUT, "
					   "INVALID_DEPEND, TIME_LIMIT[_50|_80|_90] or ARRAY_TASKS",
					   err);
}

SETTER(set_open_mode)
{
	char mode = (char)tolower((unsigned char)value[0]);

	if (mode != 'a' && mode != 't')
		return sbatch_not_among(value, "append or truncate", err);
	sbatch_put_text(c, option->field, mode == 'a' ? "append" : "truncate");
	return 0;
}

SETTER(set_profile)
{
	static const char *const words[] = { "none", "all", "energy", "task", "lustre", "network" };
	bool known = false;

	for (size_t i = 0; i < COUNT(words); i++)
		known = known || strcasestr(value, words[i]) != NULL;
	if (!known)
		return sbatch_not_among(value,
					"none, all, or some of energy, task, lustre, network", err);
	sbatch_put_text(c, option->field, value);
	return 0;
}

/* "[state][:socket[:core]][,[No]Pack]", "plane=SIZE" */
SETTER(set_distribution)
{
	static const char *const parts[] = { "block",    "cyclic", "fcyclic", "arbitrary",
					     "hostfile", "pack",   "nopack",  "*" };
	const char *at = value;

	if (strncasecmp(value, "plane", 5) == 0) {
		int64_t size;

		if (value[5] != '=' || sbatch_number(value + 6, 1, INT32_MAX, &size, err) < 0)
			return sbatch_not_among(value, "plane=SIZE", err);
		js_set_int(c->fields, "plane_size", size);
		sbatch_put_text(c, option->field, "plane");
		return 0;
	}
	while (*at) {
		size_t len = strcspn(at, ":,");

		if (find_word(parts, COUNT(parts), at, len) < 0)
			return sbatch_not_among(
				value,
				"block, cyclic, arbitrary or plane=SIZE, then perhaps "
				":block, :cyclic or :fcyclic, and ,Pack or ,NoPack",
				err);
		at += len + (at[len] != '\0');
	}
	sbatch_put_text(c, option->field, value);
	return 0;
}

/* srun prints this list, too: a word of it, or a number. */
SETTER(set_cpu_freq)
{
	static const char *const words[] = { "low",          "medium",   "high",        "highm1",
					     "conservative", "ondemand", "performance", "powersave",
					     "schedutil",    "userspace" };
	const char *at = value;

	while (*at) {
		size_t len = strcspn(at, "-:");
		bool is_number = len > 0 && text_digits(at) >= len;

		if (!is_number && find_word(words, COUNT(words), at, len) < 0)
			return sbatch_not_among(
				value,
				"a frequency in kHz, low, medium, high, highm1 or a "
				"governor, as P1[-P2[:P3]]",
				err);
		at += len + (at[len] != '\0');
	}
	sbatch_put_text(c, option->field, value);
	return 0;
}

SETTER(set_hint)
{
	static const char *const words[] = { "compute_bound", "memory_bound", "multithread",
					     "nomultithread" };
	ptrdiff_t i = find_word(words, COUNT(words), value, strlen(value));

	if (i < 0)
		return sbatch_not_among(
			value, "compute_bound, memory_bound, multithread or nomultithread", err);
	sbatch_put_text(c, option->field, words[i]);
	return 0;
}

/* Names of limits, as "CORE" or "RLIMIT_CORE". */
SETTER(set_propagate)
{
	static const char *const limits[] = { "ALL",  "NONE", "CPU",   "FSIZE",  "DATA",    "STACK",
					      "CORE", "RSS",  "NPROC", "NOFILE", "MEMLOCK", "AS" };
	const char *at = value ? value : "";

	while (*at) {
		const char *name = at + (strncasecmp(at, "RLIMIT_", 7) == 0 ? 7 : 0);
		size_t len = strcspn(name, ",");

		if (find_word(limits, COUNT(limits), name, len) < 0)
			return sbatch_not_among(value,
						"ALL, NONE, or some of AS, CORE, CPU, DATA, FSIZE, "
						"MEMLOCK, NOFILE, NPROC, RSS, STACK",
						err);
		at = name + len + (name[len] == ',');
	}
	sbatch_put_text(c, option->field, value && value[0] ? value : "ALL");
	return 0;
}

/* "[R][B][:]SIGNAL[@SECONDS]" */
SETTER(set_signal)
{
	const char *at = value, *when = strchr(value, '@');
	int64_t seconds = 60, number = 0;
	char *name;
	int rc;

	for (; toupper((unsigned char)*at) == 'R' || toupper((unsigned char)*at) == 'B'; at++)
		add_word(c, "warn_flags",
			 toupper((unsigned char)*at) == 'R' ? "reservation" : "batch");
	at += *at == ':';
	name = xstrndup(at, when ? (size_t)(when - at) : strlen(at));
	rc = when ? sbatch_number(when + 1, 0, UINT16_MAX, &seconds, err) : 0;
	if (rc == 0)
		rc = sbatch_signal_number(name, &number, err);
	free(name);
	if (rc < 0)
		return -1;
	js_set_int(c->fields, option->field, number);
	js_set_int(c->fields, "warn_time", seconds);
	return 0;
}
