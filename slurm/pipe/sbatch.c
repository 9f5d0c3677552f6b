/* SPDX-License-Identifier: MIT */
/* sbatch.c - a job by the site's own sbatch: for sites whose filters (CliFilterPlugins) look at
 * what that command is given, and would never see a job that libslurm made; and where there is no
 * libslurm. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/pipe/command.h"
#include "slurm/pipe/limit_word.h"
#include "slurm/pipe/sbatch.h"
#include "slurm/pipe/words.h"

/* It tries again for two minutes, and nobody could say whether it had done something when lbd no
 * longer waits. */
#define SLEEPS "sleeping and retrying"

static void add_all(struct strv *l, const json_t *array, size_t from)
{
	for (size_t i = from; i < json_array_size(array); i++) {
		char *text = js_bytes_take(json_array_get(array, i));

		if (text)
			strv_add(l, text);
	}
}

static void add_text(struct strv *l, const json_t *request, const char *key, const char *option)
{
	char *text = js_bytes_take(json_object_get(request, key));

	if (text)
		strv_add(l, xasprintf("%s%s", option, text));
	free(text);
}

/* A federation's jobs go to all of its clusters, and run where there is room first: elsewhere
 * nobody would find ours. "Self:       name:127.0.0.1:6817 ID:1 …", as of some minutes ago; "":
 * there is none. */
const char *sbatch_own_cluster(void)
{
	enum { AGE_MS = 10 * 60 * 1000 };
	static const char *const words[] = { "scontrol", "show", "federation", NULL };
	static const char head[] = "\nSelf:";
	static char name[128];
	static int64_t asked_ms;
	struct said said;
	const char *at;

	if (asked_ms && clock_mono_ms() - asked_ms < AGE_MS)
		return name;
	command_ask(words, &said);
	if (said.status == 0) {
		asked_ms = clock_mono_ms();
		at = strstr(said.out, head);
		at = at ? at + sizeof(head) - 1 : "";
		at += strspn(at, " ");
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ": \n"), at);
	}
	said_clear(&said);
	return name;
}

/* What lbd says itself comes last, and counts. */
static void words_begin(struct strv *words, const json_t *request)
{
	strv_add(words, xstrdup("sbatch"));
	add_all(words, json_object_get(request, "sbatch"), 0);
	strv_add(words, xstrdup("--no-requeue"));
	if (sbatch_own_cluster()[0])
		strv_add(words, xasprintf("--clusters=%s", sbatch_own_cluster()));
	add_text(words, request, "name", "--job-name=");
	add_text(words, request, "comment", "--comment=");
}

static void words_make(struct strv *words, const json_t *request)
{
	words_begin(words, request);
	strv_add(words, xstrdup("--parsable"));
	strv_add(words, xstrdup("--hold"));
	add_text(words, request, "script_path", "");
	add_all(words, json_object_get(request, "argv"), 1);
}

