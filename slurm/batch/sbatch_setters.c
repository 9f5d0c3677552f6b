/* SPDX-License-Identifier: MIT */
/* sbatch_setters.c - what each option of sbatch asks for.
 *
 * What sbatch accepts without effect on the job is accepted; what could not be honoured is refused
 * with a way out. */
#include "slurm/batch/sbatch_setters.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "slurm/batch/sbatch_values.h"

#define SETTER SBATCH_SETTER
#define INT32 INT32_MAX

static int not_among(const char *value, const char *allowed, struct err *err)
{
	return err_set(err, ERR_USAGE, "\"%.60s\": must be %s", value, allowed);
}

static void put_text(struct sbatch_choice *c, const char *field, const char *text)
{
	json_object_set_new(c->fields, field, js_bytes(text));
}

/* --- setters of any row ----------------------------------------------------------------------- */

SETTER(set_text)
{
	(void)err;
	put_text(c, option->field, value);
	return 0;
}

SETTER(set_number)
{
	int64_t n = option->constant; /* of one that may stand alone */

	if (value && sbatch_number(value, option->min, option->max, &n, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, n);
	return 0;
}

SETTER(set_flag)
{
	(void)value;
	(void)err;
	js_set_int(c->fields, option->field, 1);
	return 0;
}

SETTER(set_megabytes)
{
	int64_t mb;

	if (sbatch_megabytes(value, &mb, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, mb);
	return 0;
}

static int64_t minutes_of(int64_t seconds)
{
	return seconds == SBATCH_UNLIMITED || seconds == 0 ? SBATCH_UNLIMITED : (seconds + 59) / 60;
}

SETTER(set_minutes)
{
	int64_t seconds;

	if (sbatch_duration(value, &seconds, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, minutes_of(seconds));
	/* Slurm counts minutes, the local scheduler takes it at its word */
	if (strcmp(option->field, "time_limit") == 0 && seconds > 0 && seconds % 60)
		js_set_int(c->fields, "time_seconds", seconds);
	else if (strcmp(option->field, "time_limit") == 0)
		json_object_del(c->fields, "time_seconds");
	return 0;
}

SETTER(set_seconds)
{
	int64_t seconds;

	if (sbatch_duration(value, &seconds, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, seconds);
	return 0;
}

SETTER(set_moment)
{
	time_t when;

	if (sbatch_moment(value, c->now, &when, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, (int64_t)when);
	return 0;
}

/* "none" stands for no file. */
SETTER(set_file)
{
	(void)err;
	put_text(c, option->field, strcasecmp(value, "none") == 0 ? "/dev/null" : value);
	return 0;
}

/* Of sbatch's own behaviour, which is not ours: no effect on the job. */
SETTER(set_nothing)
{
	(void)c;
	(void)option;
	(void)value;
	(void)err;
	return 0;
}

SETTER(refuse)
{
	(void)c;
	(void)value;
	return err_set(err, ERR_USAGE, "%s", option->field);
}

/* --- setters of one row ----------------------------------------------------------------------- */

SETTER(set_nodes)
{
	int64_t min, max;

	(void)option;
	if (sbatch_nodes(value, &min, &max, err) < 0)
		return -1;
	js_set_int(c->fields, "min_nodes", min);
	js_set_int(c->fields, "max_nodes", max);
	return 0;
}

SETTER(set_chdir)
{
	char *path = value[0] == '/' ? xstrdup(value) : path_join("%s/%s", c->workdir, value);

	(void)err;
	put_text(c, option->field, path);
	free(path);
	return 0;
}

SETTER(set_nodelist)
{
	int64_t count;

	if (strchr(value, '/'))
		return err_set(err, ERR_USAGE,
			       "\"%.60s\": a file of nodes is not read; name the "
			       "nodes, like \"n[1-3]\"",
			       value);
	if (sbatch_node_count(value, &count, err) < 0)
		return -1;
	put_text(c, option->field, value);
	return 0;
}

SETTER(set_array)
{
	if (sbatch_array(value, 4000000, NULL, err) < 0)
		return -1;
	put_text(c, option->field, value);
	return 0;
}

/* "2:4:1", "*:2": sockets, cores, threads; a star or nothing leaves one open, whatever was said
 * before. */
SETTER(set_extra_node_info)
{
	static const char *const fields[] = { "sockets_per_node", "cores_per_socket",
					      "threads_per_core" };
	const char *at = value;

	(void)option;
	for (int i = 0; i < 3; i++) {
		size_t len = strcspn(at, ":");
		char *part = xstrndup(at, len);
		int64_t n = 0;
		int rc = 0;

		json_object_del(c->fields, fields[i]);
		if (*part && *part != '*') {
			part[strcspn(part, "-")] = '\0';
			rc = sbatch_number(part, 0, UINT16_MAX - 2, &n, err);
			if (rc == 0)
				js_set_int(c->fields, fields[i], n);
		}
		free(part);
		if (rc < 0)
			return -1;
		at += len + (at[len] == ':');
	}
	js_set_int(c->fields, "extra_set", 1);
	return *at ? not_among(value, "sockets[:cores[:threads]]", err) : 0;
}

SETTER(set_exclusive)
{
	static const struct {
		const char *word;
		int64_t shared;
	} words[] = {
		{ "exclusive", 0 },
		{ "oversubscribe", 1 },
		{ "user", 2 },
		{ "mcs", 3 },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value ? value : "exclusive", words[i].word) == 0) {
			js_set_int(c->fields, option->field, words[i].shared);
			return 0;
		}
	}
	return not_among(value, "user or mcs", err);
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

static void drop_word(struct sbatch_choice *c, const char *field, const char *word)
{
	json_t *list = json_object_get(c->fields, field);

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

SETTER(set_gres_flags)
{
	(void)option;
	if (strcasecmp(value, "disable-binding") != 0 && strcasecmp(value, "enforce-binding") != 0)
		return not_among(value, "disable-binding or enforce-binding", err);
	drop_word(c, "flags", "gres-disable-binding");
	drop_word(c, "flags", "gres-enforce-binding");
	add_word(c, "flags",
		 strcasecmp(value, "disable-binding") == 0 ? "gres-disable-binding"
							   : "gres-enforce-binding");
	return 0;
}

SETTER(set_kill_on_invalid_dep)
{
	(void)option;
	if (strcasecmp(value, "yes") != 0 && strcasecmp(value, "no") != 0)
		return not_among(value, "yes or no", err);
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
		return not_among(value, "off, or nothing", err);
	return 0;
}

SETTER(set_mail_type)
{
	static const char *const types[] = {
		"NONE",           "ARRAY_TASKS",   "BEGIN",         "END",       "FAIL",
		"INVALID_DEPEND", "REQUEUE",       "ALL",           "STAGE_OUT", "TIME_LIMIT",
		"TIME_LIMIT_90",  "TIME_LIMIT_80", "TIME_LIMIT_50",
	};
	int known = 0;

	for (const char *at = value; *at;) {
		size_t len = strcspn(at, ",");

		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
			if (strlen(types[i]) != len || strncasecmp(at, types[i], len) != 0)
				continue;
			known++;
			if (i == 0)
				return 0;
			add_word(c, option->field, types[i]);
		}
		at += len + (at[len] == ',');
	}
	return known ? 0
		     : not_among(value,
				 "NONE, BEGIN, END, FAIL, REQUEUE, ALL, STAGE_OUT, "
				 "INVALID_DEPEND, TIME_LIMIT[_50|_80|_90] or ARRAY_TASKS",
				 err);
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

SETTER(set_nice)
{
	static const int64_t most = INT32_MAX - 2;
	int64_t nice = 100;

	if (value && sbatch_number(value, -most, most, &nice, err) < 0)
		return -1;
	js_set_int(c->fields, option->field, nice);
	return 0;
}

SETTER(set_open_mode)
{
	char mode = (char)tolower((unsigned char)value[0]);

	if (mode != 'a' && mode != 't')
		return not_among(value, "append or truncate", err);
	put_text(c, option->field, mode == 'a' ? "append" : "truncate");
	return 0;
}

SETTER(set_profile)
{
	static const char *const words[] = { "none", "all", "energy", "task", "lustre", "network" };
	bool known = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		known = known || strcasestr(value, words[i]) != NULL;
	if (!known)
		return not_among(value, "none, all, or some of energy, task, lustre, network", err);
	put_text(c, option->field, value);
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

		if (value[5] != '=' || sbatch_number(value + 6, 1, INT32, &size, err) < 0)
			return not_among(value, "plane=SIZE", err);
		js_set_int(c->fields, "plane_size", size);
		put_text(c, option->field, "plane");
		return 0;
	}
	while (*at) {
		size_t len = strcspn(at, ":,");
		bool known = false;

		for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
			known = known ||
				(strlen(parts[i]) == len && strncasecmp(at, parts[i], len) == 0);
		if (!known)
			return not_among(value,
					 "block, cyclic, arbitrary or plane=SIZE, then perhaps "
					 ":block, :cyclic or :fcyclic, and ,Pack or ,NoPack",
					 err);
		at += len + (at[len] != '\0');
	}
	put_text(c, option->field, value);
	return 0;
}

SETTER(set_switches)
{
	const char *at = strchr(value, '@');
	char *count = at ? xstrndup(value, (size_t)(at - value)) : xstrdup(value);
	int64_t n = 0, seconds = 0;
	int rc = sbatch_number(count, 1, INT32, &n, err);

	free(count);
	if (rc < 0 || (at && sbatch_duration(at + 1, &seconds, err) < 0))
		return -1;
	js_set_int(c->fields, option->field, n);
	if (at)
		js_set_int(c->fields, "wait4switch", seconds);
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
		bool known = len > 0 && strspn(at, "0123456789") >= len;

		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			known = known ||
				(strlen(words[i]) == len && strncasecmp(at, words[i], len) == 0);
		if (!known)
			return not_among(value,
					 "a frequency in kHz, low, medium, high, highm1 or a "
					 "governor, as P1[-P2[:P3]]",
					 err);
		at += len + (at[len] != '\0');
	}
	put_text(c, option->field, value);
	return 0;
}

SETTER(set_hint)
{
	static const char *const words[] = { "compute_bound", "memory_bound", "multithread",
					     "nomultithread" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i]) == 0) {
			put_text(c, option->field, words[i]);
			return 0;
		}
	}
	return not_among(value, "compute_bound, memory_bound, multithread or nomultithread", err);
}

