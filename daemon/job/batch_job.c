/* SPDX-License-Identifier: MIT */
#include "daemon/job/batch_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/run/attempt.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "slurm/batch/batch.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024, MAX_WORDS = 32 };

char *batch_script_path(const struct run *run)
{
	return path_join("%s/slurm_script", run->dir);
}

char *batch_script_text(const struct run *run, struct err *err)
{
	char *path, *text;
	size_t len;

	if (!run->spec.script)
		return NULL;
	path = batch_script_path(run);
	text = file_read(path, SCRIPT_MAX_BYTES, &len, err);
	free(path);
	return text;
}

/* --- options of the spec ---------------------------------------------------------------------- */

struct words {
	char *items[MAX_WORDS + 1];
	size_t count;
};

static void add_text(struct words *w, const char *name, const char *value)
{
	if (value)
		w->items[w->count++] = xasprintf("--%s=%s", name, value);
}

static void add_number(struct words *w, const char *name, int64_t value)
{
	if (value > 0)
		w->items[w->count++] = xasprintf("--%s=%lld", name, (long long)value);
}

static void words_of_spec(const struct run_spec *spec, struct words *w)
{
	int64_t warn_s = run_spec_warn_ms(spec) / 1000;

	add_text(w, "partition", spec->partition);
	add_text(w, "account", spec->account);
	add_text(w, "qos", spec->qos);
	add_number(w, "nodes", spec->nodes);
	add_number(w, "ntasks-per-node", spec->ntasks_per_node);
	add_number(w, "cpus-per-task", spec->cpus_per_task);
	add_number(w, "gpus-per-node", spec->gpus_per_node);
	add_text(w, "mem", spec->mem);
	add_number(w, "time", (spec->time_ms + 59999) / 60000);
	add_text(w, "constraint", spec->constraint);
	add_text(w, "exclude", spec->exclude);
	add_text(w, "nodelist", spec->nodelist);
	add_text(w, "reservation", spec->reservation);
	add_text(w, "licenses", spec->licenses);
	add_text(w, "comment", spec->comment);
	if (warn_s > 0)
		w->items[w->count++] = xasprintf("--signal=B:USR1@%lld", (long long)warn_s);
}

/* a request and what it borrows */
struct source {
	struct batch_request request;
	struct words settings;
	struct strv env;
	char *script;
};

static int source_make(struct source *s, const struct config *config, const struct run *run,
		       struct err *err)
{
	*s = (struct source){ 0 };
	s->script = batch_script_text(run, err);
	if (run->spec.script && (!s->script || job_env_submitter(&s->env, run, err) < 0))
		return -1;
	words_of_spec(&run->spec, &s->settings);
	s->request = (struct batch_request){
		.script = s->script,
		.script_len = s->script ? strlen(s->script) : 0,
		.file = run->spec.script,
		.account = config->slurm_account,
		.partition = config->slurm_partition,
		.env = s->env.items,
		.settings = s->settings.items,
		.extra = run->spec.extra.items,
		.workdir = run->spec.workdir,
		.now = time(NULL),
	};
	return 0;
}

static void source_fini(struct source *s)
{
	strv_free(s->env.items);
	free(s->script);
	for (size_t i = 0; i < s->settings.count; i++)
		free(s->settings.items[i]);
}

/* An earlier attempt has waited for these. */
static void drop_what_was_waited_for(const struct run *run, json_t *fields)
{
	const char *dependency = js_str(fields, "dependency", "");

	if (attempt_newest_claim(run->dir) <= 0)
		return;
	json_object_del(fields, "begin_time");
	if (strcasecmp(dependency, "singleton") != 0)
		json_object_del(fields, "dependency");
}

bool batch_job_may_be_doomed(const struct config *config, const struct run *run)
{
	static const char *const kinds[] = { "afterok", "afternotok", "aftercorr" };
	struct err err = { 0 };
	json_t *fields = batch_job_fields(config, run, &err);
	const char *dependency = js_str(fields, "dependency", "");
	bool may_be = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		may_be |= strcasestr(dependency, kinds[i]) != NULL;
	json_decref(fields);
	return may_be;
}

static void add_excluded(const struct run *run, json_t *fields)
{
	const char *asked = js_str(fields, "exc_nodes", "");
	char *all;

	if (!run->excluded || !run->excluded[0])
		return;
	all = xasprintf("%s%s%s", asked, asked[0] ? "," : "", run->excluded);
	js_set_str(fields, "exc_nodes", all);
	free(all);
}

json_t *batch_job_fields(const struct config *config, const struct run *run, struct err *err)
{
	json_t *fields = NULL;
	struct source s;

	if (source_make(&s, config, run, err) == 0)
		fields = batch_resolve(&s.request, err);
	source_fini(&s);
	if (fields) {
		drop_what_was_waited_for(run, fields);
		add_excluded(run, fields);
	}
	return fields;
}

/* What fields say beyond the options: where lbd's own output goes, and nodes to keep away from. */
static char **add_own_words(char **words, const json_t *fields)
{
	static const struct {
		const char *field, *option;
	} own[] = {
		{ "exc_nodes", "exclude" },
		{ "std_out", "output" },
		{ "open_mode", "open-mode" },
	};
	size_t n = 0;

	while (words[n])
		n++;
	words = xrealloc(words, (n + sizeof(own) / sizeof(own[0]) + 1) * sizeof(char *));
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		char *value = js_bytes_take(json_object_get(fields, own[i].field));

		if (value)
			words[n++] = xasprintf("--%s=%s", own[i].option, value);
		free(value);
	}
	words[n] = NULL;
	return words;
}

char **batch_job_words(const struct config *config, const struct run *run, const json_t *fields,
		       struct err *err)
{
	char **words = NULL;
	struct source s;

	if (source_make(&s, config, run, err) == 0)
		words = batch_words(&s.request, fields, err);
	source_fini(&s);
	return words ? add_own_words(words, fields) : NULL;
}

/* --- the script ------------------------------------------------------------------------------- */

/* How much of `text` is its first line and the comments and empty lines after it. */
static size_t head_of(const char *text)
{
	const char *at = text;

	while (*at == '#' || *at == '\n')
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
	return (size_t)(at - text);
}

/* Lines of text[0..len) as they are, but that those of options get a mark in front. */
static char *hide_options(const char *text, size_t len)
{
	struct buf out;

	buf_init(&out, 2 * SCRIPT_MAX_BYTES);
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) + 1 : len;

		if (strncmp(text, "#SBATCH", 7) == 0 || strncmp(text, "#SLURM", 6) == 0)
			buf_addf(&out, "%s", "#lbd");
		buf_add(&out, text, n);
		text += n;
		len -= n;
	}
	buf_add(&out, "", 0);
	return buf_take(&out);
}

char *batch_job_wrap(const char *first_lines, const char *launch, const char *text, bool is_read)
{
	size_t first = strcspn(text, "\n") + (text[strcspn(text, "\n")] == '\n');
	size_t head = head_of(text);
	char *comments, *script;

	if (head < first)
		head = first;
	comments = is_read ? hide_options(text + first, head - first)
			   : xstrndup(text + first, head - first);
	script = xasprintf("%s%s%s%s", first_lines, comments, launch, text + head);
	free(comments);
	return script;
}
