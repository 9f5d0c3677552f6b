/* SPDX-License-Identifier: MIT */
/* sync.c - lbctl sync: settled steps to the trackers that people use, each once.
 *
 * Before anything is sent it is written down how far that may reach and what was sent until there;
 * a history that is another one then is sent as a new curve. How far a tracker has come it says
 * itself (trackers.py). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/redact.h"
#include "common/base/text.h"
#include "common/run/run_state.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"
#include "ctl/code/made.h"
#include "ctl/sync/curve.h"
#include "ctl/team/ask.h"
#include "trackers.h"

enum {
	STATE_MAX_BYTES = 4096,
	TIMEOUT_MS = 30 * 60 * 1000,
};

/* One run to one tracker. */
struct transfer {
	struct ctl *ctl;
	const json_t *run;
	const char *name; /* of the run */
	char *folder;     /* RUN/sync */
	const char *to;   /* as it was given: KIND or KIND=WHERE */
	char kind[16];
	char *file; /* what is known of it */
	/* what may have been sent, what is known to be there, and the run's state then */
	int64_t generation, count, done;
	char digest[24], state[16];
};

static bool is_over(const char *state)
{
	return run_state_is_final(run_state_from_name(state));
}

/* --- what is known -------------------------------------------------------------------------- */

/* "mlflow-1f00c3a2": the same kind may stand in several places. */
static char *target_name(const struct transfer *t)
{
	return xasprintf("%s-%08x", t->kind, (unsigned)(fnv_text(t->to) & 0xffffffff));
}

static void load(struct transfer *t)
{
	char *name = target_name(t);
	json_t *o;

	t->file = path_join("%s/%s.json", t->folder, name);
	o = js_load(t->file, STATE_MAX_BYTES, NULL);
	t->generation = js_int(o, "generation", 0);
	t->count = js_int(o, "count", 0);
	t->done = js_int(o, "done", 0);
	snprintf(t->digest, sizeof(t->digest), "%s", js_str(o, "digest", ""));
	snprintf(t->state, sizeof(t->state), "%s", js_str(o, "state", ""));
	json_decref(o);
	free(name);
}

static int save(const struct transfer *t, struct err *err)
{
	json_t *o = json_object();

	js_set_int(o, "generation", t->generation);
	js_set_int(o, "count", t->count);
	js_set_int(o, "done", t->done);
	js_set_str(o, "digest", t->digest);
	js_set_str(o, "state", t->state);
	return js_save(t->file, o, err);
}

static void digest_text(const struct curve *c, size_t count, char out[24])
{
	snprintf(out, 24, "%016llx", (unsigned long long)curve_digest(c, count));
}

/* Does what was sent still stand? Steps that a person took back by going on from an older
 * checkpoint do not; what was never settled was never sent. */
static bool is_still_so(const struct transfer *t, const struct curve *c)
{
	char digest[24];

	if (t->count > (int64_t)c->count)
		return false;
	digest_text(c, (size_t)t->count, digest);
	return t->count == 0 || strcmp(digest, t->digest) == 0;
}

/* --- what is sent ----------------------------------------------------------------------------- */

/* Numbers and switches as they are, all else as text, in which secrets are left out. A new
 * reference. */
static json_t *open_settings(json_t *settings)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach(settings, key, value) {
		char *text;

		if (json_is_number(value) || json_is_boolean(value)) {
			json_object_set(out, key, value);
			continue;
		}
		text = json_is_string(value) ? xstrdup(json_string_value(value))
					     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		redact(text, NULL);
		json_object_set_new(out, key, json_string(text));
		free(text);
	}
	return out;
}

static json_t *head_of(const struct transfer *t)
{
	const char *where = strchr(t->to, '='), *dir = js_str(t->run, "dir", "");
	char *name = target_name(t), *id;
	json_t *head = json_object();
	struct made made;
	struct err quiet = { 0 };
	const char *state = js_str(t->run, "state", "");
	int64_t created_ms = (int64_t)(js_real(t->run, "created", 0) * 1000);

	id = xasprintf("%s-%lld", t->name, (long long)created_ms);
	js_set_str(head, "kind", t->kind);
	js_set_str(head, "target", name);
	js_set_str(head, "to", where ? where + 1 : "");
	js_set_str(head, "id", id);
	js_set_str(head, "run", t->name);
	js_set_str(head, "project",
		   t->ctl->options.project ? t->ctl->options.project
					   : js_str(t->run, "group", "lowbits"));
	js_set_str(head, "owner", js_str(t->run, "owner", ""));
	js_set_str(head, "state", state);
	js_set_bool(head, "over", is_over(state));
	js_set_int(head, "generation", t->generation);
	js_set_str(head, "folder", t->folder);
	js_set_int(head, "created", created_ms / 1000);
	made_read(&made, t->name, dir, &quiet);
	js_set_str(head, "commit", js_str(made.code, "commit", NULL));
	js_set_str(head, "branch", js_str(made.code, "branch", NULL));
	js_set_int(head, "changed_files", js_int(made.code, "changed_files", JS_NONE));
	json_object_set_new(head, "settings", open_settings(made.settings));
	made_clear(&made);
	free(name);
	free(id);
	return head;
}

