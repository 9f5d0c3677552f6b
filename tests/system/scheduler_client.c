/* SPDX-License-Identifier: MIT */
/* scheduler_client.c - slurm HELPER DEADLINE_MS | local FOLDER [gpus=N cpus=N mem=MB jobs=N]:
 * drives a scheduler by hand, for tests.
 *
 * Commands on stdin, one a line; each is asked at once and answered whenever the scheduler does, as
 * `N RESULT MS …` where N is the line's number and MS the time that it took:
 *
 *   submit TOKEN WORKDIR SCRIPT_FILE [OPTION…]      N ok MS JOB_ID SUBMIT_TIME TEXT
 *   release|cancel TOKEN JOB_ID SUBMIT_TIME         N ok MS TEXT
 *   signal TOKEN JOB_ID SUBMIT_TIME SIGNO
 *   poll [TOKEN]                                    N ok MS COUNT TEXT, after one line a job:
 *                                                   job N TOKEN JOB_ID SUBMIT_TIME PHASE CAUSE
 *                                                   EXIT_CODE SIGNAL STATE REASON NODES
 *   until TOKEN PHASE WITHIN_MS                     as poll, again and again until the job is there
 *   many COUNT TOKEN WORKDIR SCRIPT_FILE            COUNT submits; the token's head is varied
 *   read                                            N ok 0: all lines in front of it are asked for
 *   close                                           ends when the scheduler has closed
 *
 * At the end of stdin it closes, too. A job's output goes to WORKDIR/out.log. Options are sbatch's,
 * read as lbd reads those of a run, and secrets=FILE. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/backends.h"
#include "slurm/batch/batch.h"

/* freed at the end: calls that a close dropped are never answered */
struct call {
	struct call *next;
	long number;
	int64_t asked_ms;
	char verb[16], token[TOKEN_HEX + 1];
	char phase[16]; /* which is waited for; "" */
	int64_t until_ms;
	uv_timer_t again;
};

enum { AGAIN_MS = 50 };

static struct scheduler *scheduler;
static uv_pipe_t input;
static struct buf lines;
static struct call *calls;
static long line_number;
static char chunk[1 << 16];

static const char *const phases[JOB_PHASE_COUNT] = { "held", "pending", "running", "ending",
						     "ended" };
static const char *const results[SCHEDULER_RESULT_COUNT] = { "ok", "refused", "gone", "down",
							     "unclear" };

static struct call *call_create(const char *verb)
{
	struct call *c = xcalloc(1, sizeof(*c));

	c->next = calls;
	calls = c;
	c->number = line_number;
	c->asked_ms = clock_mono_ms();
	snprintf(c->verb, sizeof(c->verb), "%s", verb);
	return c;
}

/* A reason is a word here, whatever it is made of. */
static const char *reason_word(const struct job_status *job)
{
	static char word[sizeof(job->reason)];

	snprintf(word, sizeof(word), "%s", job->reason[0] ? job->reason : "-");
	for (char *c = word; *c; c++)
		if (*c == ' ')
			*c = '_';
	return word;
}

static void print_job(const struct call *c, const struct job_status *job)
{
	if (c->token[0] && strcmp(c->token, job->ref.token) != 0)
		return;
	printf("job %ld %s %" PRIu32 " %" PRId64 " %s %s %d %d %s %s %s %" PRId64 "\n", c->number,
	       job->ref.token, job->ref.job_id, job->ref.submit_time, phases[job->phase],
	       cause_name(job->cause), job->exit_code, job->signal, job->state, reason_word(job),
	       job_nodes(job)[0] ? job->nodes : "-", job->controller_start);
}

static void on_done(void *arg, const struct scheduler_reply *reply);

static void on_again(uv_timer_t *timer)
{
	struct call *c = timer->data;

	scheduler->ops->poll(scheduler, on_done, c);
}

/* Not yet where it is waited for, and there is time left. */
static bool is_awaited(const struct call *c, const struct scheduler_reply *reply)
{
	for (size_t i = 0; i < reply->job_count; i++)
		if (strcmp(c->token, reply->jobs[i].ref.token) == 0 &&
		    strcmp(c->phase, phases[reply->jobs[i].phase]) == 0)
			return false;
	return clock_mono_ms() < c->until_ms;
}

