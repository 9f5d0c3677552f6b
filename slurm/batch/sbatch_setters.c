/* SPDX-License-Identifier: MIT */
/* sbatch_setters.c - what each option of sbatch asks for whose value is a number, a name or a time;
 * those of words: sbatch_words.c.
 *
 * What sbatch accepts without effect on the job is accepted; what could not be honoured is refused
 * with a way out. */
#include "slurm/batch/sbatch_setters.h"

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

int sbatch_not_among(const char *value, const char *allowed, struct err *err)
{
	return err_set(err, ERR_USAGE, "\"%.60s\": must be %s", value, allowed);
}

void sbatch_put_text(struct sbatch_choice *c, const char *field, const char *text)
{
	json_object_set_new(c->fields, field, js_bytes(text));
}

/* --- setters of any row ----------------------------------------------------------------------- */

SETTER(set_text)
{
	(void)err;
	sbatch_put_text(c, option->field, value);
	return 0;
}

/* "" says that nothing is asked for, whatever was said before. */
SETTER(set_text_or_none)
{
	(void)err;
	if (value[0])
		sbatch_put_text(c, option->field, value);
	else
		json_object_del(c->fields, option->field);
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
	sbatch_put_text(c, option->field, strcasecmp(value, "none") == 0 ? "/dev/null" : value);
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
	sbatch_put_text(c, option->field, path);
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
	sbatch_put_text(c, option->field, value);
	return 0;
}

SETTER(set_array)
{
	if (value[0] && sbatch_array(value, SBATCH_ARRAY_MAX, NULL, err) < 0)
		return -1;
	return sbatch_set_text_or_none(c, option, value, err);
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
	return *at ? sbatch_not_among(value, "sockets[:cores[:threads]]", err) : 0;
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

/* "none" asks for none. */
SETTER(set_gres)
{
	if (strcasecmp(value, "help") == 0 || strcasecmp(value, "list") == 0)
		return err_set(err, ERR_USAGE,
			       "\"%s\" asks sbatch for a list: scontrol show node "
			       "tells what there is",
			       value);
	sbatch_put_text(c, option->field, value);
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
	sbatch_put_text(c, option->field, value[0] ? value : "ALL");
	return 0;
}

/* Up to 25.05 it is a flag, whose variable has a number or "yes". */
SETTER(set_requeue)
{
	bool is_flag = !value || (value[0] >= '0' && value[0] <= '9') ||
		       strcasecmp(value, "yes") == 0;

	if (!is_flag && strcasecmp(value, "expedite") != 0)
		return sbatch_not_among(value, "expedite, or nothing", err);
	js_set_int(c->fields, "requeue", option->constant);
	return 0;
}