/* A file in memory, from its beginning: /tmp may be full, or not ours. */
static FILE *input_of(const struct transfer *t, const struct curve *c, struct err *err)
{
	int fd = file_in_memory("curve");
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w+");
	json_t *head = head_of(t);
	char *text = js_line(head);

	if (!f) {
		err_errno(err, "a temporary file");
	} else {
		fprintf(f, "%s\n", text);
		for (int64_t i = t->done; i < t->count; i++)
			fprintf(f, "{\"step\":%lld,\"time_ms\":%lld,\"values\":%s}\n",
				(long long)c->points[i].step, (long long)c->points[i].time_ms,
				c->points[i].values);
		if (fflush(f) != 0 || fseek(f, 0, SEEK_SET) != 0) {
			err_errno(err, "a temporary file");
			fclose(f);
			f = NULL;
		}
	}
	free(text);
	json_decref(head);
	return f;
}

static int send(struct transfer *t, const struct curve *c, int64_t *sent, struct err *err)
{
	const char *python = t->ctl->options.python ? t->ctl->options.python : "python3";
	const char *const argv[] = { python, "-c", trackers_text, NULL };
	FILE *input = input_of(t, c, err);
	char *said = NULL;
	int status = -1;

	if (input) {
		status = program_feed(argv, fileno(input), TIMEOUT_MS, &said, err);
		fclose(input);
	}
	if (status > 0)
		err_set(err, ERR_IO, "%.300s", text_last_line(said));
	if (status == 0)
		*sent = strtoll(text_last_line(said), NULL, 10);
	free(said);
	return status == 0 ? 0 : -1;
}

static int transfer(struct transfer *t, const struct curve *c, int64_t *sent, struct err *err)
{
	const char *state = js_str(t->run, "state", "");
	int64_t settled = (int64_t)curve_settled(c, is_over(state));

	*sent = 0;
	load(t);
	if (!is_still_so(t, c)) {
		t->generation++;
		t->count = t->done = 0;
	}
	/* what was sent when the run was over, and is not settled now that it goes on, stays */
	if (settled < t->count)
		settled = t->count;
	if (settled == t->done && strcmp(state, t->state) == 0)
		return 0;
	if (settled == 0 && t->count == 0 && t->generation == 0)
		return 0;
	t->count = settled;
	digest_text(c, (size_t)settled, t->digest);
	if (save(t, err) < 0 || send(t, c, sent, err) < 0)
		return -1;
	t->done = t->count;
	snprintf(t->state, sizeof(t->state), "%s", state);
	return save(t, err);
}

/* --- runs and trackers ------------------------------------------------------------------------ */

static int check_target(const char *to, char kind[16], struct err *err)
{
	static const char *const kinds[] = { "mlflow", "tensorboard", "trackio", "wandb" };
	size_t len = strcspn(to, "=");

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strlen(kinds[i]) != len || strncmp(kinds[i], to, len) != 0)
			continue;
		if (i == 0 && (!to[len] || strncmp(to + len + 1, "http", 4) != 0))
			return err_set(err, ERR_USAGE,
				       "--to %s: write it as mlflow=http://HOST:PORT", to);
		if (to[len] && i > 0 && to[len + 1] != '/')
			return err_set(err, ERR_USAGE, "--to %s: the folder must begin with /", to);
		snprintf(kind, 16, "%s", kinds[i]);
		return 0;
	}
	return err_set(err, ERR_USAGE,
		       "--to %s: must be mlflow=URL, trackio[=FOLDER], wandb[=FOLDER] or "
		       "tensorboard[=FOLDER]",
		       to);
}

static void tell(const struct transfer *t, int64_t sent)
{
	if (sent > 0 && !t->ctl->options.json)
		printf("%s  %s  %lld step%s sent, %lld in all\n", t->name, t->kind, (long long)sent,
		       sent == 1 ? "" : "s", (long long)t->count);
}