static void on_done(void *arg, const struct scheduler_reply *reply)
{
	struct call *c = arg;

	if (c->phase[0]) {
		if (!uv_is_closing((uv_handle_t *)&input) && is_awaited(c, reply)) {
			uv_timer_start(&c->again, on_again, AGAIN_MS, 0);
			return;
		}
		if (!uv_is_closing((uv_handle_t *)&c->again))
			uv_close((uv_handle_t *)&c->again, NULL);
	}
	for (size_t i = 0; i < reply->job_count; i++)
		print_job(c, &reply->jobs[i]);
	printf("%ld %s %" PRId64, c->number, results[reply->result], clock_mono_ms() - c->asked_ms);
	if (strcmp(c->verb, "submit") == 0)
		printf(" %" PRIu32 " %" PRId64, reply->job.job_id, reply->job.submit_time);
	if (strcmp(c->verb, "poll") == 0 || c->phase[0])
		printf(" %zu", reply->job_count);
	printf(" %s\n", reply->text);
	fflush(stdout);
}

/* As daemon/job does: options to fields, then what is lbd's own to say. NULL: said on stderr. */
static json_t *fields_of(char **options, const char *workdir, const char *output, char ***words)
{
	const struct batch_request request = {
		.settings = options,
		.workdir = workdir,
		.now = time(NULL),
	};
	struct err err = { 0 };
	json_t *fields = batch_resolve(&request, words, &err);

	if (!fields) {
		log_error("%s", err.text);
		return NULL;
	}
	js_set_str(fields, "comment", "made by a test");
	js_set_str(fields, "open_mode", "append");
	js_set_str(fields, "std_out", output);
	return fields;
}

/* What sbatch is told then. */
static char **own_words(char **words, const char *output)
{
	size_t n = 0;

	while (words[n])
		n++;
	words = xrealloc(words, (n + 3) * sizeof(*words));
	words[n++] = xstrdup("--open-mode=append");
	words[n++] = xasprintf("--output=%s", output);
	words[n] = NULL;
	return words;
}

/* The environment holds bytes that are no UTF-8, as environments may. */
static void submit(char **words, int count)
{
	char odd[] = "ODD=\xff\xfe", path[] = "PATH=/usr/bin:/bin";
	char *env[] = { path, odd, NULL }, *options[16] = { NULL }, **sbatch = NULL;
	char *script = file_read(words[3], 1 << 20, NULL, NULL);
	char *output = xasprintf("%s/out.log", words[2]);
	struct job_request job = {
		.token = words[1],
		.ledger_id = "00112233445566aa",
		.run = "test",
		.script = script,
		.script_path = words[3],
		.output = output,
		.env = env,
		.env_uid = getuid(),
		.submit_dir = words[2],
	};
	json_t *fields;

	for (int i = 4, n = 0; i < count; i++) {
		if (strncmp(words[i], "secrets=", 8) == 0)
			job.env_file = words[i] + 8;
		else
			options[n++] = words[i];
	}
	fields = fields_of(options, words[2], output, &sbatch);
	if (fields) {
		sbatch = own_words(sbatch, output);
		job.fields = fields;
		job.words = scheduler->by_sbatch ? sbatch : NULL;
		scheduler->ops->submit(scheduler, &job, on_done, call_create("submit"));
	}
	json_decref(fields);
	strv_free(sbatch);
	free(script);
	free(output);
}

static void submit_many(char **words, int count)
{
	unsigned n = (unsigned)strtoul(words[1], NULL, 10);
	char token[TOKEN_HEX + 1];
	const char *tail = words[2] + 8;

	for (unsigned i = 0; i < n; i++) {
		snprintf(token, sizeof(token), "%08x%s", i, tail);
		words[2] = token;
		submit(words + 1, count - 1);
	}
}

static void control(char **words, int count)
{
	const struct scheduler_ops *ops = scheduler->ops;
	struct job_ref ref = { .job_id = (uint32_t)strtoul(words[2], NULL, 10),
			       .submit_time = strtoll(words[3], NULL, 10) };
	struct call *c = call_create(words[0]);

	snprintf(ref.token, sizeof(ref.token), "%s", words[1]);
	if (strcmp(words[0], "release") == 0)
		ops->release(scheduler, &ref, on_done, c);
	else if (strcmp(words[0], "cancel") == 0)
		ops->cancel(scheduler, &ref, on_done, c);
	else
		ops->signal(scheduler, &ref, count > 4 ? (int)strtol(words[4], NULL, 10) : 0,
			    on_done, c);
}