static bool is_variable(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* What would have sbatch wait for the end, or send the job to another cluster, where nobody would
 * find it; and what it says of tasks itself, by the name that its release has for it. */
static bool is_left_out(const char *entry)
{
	static const char *const names[] = { "SBATCH_WAIT",         "SBATCH_CLUSTERS",
					     "SLURM_CLUSTERS",      "SLURM_CONF",
					     "SLURM_CONF_SERVER",   "SLURM_JWT",
					     "SLURM_GPUS_PER_TASK", "SLURM_GPU_BIND" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (is_variable(entry, names[i]))
			return true;
	}
	return false;
}

/* sbatch passes its environment on to the job. Its cluster is ours, not where the submitter's
 * commands go, and so is what lets it in: a token is good for minutes, mostly. */
static void env_make(struct strv *env, const json_t *request)
{
	static const char *const places[] = { "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_JWT" };
	struct strv all = { 0 };

	add_all(&all, json_object_get(request, "env"), 0);
	for (size_t i = 0; i < all.count; i++) {
		if (!is_left_out(all.items[i]))
			strv_add(env, xstrdup(all.items[i]));
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (getenv(places[i]))
			strv_add(env, xasprintf("%s=%s", places[i], getenv(places[i])));
	}
	strv_free(all.items);
}

/* --- what it said ----------------------------------------------------------------------------- */

/* "12", or "12;cluster", in a line of its own: a site's wrapper may print more around it. 0: there
 * is no such line, or there are several. */
static uint32_t number_in(const char *text)
{
	uint32_t found = 0;

	for (; *text; text += *text == '\n') {
		char *end;
		unsigned long id = isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;

		if (id > 0 && id < UINT32_MAX && strchr("\n;", *end)) {
			if (found)
				return 0;
			found = (uint32_t)id;
		}
		text += strcspn(text, "\n");
	}
	return found;
}

/* Where it is over a limit, others of the account or QOS may have taken its place: it is asked for
 * again. */
static int refused(const struct said *said, struct answer *a)
{
	char limit[LIMIT_WORD_BYTES];

	words_failed(a, said_last(said), "sbatch");
	if (a->result != SCHEDULER_REFUSED || !strstr(a->text, LIMIT_WORDS))
		return -1;
	limit_word(said->errors, limit);
	return limit_wait(a, limit);
}

static int job_of(const struct said *said, struct answer *a, uint32_t *job_id)
{
	if (said->status == COMMAND_NOT_STARTED)
		return answer_set(a, SCHEDULER_DOWN, "sbatch cannot be started");
	if (said->status == COMMAND_SLEEPS)
		return limit_no_room(a, 0);
	if (said->status > 0)
		return refused(said, a);
	*job_id = said->status < 0 ? 0 : number_in(said->out);
	if (*job_id == 0)
		return answer_set(a, SCHEDULER_UNCLEAR, "sbatch did not tell the job's number");
	if (said->errors[0])
		answer_set(a, SCHEDULER_OK, "%s", said->errors);
	return 0;
}

/* Takes what `words` hold, and `setting`, of sbatch itself; NULL: none. */
static void run(struct strv *words, const json_t *request, const char *setting, struct said *said)
{
	char *folder = js_bytes_take(json_object_get(request, "submit_dir"));
	struct strv env = { 0 };

	env_make(&env, request);
	if (setting)
		strv_set(&env, xstrdup(setting));
	command_run_once(words->items, env.items, folder, SLEEPS, said);
	strv_free(words->items);
	strv_free(env.items);
	free(folder);
}

int sbatch_submit(const json_t *request, struct answer *a, uint32_t *job_id)
{
	struct strv words = { 0 };
	struct said said;
	int rc;

	words_make(&words, request);
	answer_acting(a);
	run(&words, request, NULL, &said);
	rc = job_of(&said, a, job_id);
	said_clear(&said);
	return rc;
}

static void test(const json_t *request, const char *const *more, struct said *said)
{
	struct strv words = { 0 };

	words_begin(&words, request);
	for (; more && *more; more++)
		strv_add(&words, xstrdup(*more));
	strv_add(&words, xstrdup("--test-only"));
	strv_add(&words, xstrdup("--wrap=true")); /* its job.sh is not written yet */
	run(&words, request, "SLURM_TIME_FORMAT=%s", said);
}

int sbatch_test(const json_t *request, struct answer *a)
{
	struct said said;
	int rc = 0;

	test(request, NULL, &said);
	if (said.status < 0)
		rc = answer_set(a, SCHEDULER_DOWN, "sbatch cannot be started");
	else if (said.status > 0)
		rc = words_failed(a, said_last(&said), "sbatch");
	said_clear(&said);
	return rc;
}

int64_t sbatch_plan(const json_t *request, const char *const *more)
{
	static const char words[] = " to start at ";
	const char *at;
	struct said said;
	int64_t start = 0;

	test(request, more, &said);
	at = said.status == 0 ? strstr(said.errors, words) : NULL;
	if (at)
		start = strtoll(at + sizeof(words) - 1, NULL, 10);
	said_clear(&said);
	return start;
}