/* "none" asks for none. */
SETTER(set_gres)
{
	if (strcasecmp(value, "help") == 0 || strcasecmp(value, "list") == 0)
		return err_set(err, ERR_USAGE,
			       "\"%s\" asks sbatch for a list: scontrol show node "
			       "tells what there is",
			       value);
	put_text(c, option->field, value);
	return 0;
}

SETTER(set_core_spec)
{
	int64_t n;

	if (sbatch_number(value, 0, 0x7fff, &n, err) < 0)
		return -1;
	js_set_int(c->fields, "core_spec", n);
	js_set_int(c->fields, "core_spec_is_threads", option->constant);
	return 0;
}

SETTER(set_get_user_env)
{
	(void)value;
	(void)err;
	js_set_int(c->fields, option->field, 1);
	return 0;
}

SETTER(set_export)
{
	(void)err;
	put_text(c, option->field, value[0] ? value : "ALL");
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
		bool known = false;

		for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
			known = known || (strlen(limits[i]) == len &&
					  strncasecmp(name, limits[i], len) == 0);
		if (!known)
			return not_among(value,
					 "ALL, NONE, or some of AS, CORE, CPU, DATA, FSIZE, "
					 "MEMLOCK, NOFILE, NPROC, RSS, STACK",
					 err);
		at = name + len + (name[len] == ',');
	}
	put_text(c, option->field, value && value[0] ? value : "ALL");
	return 0;
}

SETTER(set_requeue)
{
	(void)value;
	(void)err;
	js_set_int(c->fields, "requeue", option->constant);
	return 0;
}