static void wait_until(char **words)
{
	struct call *c = call_create(words[0]);

	snprintf(c->token, sizeof(c->token), "%s", words[1]);
	snprintf(c->phase, sizeof(c->phase), "%s", words[2]);
	c->until_ms = c->asked_ms + strtoll(words[3], NULL, 10);
	uv_timer_init(uv_default_loop(), &c->again);
	c->again.data = c;
	scheduler->ops->poll(scheduler, on_done, c);
}

static void on_closed(void *arg)
{
	(void)arg;
	printf("closed\n");
	fflush(stdout);
}

static void finish(void)
{
	if (uv_is_closing((uv_handle_t *)&input))
		return;
	uv_close((uv_handle_t *)&input, NULL);
	for (struct call *c = calls; c; c = c->next)
		if (c->phase[0] && !uv_is_closing((uv_handle_t *)&c->again))
			uv_close((uv_handle_t *)&c->again, NULL);
	scheduler->ops->close(scheduler, on_closed, NULL);
}

static void run_line(char *line)
{
	char *words[16] = { NULL }, *save = NULL;
	int count = 0;

	line_number++;
	for (char *w = strtok_r(line, " ", &save); w && count < 15; w = strtok_r(NULL, " ", &save))
		words[count++] = w;
	if (count >= 4 && strcmp(words[0], "submit") == 0) {
		submit(words, count);
	} else if (count >= 5 && strcmp(words[0], "many") == 0) {
		submit_many(words, count);
	} else if (count == 4 && strcmp(words[0], "until") == 0) {
		wait_until(words);
	} else if (count >= 4) {
		control(words, count);
	} else if (count && strcmp(words[0], "poll") == 0) {
		struct call *c = call_create("poll");

		snprintf(c->token, sizeof(c->token), "%s", count > 1 ? words[1] : "");
		scheduler->ops->poll(scheduler, on_done, c);
	} else if (count && strcmp(words[0], "read") == 0) {
		printf("%ld ok 0\n", line_number);
		fflush(stdout);
	} else {
		finish();
	}
}

static void on_alloc(uv_handle_t *handle, size_t hint, uv_buf_t *buf)
{
	(void)handle;
	(void)hint;
	*buf = uv_buf_init(chunk, sizeof(chunk));
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	char *end;

	(void)stream;
	if (n < 0 || buf_add(&lines, buf->base, (size_t)n)) {
		finish();
		return;
	}
	while (lines.len && (end = memchr(lines.data, '\n', lines.len))) {
		size_t len = (size_t)(end - lines.data) + 1;

		*end = '\0';
		run_line(lines.data);
		buf_drop(&lines, len);
	}
}

static struct scheduler *create_local(uv_loop_t *loop, char **words)
{
	struct local_limits limits = { 0 };
	const char *folder = *words;
	const struct {
		const char *key;
		int64_t *to;
	} keys[] = {
		{ "gpus=", &limits.gpus },
		{ "cpus=", &limits.cpus },
		{ "mem=", &limits.mem_mb },
		{ "jobs=", &limits.jobs },
	};

	while (*++words)
		for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
			if (strncmp(*words, keys[i].key, strlen(keys[i].key)) == 0)
				*keys[i].to = strtoll(strchr(*words, '=') + 1, NULL, 10);
	return scheduler_local_create(loop, folder, &limits);
}

int main(int argc, char **argv)
{
	uv_loop_t *loop = uv_default_loop();

	log_init("client", LOG_LEVEL_DEBUG);
	if (argc == 4 && strcmp(argv[1], "slurm") == 0) {
		scheduler = scheduler_slurm_create(loop, argv[2], strtoll(argv[3], NULL, 10),
						   strstr(argv[2], "-commands") != NULL);
	} else if (argc >= 3 && strcmp(argv[1], "local") == 0) {
		scheduler = create_local(loop, argv + 2);
	} else {
		fprintf(stderr, "usage: scheduler_client slurm HELPER DEADLINE_MS | local FOLDER "
				"[gpus=N …]\n");
		return 2;
	}
	buf_init(&lines, 1 << 20);
	uv_pipe_init(loop, &input, 0);
	uv_pipe_open(&input, STDIN_FILENO);
	uv_read_start((uv_stream_t *)&input, on_alloc, on_read);
	uv_run(loop, UV_RUN_DEFAULT);
	buf_fini(&lines);
	while (calls) {
		struct call *c = calls;

		calls = c->next;
		free(c);
	}
	return uv_loop_close(loop) ? 1 : 0;
}