/* False: something could not be sent, which was said. */
static bool sync_run_to(struct ctl *ctl, const json_t *run, const struct curve *c,
			const char *folder, const char *to)
{
	struct transfer t = { .ctl = ctl, .run = run, .to = to };
	struct err err = { 0 };
	int64_t sent = 0;
	int rc;

	t.name = js_str(run, "name", "?");
	t.folder = xstrdup(folder);
	rc = check_target(to, t.kind, &err);
	if (rc == 0)
		rc = transfer(&t, c, &sent, &err);
	if (rc == 0)
		tell(&t, sent);
	else
		fprintf(stderr, "lbctl: %s: %s: %s\n", t.name, t.kind, err.text);
	free(t.file);
	free(t.folder);
	return rc == 0;
}

/* Only one at a time speaks to trackers of a run; who comes second has nothing to do. */
static int lock_folder(const char *folder, struct err *err)
{
	char *path = path_join("%s/lock", folder);
	int fd = folder_make(folder, 0750, err) < 0
			 ? -2
			 : open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

	if (fd == -1)
		err_errno(err, "%s", path);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			err_set(err, ERR_LOCKED, "another lbctl sync is at work");
		else
			err_errno(err, "%s", path);
		close(fd);
		fd = -1;
	}
	free(path);
	return fd < 0 ? -1 : fd;
}

/* Of most periodic jobs there is never anything to send, and their folders go (logs.retain_logs):
 * no trace is left in one for that. */
static bool has_nothing(const char *dir, const char *folder)
{
	struct curve c = { .saved_step = -1 };
	struct err quiet = { 0 };
	bool is_empty = !file_exists(folder) && curve_read(&c, dir, &quiet) == 0 && c.count == 0;

	curve_clear(&c);
	return is_empty;
}

static bool sync_one(struct ctl *ctl, const json_t *run)
{
	char *dir = js_bytes_take(json_object_get(run, "dir"));
	char *folder = path_join("%s/sync", dir ? dir : "");
	struct curve c = { .saved_step = -1 };
	struct err err = { 0 };
	bool is_empty = dir && has_nothing(dir, folder);
	int fd = dir && !is_empty ? lock_folder(folder, &err) : -1;
	bool all = is_empty || (fd >= 0 && curve_read(&c, dir, &err) == 0);

	for (size_t i = 0; fd >= 0 && err.code == ERR_NONE && i < ctl->options.to.count; i++)
		all &= sync_run_to(ctl, run, &c, folder, ctl->options.to.items[i]);
	if (err.code != ERR_NONE)
		fprintf(stderr, "lbctl: %s: %s\n", js_str(run, "name", "?"), err.text);
	curve_clear(&c);
	if (fd >= 0)
		close(fd);
	free(folder);
	free(dir);
	return all;
}

/* The runs that are named; else all that lbctl ls shows. A new reference. */
static json_t *chosen(struct ctl *ctl, struct err *err)
{
	json_t *names, *name, *runs;
	size_t i;

	if (ctl->operands.count == 0)
		return client_ask(&ctl->client, VERB_LS, NULL, err);
	names = runs_meant(ctl, err);
	if (!names)
		return NULL;
	runs = json_array();
	json_array_foreach(names, i, name) {
		json_t *run = ask_about(ctl, VERB_STATUS, json_string_value(name), NULL, err);

		if (!run)
			break;
		json_array_append_new(runs, run);
	}
	json_decref(names);
	if (err->code == ERR_NONE)
		return runs;
	json_decref(runs);
	return NULL;
}

static int sync_all(struct ctl *ctl, struct err *err)
{
	json_t *runs = chosen(ctl, err), *run;
	bool all = true;
	size_t i;

	if (!runs)
		return -1;
	json_array_foreach(runs, i, run) {
		all &= sync_one(ctl, run);
		fflush(stdout);
	}
	json_decref(runs);
	return all ? 0 : 1;
}

int sync_run(struct ctl *ctl, struct err *err)
{
	char kind[16];
	int rc;

	if (ctl->options.to.count == 0)
		return err_set(err, ERR_USAGE, "sync: say where to, by --to");
	for (size_t i = 0; i < ctl->options.to.count; i++)
		if (check_target(ctl->options.to.items[i], kind, err) < 0)
			return -1;
	rc = sync_all(ctl, err);
	while (rc >= 0 && ctl->options.every_ms > 0) {
		struct err away = { 0 };

		nap(ctl->options.every_ms);
		if (sync_all(ctl, &away) < 0)
			complain(ctl, away.text);
	}
	return rc;
}
