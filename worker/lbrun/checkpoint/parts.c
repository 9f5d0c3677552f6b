/* SPDX-License-Identifier: MIT */
/* parts.c - the step of srun that has all nodes copy their parts. */
#include "worker/lbrun/checkpoint/parts.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "worker/lbrun/checkpoint/part.h"
#include "worker/lbrun/trainer/allocation.h"

enum { RESULT_BYTES = 16 * 1024 * 1024, WAIT_STEP_MS = 20, CLEAR_WAIT_MS = 10 * 1000 };

static const char request_name[] = ".lb-request.json";

static json_t *describe(const struct parts_request *q, const struct manifest *m, const char *id)
{
	json_t *o = json_object(), *has = json_object();

	for (int i = 0; i < m->file_count; i++)
		json_object_set_new(has, m->files[i].name, json_true());
	json_object_set_new(o, "has", has);

	js_set_str(o, "id", id);
	js_set_str(o, "layout", q->layout);
	js_set_str(o, "pattern", q->pattern);
	js_set_str(o, "complete_when", q->complete_when);
	js_set_str(o, "stage", q->stage);
	js_set_str(o, "word", q->word);
	js_set_str(o, "head", q->head);
	js_set_str(o, "relative", q->relative);
	js_set_str(o, "part", q->part);
	js_set_int(o, "step", q->step);
	js_set_bool(o, "is_file", q->is_file);
	js_set_bool(o, "is_marked", q->is_marked);
	js_set_int(o, "rate", q->rate > 0 && q->nodes > 0 ? q->rate / q->nodes + 1 : 0);
	js_set_int(o, "sealed_step", q->sealed_step);
	return o;
}

static const struct manifest_file *listed(const struct manifest *m, const char *name)
{
	for (int i = 0; i < m->file_count; i++)
		if (strcmp(m->files[i].name, name) == 0)
			return &m->files[i];
	return NULL;
}

/* Two nodes may have written the same file, but not two of one name. */
static int add_file(struct manifest *m, const json_t *file, struct err *err)
{
	const char *name = js_str(file, "name", ""), *digest = js_str(file, "xxh3_128", "");
	const struct manifest_file *there = listed(m, name);
	struct manifest_file *to;

	if (there && strcmp(there->digest, digest) != 0)
		return err_set(err, ERR_IO, "two nodes have a %s, and they differ", name);
	if (there)
		return 0;
	m->files = xrealloc(m->files, ((size_t)m->file_count + 1) * sizeof(m->files[0]));
	to = &m->files[m->file_count++];
	*to = (struct manifest_file){ .name = xstrdup(name), .bytes = js_int(file, "bytes", -1) };
	snprintf(to->digest, sizeof(to->digest), "%s", digest);
	return 0;
}

static int read_result(const struct parts_request *q, const char *id, int64_t rank,
		       struct manifest *m, struct err *err)
{
	char *path = part_result_path(q->part, id, rank);
	json_t *o = js_load(path, RESULT_BYTES, NULL), *file;
	const char *error = js_str(o, "error", NULL);
	int rc = 0;
	size_t i;

	if (!o)
		rc = err_set(err, ERR_NOT_FOUND, "node %" PRId64 " of %" PRId64 " did not answer",
			     rank + 1, q->nodes);
	else if (error)
		rc = err_set(err, ERR_IO, "%s: %s", js_str(o, "node", "?"), error);
	json_array_foreach(json_object_get(o, "files"), i, file)
		if (rc == 0)
			rc = add_file(m, file, err);
	json_decref(o);
	unlink(path);
	free(path);
	return rc;
}

/* On so many nodes the launch ran: "ATTEMPT-NODES-…". */
static int64_t nodes_of(const char *word)
{
	const char *dash = word ? strchr(word, '-') : NULL;

	return dash ? strtoll(dash + 1, NULL, 10) : 0;
}

static int gather(const struct parts_request *q, struct manifest *m, struct err *err)
{
	char *path = path_join("%s/%s", q->part, request_name);
	char id[TOKEN_HEX + 1];
	pid_t srun = -1;
	int rc;

	token_draw(id);
	rc = js_save(path, describe(q, m, id), err);
	if (rc == 0 && (srun = allocation_start(q->nodes, "--stage-part", path, -1)) < 0)
		rc = err_errno(err, "srun");
	if (rc == 0)
		waitpid(srun, NULL, 0);
	for (int64_t i = 0; i < q->nodes && rc == 0; i++)
		rc = read_result(q, id, i, m, err);
	unlink(path);
	free(path);
	return rc;
}

int parts_gather(const struct parts_request *q, struct manifest *m, struct err *err)
{
	int64_t nodes = nodes_of(q->word);

	if (nodes != q->nodes)
		return err_set(err, ERR_REFUSED,
			       "parts of it lie on %" PRId64 " nodes, and the job has %" PRId64,
			       nodes, q->nodes);
	return gather(q, m, err) < 0 ? -1 : failpoint(FP_STAGE_GATHERED, err);
}

void parts_clear(const char *stage, int64_t nodes)
{
	pid_t srun = allocation_start(nodes, "--stage-clear", stage, -1);
	int64_t until_ms = clock_mono_ms() + CLEAR_WAIT_MS;

	while (srun > 0 && waitpid(srun, NULL, WNOHANG) == 0) {
		if (clock_mono_ms() > until_ms)
			kill(srun, SIGKILL);
		poll(NULL, 0, WAIT_STEP_MS);
	}
}
